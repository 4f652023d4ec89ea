"""Edits on a body's own bytes: what is not replaced stays as it was."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.sweep.body.marker import DECLARATION
from cg.sweep.body.splice import (
    FILLER,
    add_breakpoint,
    append_messages,
    ask_body,
    declare,
    delete_members,
    replace_text,
    reply_tokens,
    set_member,
    splice,
    string_token,
)
from cg.sweep.body.transcript import Unreadable, read

WIRE = Path(__file__).parents[2] / "data" / "wire"
TURNS = sorted(WIRE.glob("*/turn_*.json"))


def body_of(path: Path, **how) -> bytes:
    how = how or {"ensure_ascii": False, "separators": (",", ":")}
    return json.dumps(json.loads(path.read_text("utf-8"))["body"], **how).encode()


def encoded(value) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("path", TURNS[::2], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_putting_each_token_back_is_the_identity(path):
    """Spans are exact: each original token in its own place gives the original body, in any spelling."""
    for how in ({"ensure_ascii": True}, {"ensure_ascii": False, "indent": 1}):
        transcript = read(body_of(path, **how))
        tokens = {text: transcript.body[text.start : text.end] for text in transcript.tool_texts}
        edits = [replace_text(text, token) for text, token in tokens.items()]
        assert splice(transcript.body, edits) == transcript.body


@pytest.mark.parametrize("path", TURNS[::2], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_bytes_outside_replaced_spans_are_unchanged(path):
    """Replaced texts say what was written; all between them is the client's, byte for byte; decoded too."""
    rng = random.Random(path.stem)
    transcript = read(body_of(path))
    chosen = [text for text in transcript.tool_texts if rng.random() < 0.6]
    made = splice(transcript.body, [replace_text(t, b'"gone %d"' % t.start) for t in chosen])
    at_old = at_new = 0
    for text in sorted(chosen, key=lambda t: t.start):
        gap = transcript.body[at_old : text.start]
        token = b'"gone %d"' % text.start
        assert made[at_new : at_new + len(gap)] == gap
        at_new += len(gap)
        assert made[at_new : at_new + len(token)] == token
        at_old, at_new = text.end, at_new + len(token)
    assert made[at_new:] == transcript.body[at_old:]
    texts = read(made).tool_texts
    replaced = {(t.tool_use_id, t.block): f"gone {t.start}" for t in chosen}
    assert [t.text for t in texts] == [replaced.get((t.tool_use_id, t.block), t.text) for t in transcript.tool_texts]


@given(
    st.binary(max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80), st.binary(max_size=5)), max_size=5),
)
def test_splice_is_slicing(body, edits):
    """Disjoint edits give what slicing from the back gives; overlaps and strays are refused."""
    edits = sorted(edits, key=lambda edit: edit[:2])
    at, sound = 0, True
    for start, end, _ in edits:
        sound &= at <= start <= end <= len(body)
        at = end
    if not sound:
        with pytest.raises(ValueError):
            splice(body, edits)
        return
    expected = body
    for start, end, replacement in reversed(edits):
        expected = expected[:start] + replacement + expected[end:]
    assert splice(body, edits) == expected


def test_a_token_that_is_no_string_is_refused():
    """A stored replacement that was damaged never reaches the wire."""
    body = body_of(WIRE / "litellm" / "turn_04.json")
    text = read(body).tool_texts[0]
    for token in (b"", b"x", b'"', b'"a', b'"a"b"', b'"\n"', b'"\\x"', b'"\xff"', b' "a"', b'"a" ', b"{}"):
        with pytest.raises(ValueError):
            replace_text(text, token)


@given(st.text(alphabet=st.characters(codec=None)))
def test_a_string_token_decodes_to_its_text(text):
    """Lone surrogates included, from str and from bytes."""
    assert json.loads(string_token(text)) == text
    # A pair of lone surrogates is one character once it is JSON.
    assert json.loads(string_token(text.encode("utf-8", "surrogatepass"))) == text


@pytest.mark.parametrize("path", [p for p in TURNS if p.parent.name in ("claude_code", "litellm", "langchain")][::5])
def test_the_declaration_stands_last_and_nothing_else_moves(path):
    """One insertion behind the client's last tool; the same bytes each time."""
    for how in ({"separators": (",", ":")}, {"indent": 2}):
        transcript = read(body_of(path, **how))
        made = splice(transcript.body, [declare(transcript, DECLARATION)])
        tools = json.loads(made)["tools"]
        assert tools[-1] == json.loads(DECLARATION)
        assert tools[:-1] == json.loads(transcript.body)["tools"]
        assert made.replace(b"," + DECLARATION, b"") == transcript.body
        with pytest.raises(ValueError, match="cannot be declared"):
            declare(read(made), DECLARATION)


def test_no_tools_no_declaration():
    """An empty or absent list stays as it is, and a declaration has to be one."""
    for tools in ({"tools": []}, {}, {"tools": None}):
        with pytest.raises(ValueError):
            declare(read(encoded({"messages": [], **tools})), DECLARATION)
    for wrong in (b"", b"[]", b"{}", b'{"name":1}', b'{"name":"x"},', b'{"name":"x"'):
        with pytest.raises(ValueError):
            declare(read(encoded({"messages": [], "tools": [{"name": "a"}]})), wrong)


MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def conversation(first="go", mark=MARK, **top):
    """Two calls and results, the newest result marked."""

    def call(i):
        return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "t", "input": {}}]}

    def result(i, **more):
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "x" * 50, **more}]}

    marked = {"cache_control": mark} if mark else {}
    return {
        "messages": [{"role": "user", "content": first}, call("a"), result("a"), call("b"), result("b", **marked)],
        **top,
    }


def with_breakpoint(body, which):
    transcript = read(encoded(body))
    edits = add_breakpoint(transcript, before=transcript.tool_texts[which])
    return edits, read(splice(transcript.body, edits))


def test_the_spare_breakpoint_stands_on_the_user_message_before_the_removed_text():
    """There an earlier request had its own; one insertion, and the same messages for the cache."""
    body = conversation()
    edits, made = with_breakpoint(body, 1)
    assert len(edits) == 1
    assert made.breakpoints == (("messages", 2, 0), ("messages", 4, 0))
    assert made.chain == read(encoded(body)).chain


def test_the_spare_breakpoint_turns_a_string_into_one_block():
    """A prompt that clients send as a string later carried the mark as a block before."""
    body = conversation()
    _, made = with_breakpoint(body, 0)
    assert made.breakpoints == (("messages", 0, 0), ("messages", 4, 0))
    assert made.chain == read(encoded(body)).chain


def test_the_spare_breakpoint_lives_as_long_as_the_mark_behind_it():
    """The API refuses one hour behind five minutes; ours is no longer and no shorter than the next."""
    _, made = with_breakpoint(conversation(mark=HOUR), 1)
    assert json.loads(made.body)["messages"][2]["content"][0]["cache_control"] == HOUR
    system = [{"type": "text", "text": "s", "cache_control": HOUR}]
    _, made = with_breakpoint(conversation(system=system), 1)
    assert json.loads(made.body)["messages"][2]["content"][0]["cache_control"] == MARK
    _, made = with_breakpoint(conversation(mark=None, cache_control=HOUR), 1)
    assert json.loads(made.body)["messages"][2]["content"][0]["cache_control"] == HOUR


@pytest.mark.parametrize(
    "body,which",
    [
        (conversation(mark=None), 1),
        (conversation(mark=None, system=[{"type": "text", "text": "s", "cache_control": MARK}]), 1),
        (conversation(system=[{"type": "text", "text": str(i), "cache_control": MARK} for i in range(3)]), 1),
        (conversation(first=""), 0),
        (conversation(first=[]), 0),
        (conversation(first=[{"type": "text", "text": "x"}, {"type": "text", "text": ""}]), 0),
        (conversation(first=[{"type": "text", "text": "x", "cache_control": MARK}]), 0),
        (conversation(mark={"type": "ephemeral", "ttl": "9h"}), 1),
        ({"messages": conversation()["messages"][4:]}, 0),
    ],
    ids=["no mark", "none behind", "no spare", "empty", "no block", "empty block", "marked", "unknown ttl", "first"],
)
def test_no_breakpoint_where_it_cannot_help(body, which):
    """No caching, none free, no place, or a place that takes none: the body stays."""
    assert with_breakpoint(body, which)[0] == []


@pytest.mark.parametrize("path", [p for p in TURNS if p.parent.name.startswith("claude_code")][3::6])
def test_the_spare_breakpoint_on_recorded_bodies_is_a_fourth_at_most(path):
    """Real bodies leave one free; the chain does not see it."""
    transcript = read(body_of(path))
    for text in transcript.tool_texts:
        made = read(splice(transcript.body, add_breakpoint(transcript, before=text)))
        assert len(made.breakpoints) <= 4
        assert made.chain == transcript.chain


@pytest.mark.parametrize("path", TURNS[::3], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_an_ask_is_the_request_as_sent_and_one_question(path):
    """Messages extend the request's; stream, max_tokens and tool_choice apart, nothing else differs."""
    transcript = read(body_of(path))
    if transcript.server_thread:
        with pytest.raises(Unreadable):
            ask_body(transcript, "What is owed?")
        return
    made = ask_body(transcript.body, 'What is "owed"?\n')
    before, after = json.loads(transcript.body), json.loads(made)
    question = {"role": "user", "content": 'What is "owed"?\n'}
    filler = [json.loads(FILLER)] if before["messages"][-1]["role"] == "system" else []
    assert after["messages"] == [*before["messages"], *filler, question]
    assert "stream" not in after
    assert after["max_tokens"] == 16_000
    assert after.get("tool_choice") == ({"type": "none"} if before.get("tools") else None)
    changed = ("messages", "stream", "max_tokens", "tool_choice")
    assert {k: v for k, v in after.items() if k not in changed} == {k: v for k, v in before.items() if k not in changed}
    assert read(made).chain.startswith(transcript.chain)
    assert read(made).head == transcript.head


def test_u33_a_body_that_ends_in_role_system_gets_an_assistant_turn_before_the_question():
    """The API takes no user message there; bytes before stay."""
    body = encoded({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "note"}]})
    made = json.loads(ask_body(body, "q"))
    assert [m["role"] for m in made["messages"]] == ["user", "system", "assistant", "user"]


@pytest.mark.parametrize(
    "own,budget,sent",
    [
        (64_000, 63_999, 64_000),
        (21_000, 20_000, 21_000),
        (50_000, 20_000, 36_000),
        (36_000, 20_000, 36_000),
        (20_000, 20_000, 36_000),
        (None, 20_000, 36_000),
        (4_096, None, 16_000),
        (64_000, None, 16_000),
    ],
)
def test_u34_the_reply_budget_clears_the_thinking_budget_and_respects_the_models_cap(own, budget, sent):
    """Budget and 16,000, or the request's own where it lies between; the thinking block is untouched."""
    assert reply_tokens(own, budget) == sent
    body = {"messages": [{"role": "user", "content": "x"}]}
    body |= {"max_tokens": own} if own else {}
    body |= {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
    made = json.loads(ask_body(encoded(body), "q"))
    assert made["max_tokens"] == sent
    assert made.get("thinking") == body.get("thinking")


@given(
    st.permutations(["a", "b", "messages", "stream", "é"]),
    st.sets(st.sampled_from(["a", "b", "stream", "é", "absent"])),
    st.sampled_from([None, 1]),
)
def test_members_go_with_their_comma_wherever_they_stand(keys, gone, indent):
    """Any subset, first, last and neighbours; set members join in."""
    body = json.dumps({key: [] if key == "messages" else key for key in keys}, indent=indent).encode()
    transcript = read(body)
    made = splice(body, [*delete_members(transcript, *gone), set_member(transcript, "new", b"1")])
    expected = {key: [] if key == "messages" else key for key in keys if key not in gone}
    assert json.loads(made) == {**expected, "new": 1}


def test_members_are_set_in_place_and_messages_stay():
    """A value that is no JSON is refused, and so is a body without messages."""
    transcript = read(b'{ "messages" : [ ] , "a" : {"x":1} }')
    assert splice(transcript.body, [set_member(transcript, "a", b"2")]) == b'{ "messages" : [ ] , "a" : 2 }'
    assert (
        splice(transcript.body, [append_messages(transcript, b"{}", b"{}")])
        == b'{ "messages" : [{},{} ] , "a" : {"x":1} }'
    )
    for wrong in (b"", b"1,", b"{", b"NaN", b" 1"):
        with pytest.raises(ValueError):
            set_member(transcript, "a", wrong)
    with pytest.raises(ValueError):
        delete_members(transcript, "messages")
    with pytest.raises(ValueError):
        append_messages(transcript, b"1")


def test_many_edits_copy_the_body_once():
    """A hundred thousand edits are one copy: the body is never sliced nor added to, only viewed and joined at the end."""

    class Watched(bytes):
        copies = 0

        def __getitem__(self, place):
            Watched.copies += 1
            return Watched(super().__getitem__(place))

        def __add__(self, other):
            Watched.copies += 1
            return Watched(super().__add__(other))

    n = 100_000
    done = splice(Watched(b"x" * (4 * n)), [(4 * i, 4 * i + 2, b"y") for i in range(n)])
    assert done == b"yxx" * n
    assert Watched.copies == 0
