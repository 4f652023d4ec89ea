"""Spend a language model's context window well: bounded-damage retrieval hints, and a sweep of spent tool outputs."""

__version__ = "0.1.0"
