"""Names and lines by which a later text can be recognised as using an earlier one."""

from cg._references import items

__all__ = ["items"]
