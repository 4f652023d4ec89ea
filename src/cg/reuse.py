"""Which tool output brought a line or an identifier last, and who uses it afterwards."""

from cg._reuse import Ownership, items

__all__ = ["Ownership", "items"]
