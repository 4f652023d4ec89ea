"""Which tool output brought a line or an identifier last, and who uses it afterwards."""

from cg._reuse import Ownership, contents, items

__all__ = ["Ownership", "contents", "items"]
