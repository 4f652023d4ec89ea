"""Every kind by the examples and counter-examples of docs/shape.md, which are read from that page."""

import ast
import re
from pathlib import Path

import pytest
import shape_oracle

from cg.shape import Kind, describe

PAGE = Path(__file__).parents[2] / "docs" / "shape.md"
CASE = re.compile(r"^(Example|Counter-example): `(\w+)`\n\n```(text|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def cases() -> list[tuple[str, str, str, str | bytes]]:
    """(section, Example or Counter-example, the kind it has, content)."""
    found = []
    for section in re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        for role, kind, language, block in CASE.findall(section):
            if language == "text":
                content: str | bytes = block
            elif block.endswith('.encode("latin-1")\n'):
                content = ast.literal_eval(block.removesuffix('.encode("latin-1")\n')).encode("latin-1")
            else:
                content = ast.literal_eval(block)
            found.append((section.split("\n", 1)[0], role, kind, content))
    return found


@pytest.mark.parametrize(("section", "role", "kind", "content"), cases(), ids=lambda v: str(v)[:20])
def test_an_example_is_of_its_kind_and_a_counter_example_is_not(
    section: str, role: str, kind: str, content: str | bytes
) -> None:
    """The page tells the truth, and the slow oracle agrees."""
    assert (kind == section) == (role == "Example")
    assert describe(content).kind == kind
    assert shape_oracle.describe(content)[0] == kind


def test_every_kind_has_an_example_and_a_counter_example() -> None:
    """The page leaves no kind out."""
    assert [(s, r) for s, r, _, _ in cases()] == [
        (s, r) for s in dict.fromkeys(s for s, _, _, _ in cases()) for r in ("Example", "Counter-example")
    ]
    assert {s for s, _, _, _ in cases()} == {k.value for k in Kind}
