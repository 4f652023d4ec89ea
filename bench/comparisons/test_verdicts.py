"""The decoder beside what people use, on the same bytes; `correct` says whether the drops were the right ones.

pytest bench/comparisons/test_verdicts.py --benchmark-group-by=param:shape
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cg.verdicts import decode

pytest.importorskip("pytest_benchmark")

LABELS = list(range(12))
QUOTE = "Before we ship, re-run tests/unit/test_cache.py and paste the summary line. "


def rows(count: int) -> list[dict[str, Any]]:
    keep = {"needed_by": "b", "quote": QUOTE * 3, "verdict": "keep"}
    spent = {"needed_by": "none", "quote": "", "verdict": "drop"}
    return [{"i": i, **(keep if i % 2 else spent)} for i in range(count)]


ARRAY = json.dumps(rows(500), separators=(",", ":"))
SHAPES = {
    "clean": (ARRAY, [0, 2, 4, 6, 8, 10]),
    "bracketed_prose": ("As rule [a] says (see {x}), 3 is done. " * 500 + "\n" + ARRAY + "\nSee [b].", [0, 2, 4, 6, 8, 10]),
    "draft_then_final": (
        "Draft: " + json.dumps([{"i": 1, "needed_by": "none", "verdict": "drop"}]) + "\nFinal:\n" + json.dumps(rows(12)),
        [0, 2, 4, 6, 8, 10],
    ),
    "cut": (ARRAY[:-30], [0, 2, 4, 6, 8, 10]),
}  # fmt: skip


def span(text: str) -> str:
    start, end = text.find("["), text.rfind("]")
    return text[start : end + 1] if 0 <= start < end else text


def drops_of(found: Any) -> list[int]:
    """A caller's own rules: the first mention of an offered label counts."""
    seen: dict[int, str] = {}
    for row in found if isinstance(found, list) else []:
        if isinstance(row, dict) and row.get("i") in LABELS:
            seen.setdefault(row["i"], row.get("verdict") if row.get("needed_by") in (None, "", "none") else "keep")
    return sorted(label for label, said in seen.items() if said == "drop")


def with_cg(text: str) -> list[int]:
    return list(decode(text, LABELS).drops)


def with_json(text: str) -> list[int]:
    return drops_of(json.loads(span(text)))


def with_msgspec() -> Callable[[str], list[int]]:
    msgspec = pytest.importorskip("msgspec")
    fields = [("i", int, 0), ("needed_by", str, ""), ("quote", str, ""), ("verdict", str, "")]
    decoder = msgspec.json.Decoder(list[msgspec.defstruct("Row", fields)])
    names = ("i", "needed_by", "verdict")

    def run(text: str) -> list[int]:
        return drops_of([{name: getattr(row, name) for name in names} for row in decoder.decode(span(text))[:12]])

    return run


def with_json_repair() -> Callable[[str], list[int]]:
    json_repair = pytest.importorskip("json_repair")
    return lambda text: drops_of(json_repair.loads(text))


def with_jiter() -> Callable[[str], list[int]]:
    jiter = pytest.importorskip("jiter")
    return lambda text: drops_of(jiter.from_json(text[max(text.find("["), 0) :].encode(), partial_mode=True))


READERS: dict[str, Callable[[], Callable[[str], list[int]]]] = {
    "cg": lambda: with_cg,
    "json": lambda: with_json,
    "msgspec": with_msgspec,
    "jiter_partial": with_jiter,
    "json_repair": with_json_repair,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_drops_of_a_reply(benchmark: Any, shape: str, reader: str) -> None:
    """Time and, beside it, whether the result was right."""
    text, expected = SHAPES[shape]
    read = READERS[reader]()

    def attempt() -> list[int] | str:
        try:
            return read(text)
        except Exception as error:  # a peer that raises has no result; its time says how long that took
            return type(error).__name__

    got = benchmark(attempt)
    benchmark.extra_info.update(correct=got == expected, size_bytes=len(text.encode()), got=str(got)[:80])
    if reader == "cg":
        assert got == expected
