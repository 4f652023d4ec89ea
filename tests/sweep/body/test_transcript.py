"""What the sweep reads from a request: chains over recorded conversations, lifetimes, marks, settings, texts."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from cg.sweep.body.transcript import Unreadable, read
from cg.sweep.values import Identity

WIRE = Path(__file__).parents[2] / "data" / "wire"
FOLDERS = sorted(p.name for p in WIRE.iterdir() if p.is_dir())
WHOLE = [name for name in FOLDERS if name != "sdk_tool_runner_threads"]


def encoded(body) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def turns(folder: str, *kinds: str) -> list[dict]:
    rows = [json.loads(path.read_text("utf-8")) for path in sorted((WIRE / folder).glob("turn_*.json"))]
    return [row["body"] for row in rows if row["kind"] in (kinds or ("main", "default"))]


def messages_set_aside(body: dict) -> list:
    """Messages without cache_control, a lone text block as its string: the plain meaning of equality."""

    def clean(value):
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items() if k != "cache_control"}
        return [clean(v) for v in value] if isinstance(value, list) else value

    out = []
    for message in clean(body["messages"]):
        content = message["content"]
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            message = {**message, "content": content[0]["text"]}
        out.append(message)
    return out


@pytest.mark.parametrize("folder", WHOLE)
def test_consecutive_turns_of_a_conversation_extend_each_other(folder):
    """Each recorded main turn extends the one before it; only compaction starts anew."""
    bodies = turns(folder)
    assert len(bodies) >= 2
    broken = []
    for number, (earlier, later) in enumerate(pairwise(bodies)):
        if not read(encoded(later)).chain.startswith(read(encoded(earlier)).chain):
            broken.append(number)
    before_compaction = 5  # six main turns, then the compacted history's two
    assert broken == ([before_compaction] if folder == "claude_code_compact" else [])


@pytest.mark.parametrize("folder", FOLDERS)
def test_chains_agree_with_plain_comparison_for_every_pair(folder):
    """One chain begins with another exactly if the decoded messages do, over all pairs of a folder, side calls included."""
    bodies = turns(folder, "main", "default", "side", "sub", "compact", "rejected")
    chains = [read(encoded(body)).chain for body in bodies]
    plain = [messages_set_aside(body) for body in bodies]
    for i, one in enumerate(plain):
        for j, two in enumerate(plain):
            assert chains[i].startswith(chains[j]) == (one[: len(two)] == two), (i, j)


def test_the_compaction_request_extends_nothing_but_shares_all_but_the_last_message():
    """Its body is the last turn's with a text block appended to the last user message."""
    main, compact = turns("claude_code_compact")[5], turns("claude_code_compact", "compact")[0]
    one, two = read(encoded(main)).chain, read(encoded(compact)).chain
    assert not two.startswith(one)
    assert one[:-8] == two[: len(one) - 8]


def test_the_head_changes_when_a_client_is_resumed_and_only_then():
    """A new process sends another system prompt; within one, tools and system are the same."""
    heads = [read(encoded(body)).head for body in turns("claude_code_resume")]
    assert heads[0] == heads[1] != heads[2] == heads[3]
    assert len({read(encoded(body)).head for body in turns("claude_code")}) == 1


BASE = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


def with_content(content, role="user") -> bytes:
    return encoded({**BASE, "messages": [{"role": role, "content": content}]})


MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize(
    "one,two",
    [
        ("hi", [{"type": "text", "text": "hi"}]),
        ("hi", [{"text": "hi", "cache_control": MARK, "type": "text"}]),
        (
            [{"type": "tool_result", "tool_use_id": "a", "content": "x"}],
            [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}],
        ),
        (
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "x"}, {"type": "image"}],
                }
            ],
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "text", "text": "x", "cache_control": HOUR}, {"type": "image"}],
                    "cache_control": MARK,
                }
            ],
        ),
    ],
)
def test_marks_and_the_shorthand_are_set_aside(one, two):
    """What a cache sees as the same message has the same digest."""
    assert read(with_content(one)).chain == read(with_content(two)).chain


@pytest.mark.parametrize(
    "one,two",
    [
        ("hi", "hi "),
        ("hi", [{"type": "text", "text": "hi", "citations": []}]),
        ("hi", [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}]),
        (
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": 'a"},{"type":"text'}],
        ),
        ([{"type": "x", "n": 1}], [{"type": "x", "n": 1.0}]),
        (
            [{"type": "tool_result", "tool_use_id": "a", "content": "x"}],
            [{"type": "tool_result", "tool_use_id": "b", "content": "x"}],
        ),
    ],
)
def test_different_messages_have_different_digests(one, two):
    """Text, further members, numbers and ids count."""
    assert read(with_content(one)).chain != read(with_content(two)).chain


def test_cache_control_inside_arguments_is_data():
    """Only marks of the format are set aside, not a key of a tool's own input; and they set no lifetime."""

    def call(arguments):
        return with_content([{"type": "tool_use", "id": "a", "name": "t", "input": arguments}], "assistant")

    marked = read(call({"cache_control": HOUR}))
    assert marked.chain != read(call({})).chain
    assert (marked.ttl_s, marked.breakpoints) == (None, ())


def test_the_role_counts():
    """The same words of another role are another message."""
    assert read(with_content("x")).chain != read(with_content("x", "system")).chain


@pytest.mark.parametrize("folder,ttl_s", [("claude_code", 300), ("claude_code_1h", 3600), ("langchain", None)])
def test_lifetimes_of_real_clients(folder, ttl_s):
    """Five minutes, one hour, and no mark at all."""
    assert {read(encoded(body)).ttl_s for body in turns(folder)} == {ttl_s}


@pytest.mark.parametrize(
    "change,place",
    [
        ({"cache_control": HOUR}, ("top", -1, -1)),
        ({"system": [{"type": "text", "text": "s", "cache_control": HOUR}]}, ("system", -1, 0)),
        ({"tools": [{"name": "a"}, {"name": "b", "cache_control": HOUR}]}, ("tools", -1, 1)),
        ({"messages": [{"role": "user", "content": "x", "cache_control": HOUR}]}, ("messages", 0, -1)),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": HOUR}]}]},
            ("messages", 0, 0),
        ),
    ],
)
def test_one_hour_is_seen_wherever_a_mark_may_stand(change, place):
    """Top of the body, system, tools, message and block; the characters 1h inside a text count for nothing."""
    found = read(encoded({**BASE, **change}))
    assert (found.ttl_s, found.breakpoints) == (3600, (place,))
    text = json.dumps({"cache_control": HOUR})
    assert read(with_content(text)).ttl_s is None


def test_an_unknown_lifetime_is_no_lifetime():
    """A ttl that is not known here may be longer than those that are."""
    odd = {
        **BASE,
        "cache_control": {"type": "ephemeral", "ttl": "24h"},
        "tools": [{"name": "a", "cache_control": MARK}],
    }
    assert read(encoded(odd)).ttl_s is None
    assert read(encoded({**BASE, "cache_control": None})).breakpoints == ()


def test_breakpoints_stand_in_prompt_order():
    """Tools, system, messages, whatever the order of the body's keys."""
    body = turns("claude_code")[3]
    assert next(iter(body)) == "model"
    last = len(body["messages"]) - 1
    found = read(encoded(body)).breakpoints
    assert [place[0] for place in found] == ["system", "system", "messages"]
    assert found[2][1] in (last, last - 1)


def test_settings_of_a_request():
    """Model, limits, session, tools, roles."""
    body = turns("claude_code")[-1]
    found = read(encoded(body))
    assert found.model == body["model"]
    assert found.max_tokens == body["max_tokens"]
    assert found.thinking_budget is None
    assert found.session_id == json.loads(body["metadata"]["user_id"])["session_id"]
    assert found.declares == {tool["name"] for tool in body["tools"]}
    assert found.roles == tuple(m["role"] for m in body["messages"])
    assert found.assistant_turns == found.roles.count("assistant")
    assert found.last_role == body["messages"][-1]["role"]
    assert found.value("thinking") == body["thinking"]
    assert not found.server_thread


def test_the_thinking_budget_is_read_where_thinking_is_enabled():
    """Adaptive and disabled thinking have none."""
    on = {**BASE, "thinking": {"type": "enabled", "budget_tokens": 20000}}
    assert read(encoded(on)).thinking_budget == 20000
    assert read(encoded({**BASE, "thinking": {"type": "disabled", "budget_tokens": 9}})).thinking_budget is None


@pytest.mark.parametrize(
    "user_id,session",
    [
        ('{"session_id":"a-1.B:c_"}', "a-1.B:c_"),
        ('{"session_id":"..."}', None),
        ('{"session_id":"a b"}', None),
        ('{"session_id":"%s"}' % ("x" * 129), None),
        ('{"session_id":"a\\n"}', None),
        ('{"session_id":7}', None),
        ("user_abc", None),
        ("{" * 900, None),
        ('{"pad":"%s","session_id":"a"}' % ("x" * 1100), None),
        (7, None),
    ],
)
def test_a_session_id_is_taken_only_in_its_form(user_id, session):
    """1 to 128 of [A-Za-z0-9._:-], not all dots, in a JSON object of at most 1,024 bytes."""
    assert read(encoded({**BASE, "metadata": {"user_id": user_id}})).session_id == session


def test_server_held_threads_are_known():
    """The SDK's tool runner sends only what is new."""
    assert all(read(encoded(body)).server_thread for body in turns("sdk_tool_runner_threads"))


def test_tool_texts_are_string_content_and_text_blocks_of_user_results():
    """Images are left alone, block indexes count them, errors are marked, parallel results keep their order."""
    content = [
        {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
        {"type": "text", "text": "aside"},
        {
            "content": [
                {"type": "image", "source": {}},
                {"type": "text", "text": "one"},
                {"text": "x", "type": "text"},
            ],
            "tool_use_id": "a",
            "type": "tool_result",
        },
        {"type": "tool_result", "tool_use_id": "c"},
    ]
    found = read(with_content(content)).tool_texts
    assert [(t.tool_use_id, t.block, t.text, t.is_error) for t in found] == [
        ("b", 0, "two", True),
        ("a", 1, "one", False),
        ("a", 2, "x", False),
    ]
    assert found[1].identity == Identity("a", 1, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed")
    assert found[1].identity is found[1].identity
    assert read(with_content(content, "assistant")).tool_texts == ()


def test_one_id_has_one_call_and_one_result():
    """Two of either cannot be told apart, and the API refuses them: the body is forwarded as it is."""
    call = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    with pytest.raises(Unreadable, match="two calls"):
        read(with_content([call, call], "assistant"))
    with pytest.raises(Unreadable, match="two results"):
        read(with_content([result, {**result, "content": "y"}]))


def test_texts_hold_all_that_a_quote_may_come_from():
    """System prompt, text of every role, decoded arguments, results; thinking and images not."""
    body = {
        **BASE,
        "system": [{"type": "text", "text": "rules"}],
        "messages": [
            {"role": "user", "content": "ask"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "secretly", "signature": "s"},
                    {"type": "text", "text": "I look"},
                    {
                        "type": "tool_use",
                        "id": "a",
                        "name": "Bash",
                        "input": {"command": 'echo "x"\nls', "n": [1, {"k": "v"}]},
                    },
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "out"}]},
            {"role": "system", "content": "reminder"},
        ],
    }
    found = list(read(encoded(body)).texts())
    assert [row[:2] for row in found] == [
        ("user", 0),
        ("assistant", 1),
        ("assistant", 1),
        ("user", 2),
        ("system", 3),
        ("system", -1),
    ]
    whole = "\n".join(text for _, _, text in found)
    for quote in ("rules", "ask", "I look", 'echo "x"\nls', '"k":"v"', "out", "reminder"):
        assert quote in whole
    assert "secretly" not in whole


def test_a_body_over_the_limit_is_not_read():
    """The limit is on bytes, before anything is allocated."""
    body = encoded(BASE)
    assert read(body, max_bytes=len(body)).n_messages == 1
    with pytest.raises(Unreadable, match=f"{len(body)} bytes is larger than {len(body) - 1}"):
        read(body, max_bytes=len(body) - 1)
