"""The commands of `thread.lua`, which the server runs in one step each. What they take and give stands there."""

from enum import StrEnum
from importlib.resources import files

TEXT = files("cg.sweep.storage.redis").joinpath("thread.lua").read_text("utf-8")
COUNTS = ("payload_bytes", "branches", "removals", "ended", "pending", "payloads", "kept", "asks")


class Command(StrEnum):
    """A function of the script, by its name there."""

    LOAD = "load"
    PUT = "put"
    FETCH = "fetch"
    FREEZE = "freeze"
    END_REMOVAL = "end_removal"
    MARK = "mark"
    PEND = "pend"
    UNPEND = "unpend"
    DECLARE = "declare"
    TOUCH = "touch"
    LEARN = "learn"
    CLAIM = "claim"
    BOOK = "book"
    COUNT = "count"
    ERASE = "erase"
    AGE = "age"
