"""Replies in the form that is asked for, and what the decoder reads out of one, whole or in pieces."""

import json
from typing import Any

from cg.verdicts import Decoder, decode


def in_pieces(reply: bytes, labels: list[int], cuts: list[int]) -> dict[str, Any]:
    decoder = Decoder(labels)
    for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
        decoder.feed(reply[start:end])
    return decoder.finish().to_dict()


def drop(label: object, **more: object) -> str:
    return json.dumps({"i": label, "needed_by": "none", "quote": "", "verdict": "drop", **more})


def keep(label: object) -> str:
    return json.dumps({"i": label, "needed_by": "b", "quote": "still open", "verdict": "keep"})


def drops(reply: str | bytes, labels: Any = (0, 1, 2)) -> tuple[int, ...]:
    return decode(reply, labels).drops
