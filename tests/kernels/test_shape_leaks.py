"""The descriptor transports nothing: no byte of a content reaches it, and the check that says so can fail."""

import os
import random

import pytest
import shape_leaks

from cg.shape import Shape, describe

GENERATED = 100_000 if os.environ.get("CG_LONG") == "1" else 5_000


def test_no_descriptor_of_a_recorded_output_leaks() -> None:
    """Every tool output of the recorded sessions, as it is and with a canary planted."""
    outputs = list(shape_leaks.tool_outputs())
    assert len(outputs) == 1125
    assert shape_leaks.leaks(outputs, random.Random(1)) == []


def test_no_descriptor_of_a_generated_output_leaks() -> None:
    """Contents made of stretches of the recorded ones; CG_LONG=1 looks at 100,000."""
    rng = random.Random(2)
    assert shape_leaks.leaks(shape_leaks.generated(GENERATED, rng), rng) == []


def with_head(content: str | bytes) -> tuple[Shape, str]:
    """A descriptor that peeks: the first 96 characters of the content stand in it."""
    shape = describe(content)
    head = content[:96] if isinstance(content, str) else content[:96].decode("latin-1")
    return shape, shape.descriptor()[:-1] + f" head={head!r}]"


def with_first_word(content: str | bytes) -> tuple[Shape, str]:
    shape = describe(content)
    text = content if isinstance(content, str) else content.decode("latin-1")
    return shape, shape.descriptor()[:-1] + f" first={next(iter(text.split()), '')[:12]}]"


def with_parity(content: str | bytes) -> tuple[Shape, str]:
    """Text that depends on the content beyond its shape, in words that are all allowed."""
    shape = describe(content)
    kind = shape.kind.value if sum(map(ord, str(content))) % 2 else "other"
    return shape, shape.descriptor().replace(f"kind={shape.kind.value}", f"kind={kind}")


@pytest.mark.parametrize("peeking", [with_head, with_first_word, with_parity])
def test_the_check_catches_a_descriptor_that_peeks(peeking: shape_leaks.Describe) -> None:
    """A 96-character head, a first word or one hidden bit is found out over the recorded outputs."""
    assert shape_leaks.leaks(shape_leaks.tool_outputs(), random.Random(3), peeking)


def test_a_canary_in_a_head_is_seen_as_a_canary() -> None:
    """Not only the closed list notices: the planted characters themselves are recognised."""
    found = shape_leaks.leaks(shape_leaks.tool_outputs(), random.Random(4), with_head)
    assert sum(reason.startswith("canary in") for reason in found) > 300


def test_a_patched_descriptor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The method that is really called is the one under test: put a head into it and the check fails."""
    heads: list[str] = []
    written = Shape.descriptor

    def peeking(self: Shape) -> str:
        return f"{written(self)[:-1]} head={heads[-1]}]"

    def describe_as(content: str | bytes) -> tuple[Shape, str]:
        heads.append(str(content[:96]))
        return shape_leaks.shape_and_text(content)

    outputs = list(shape_leaks.tool_outputs())[:100]
    assert shape_leaks.leaks(outputs, random.Random(5), describe_as) == []
    monkeypatch.setattr(Shape, "descriptor", peeking)
    assert shape_leaks.leaks(outputs, random.Random(5), describe_as)
