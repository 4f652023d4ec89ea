"""The leak check: what a descriptor may be, canaries planted in real and generated contents, and who is caught."""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cg.shape import Kind, Shape, describe

Describe = Callable[[str | bytes], tuple[Shape, str]]

SESSIONS = Path(__file__).parents[1] / "data" / "transcripts"
# With numbers masked these are all the descriptors that may ever be written.
MASKED = frozenset(
    f"[tool output removed: kind={kind.value}{records} lines=# bytes=#]"
    for kind in Kind
    for records in ((" records=#", "") if kind in (Kind.JSON_ARRAY, Kind.JSON_LINES) else ("",))
)
CANARY_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def tool_outputs() -> Iterator[str]:
    """Every tool output of the recorded sessions, in order."""
    names = [entry["name"] for entry in json.loads((SESSIONS / "manifest.json").read_text("utf-8"))["transcripts"]]
    for name in names:
        session = json.loads((SESSIONS / f"{name}.json").read_text("utf-8"))
        for event in session["events"]:
            for block in event["content"]:
                if block["type"] == "tool_result":
                    yield block["content"]


def shape_and_text(content: str | bytes) -> tuple[Shape, str]:
    """The shape of a content and the descriptor that is written for it."""
    shape = describe(content)
    return shape, shape.descriptor()


def plant(content: str, rng: random.Random) -> tuple[str, str]:
    """(content with a random 12-character canary somewhere in it, the canary); the front gets one in three."""
    canary = "".join(rng.choice(CANARY_LETTERS) for _ in range(12))
    at = 0 if rng.random() < 1 / 3 else rng.randrange(len(content) + 1)
    return content[:at] + canary + content[at:], canary


def leaks(contents: Iterable[str], rng: random.Random, describe_as: Describe = shape_and_text) -> list[str]:
    """What went wrong, one sentence each, over all contents as they are and with a canary planted."""
    wrong: list[str] = []
    text_of: dict[tuple[str, bool, int, int], str] = {}
    for content in contents:
        planted, canary = plant(content, rng)
        for text in (content, planted):
            shape, written = describe_as(text)
            if canary in written or any(canary[i : i + 6] in written for i in range(7)):
                wrong.append(f"canary in {written!r}")
            if re.sub(r"[0-9]+", "#", written) not in MASKED:
                wrong.append(f"not of the closed list: {written!r}")
            same = (shape.kind.value, shape.records is None, shape.records or 0, shape.lines * 2**40 + shape.size_bytes)
            if text_of.setdefault(same, written) != written:
                wrong.append(f"two texts for {same}")
    return wrong


def generated(n: int, rng: random.Random) -> Iterator[str]:
    """`n` contents of all sorts: stretches of the recorded outputs spliced, repeated, cut, wrapped in JSON or lists."""
    outputs = list(tool_outputs())
    for _ in range(n):
        first, second = rng.choice(outputs), rng.choice(outputs)
        a, b = rng.randrange(len(first) + 1), rng.randrange(len(second) + 1)
        part = first[a : a + rng.randrange(400)] + second[b : b + rng.randrange(200)]
        match rng.randrange(6):
            case 0:
                part = json.dumps([part[:20]] * rng.randrange(5))
            case 1:
                part = "\n".join(json.dumps({"line": line}) for line in part.split("\n"))
            case 2:
                part = "\n".join(f"{i:6}\t{line}" for i, line in enumerate(part.split("\n"), 1))
            case 3:
                part = "\n".join(f"src/{i}.py:{i}:{line}" for i, line in enumerate(part.split("\n"), 1))
        yield part
