"""Word vectors in a file of ternary digits, and the order that they give to documents."""

from cg._word_table import WordTable, WordVectors

__all__ = ["WordTable", "WordVectors"]
