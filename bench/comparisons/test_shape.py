"""What a description costs beside reading the same bytes once, and beside what else would count or parse them."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from cg.shape import Kind, content_key, describe

MEGABYTE = 1 << 20


def source_code() -> str:
    """A megabyte of this project's own Python, over and over."""
    files = sorted(Path(__file__).parents[2].glob("tests/**/*.py"))
    text = "".join(path.read_text("utf-8") for path in files).encode("ascii", "replace").decode("ascii")
    return (text * (MEGABYTE // len(text) + 1))[:MEGABYTE]


def json_rows() -> list[str]:
    rng = random.Random(1)
    row = {"level": "info", "msg": "request handled in time", "tags": ["a", "b"], "ok": True}
    return [json.dumps(row | {"ts": rng.random(), "path": f"/items/{rng.randrange(9999)}"}) for _ in range(7600)]


ROWS = json_rows()
CONTENTS: dict[str, tuple[str, Kind, int | None]] = {
    "source_code": (source_code(), Kind.SOURCE_CODE, None),
    "json_lines": ("\n".join(ROWS) + "\n", Kind.JSON_LINES, len(ROWS)),
    "json_array": ("[" + ",\n".join(ROWS) + "]", Kind.JSON_ARRAY, len(ROWS)),
}


def read_once(data: bytes) -> int:
    """The floor: the C library looks for a byte that is not there, so every byte is read and nothing is done."""
    return data.find(b"\x07")


RIVALS: dict[str, Callable[[str, bytes], object]] = {
    "describe": lambda text, data: describe(text),
    "read_once": lambda text, data: read_once(data),
    "str.count newline": lambda text, data: text.count("\n"),
    "str.splitlines": lambda text, data: len(text.splitlines()),
}


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("content", CONTENTS)
def test_describe(benchmark, content: str, rival: str) -> None:
    """`correct` says that kind and records are right; the others only answer part of the question."""
    text, kind, records = CONTENTS[content]
    data = text.encode("ascii")
    benchmark.group = f"describe {content}"
    result = benchmark(RIVALS[rival], text, data)
    benchmark.extra_info["bytes"] = len(data)
    if rival == "describe":
        correct = (result.kind, result.records, result.lines) == (kind, records, len(text.splitlines()))
        benchmark.extra_info["correct"] = correct
        assert correct


def count_by_parsing(text: str) -> int:
    return len(json.loads(text))


@pytest.mark.parametrize(
    "rival", [lambda text: describe(text).records, count_by_parsing], ids=["describe", "json.loads"]
)
def test_array_records(benchmark, rival: Callable[[str], int]) -> None:
    """The exact number of records, which needs the whole array checked."""
    text, _, records = CONTENTS["json_array"]
    benchmark.group = "records of a JSON array"
    correct = benchmark(rival, text) == records
    benchmark.extra_info["correct"] = correct
    assert correct


@pytest.mark.parametrize(
    "rival", [content_key, lambda text: hashlib.sha256(text.encode()).hexdigest()], ids=["content_key", "hashlib"]
)
def test_content_key(benchmark, rival: Callable[[str], str]) -> None:
    """SHA-256 of a megabyte of text."""
    text = CONTENTS["source_code"][0]
    benchmark.group = "content key"
    correct = benchmark(rival, text) == hashlib.sha256(text.encode()).hexdigest()
    benchmark.extra_info["correct"] = correct
    assert correct
