"""Reasoning under every name and in every bracket: a draft in it drops nothing, and prose that looks like it hides nothing."""

import pytest
import verdict_oracle
from verdict_replies import drop, in_pieces, keep

from cg.verdicts import decode

DRAFT = f"[{drop(2)}]"
NAMES = ["think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis"]
TAGS = [(f"<{name}>", f"</{name}>") for name in NAMES] + [
    ("<THINK>", "</Think>"),
    ("<Scratchpad>", "</SCRATCHPAD>"),
    ("<thinking>", "</think>"),
    ("<thought>", "</thoughts>"),
    ("<seed:think>", "</seed:think>"),
    ("<thinking>", "</thinking>"),
    ("<my-ns.v2_x:analysis>", "</analysis>"),
    ("< think >", "</ think >"),
    ("<\u00a0think\u3000>", "< /\u200bthink\n>"),
    ('<think budget="high">', "</think>"),
    ('< seed:reasoning depth="3" x=[1] {y} >', "</seed:reasoning>"),
    ("<think/>", "</think>"),
    ("<think\n>", "</think\t>"),
    ("\uff1cthink\uff1e", "\uff1c/think\uff1e"),
    ("\uff1c reflection a=\u25b7 \uff1e", "\uff1c/reflection\uff1e"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("\u25c1seed:THOUGHTS\u25b7", "\u25c1/thoughts\u25b7"),
    ("[THINK]", "[/THINK]"),
    ("[think]", "[/Think]"),
    ("[ THINK ]", "[ / THINK ]"),
]


def read(reply: str) -> tuple[str, tuple[int, ...]]:
    """Status and drops, after a look that the slow decoder and every way of feeding agree."""
    want, data = verdict_oracle.decode(reply, [0, 1, 2]), reply.encode()
    found = decode(reply, [0, 1, 2])
    assert found.to_dict() == want
    for size in (1, 2, 3, 5, 7):
        assert in_pieces(data, [0, 1, 2], [*range(size, len(data), size)]) == want, size
    return found.status.value, found.drops


@pytest.mark.parametrize(("opening", "closing"), TAGS, ids=ascii)
def test_a_draft_in_reasoning_drops_nothing(opening: str, closing: str) -> None:
    """Closed, never closed, never opened, cut off at any byte; and it does not object to the answer behind it."""
    assert read(f"{opening}{DRAFT}{closing}\nNothing can go.") == ("unparseable", ())
    assert read(f"{opening}{DRAFT}") == ("truncated", ())
    assert read(f"maybe {DRAFT}{closing} Nothing can go.") == ("unparseable", ())
    assert read(f"{opening}[{keep(0)}]{closing}[{drop(0)}]") == ("ok", (0,))
    whole = f"{opening}{DRAFT}{closing}"
    for end in range(len(opening), len(whole)):
        assert decode(whole[:end], [0, 1, 2]).drops == ()
        assert decode(whole[:end], [0, 1, 2]).to_dict() == verdict_oracle.decode(whole[:end], [0, 1, 2])


@pytest.mark.parametrize(
    "closing",
    ["</thought>", "</scratchpad>", "</thinker>", "\u25c1/think\u25b7", "[/THINK]", "\uff1c/think\uff1e", "</think\uff1e", "<think>", "/think>"],
)  # fmt: skip
def test_reasoning_ends_at_a_closing_tag_of_its_kind(closing: str) -> None:
    """Another name or other brackets inside of it are a part of the draft."""
    assert read(f"<think>it wrote {closing}, so {DRAFT}") == ("truncated", ())
    assert read(f"<think>it wrote {closing}, so {DRAFT}</think>[{drop(0)}]") == ("ok", (0,))


@pytest.mark.parametrize(
    "prose",
    [
        "reasoning > thought: ", "a < b, think > c ", "<thinker>", "<think-aloud>", "<think:er>", "<thinks>", "<rethink>", "<b>think</b> ",
        "<|think|>", "<:think>", "<a:b:think>", "<seed: think>", "<think", "<think <b", "\u25c1think>", "<think\u25b7", "\uff1cthink\u25b7 ", "[thinking] ", "[thought] ",
        "[THINK about it] ", "[seed:THINK] ", "<th\u0456nk>", "<think\u00ad>", "<\u017fcratchpad>", "<think\\>", "<" + " " * 17 + "think>",
        "<" + "x" * 33 + ":think>", "\u25c1", "\uff1c\uff1c", "\u201cthink\u201d ", "&lt;think&gt;", "<=think>", "\u25c0think\u25b6",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_tag_hides_nothing(prose: str) -> None:
    """An answer behind it is read."""
    assert read(f"{prose}[{drop(0)}]") == ("ok", (0,))


def test_a_tag_inside_a_string_is_text() -> None:
    """A quote may hold any of them."""
    for opening, closing in TAGS:
        quote = (opening + closing + opening).replace('"', "'").replace("\n", " ")
        assert read(f"[{drop(0, quote=quote)},{keep(1)}]") == ("ok", (0,))


def test_a_tag_between_bare_verdicts_ends_their_run() -> None:
    """One object before it and one behind it are no answer."""
    for opening, closing in TAGS:
        assert read(f"{drop(0)}{opening}x{closing}{drop(1)}") == ("unparseable", ())


def test_a_long_tag_that_comes_in_pieces_is_one() -> None:
    """However long its attributes are, and an opening bracket in them makes it prose."""
    reply = f"<think a='{'x' * 500}'>{DRAFT}"
    assert read(reply) == ("truncated", ())
    assert read(f"<think a='{'x' * 500}<'>{DRAFT}") == ("ok", (2,))
