"""Checks of fake_upstream.py with the official `anthropic` SDK (pip install anthropic pytest)."""

import json
import time
import urllib.request

import pytest
from fake_upstream import FakeUpstream, damage, sign

anthropic = pytest.importorskip("anthropic")  # the vendor's own SDK is the judge here; it is no dependency of the tests

# The SDK leaves sockets of cut streams to the collector; what it leaves open is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BIG = "lorem ipsum dolor " * 400  # 7,200 bytes = 1,800 model tokens
TOOL = {"name": "Read", "description": "read", "input_schema": {"type": "object"}}


def client(up, **kw):
    kw.setdefault("max_retries", 0)
    return anthropic.Anthropic(api_key="dummy", base_url=up.base_url, **kw)


def ask(c, messages, **kw):
    kw.setdefault("model", "claude-sonnet-5")
    kw.setdefault("max_tokens", 500)
    return c.messages.create(messages=messages, **kw)


def user(text, ttl=None, mark=False):
    block = {"type": "text", "text": text}
    if mark or ttl:
        block["cache_control"] = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    return {"role": "user", "content": [block]}


def post(up, path, obj):
    req = urllib.request.Request(up.base_url + "/_fake/" + path, json.dumps(obj).encode())
    return json.load(urllib.request.urlopen(req))


def test_json_and_stream_give_the_same_message():
    script = [
        {"thinking": "hm", "text": "hello " * 30, "tools": [{"name": "Read", "input": {"path": "a/b", "n": 3}}]}
    ] * 2
    with FakeUpstream(script) as up:
        c = client(up)
        a = ask(c, [user("x")], tools=[TOOL])
        with c.messages.stream(model="claude-sonnet-5", max_tokens=500, tools=[TOOL], messages=[user("x")]) as s:
            b = s.get_final_message()

        def strip(m):
            return [{k: v for k, v in x.model_dump().items() if k != "id"} for x in m.content]

        assert strip(a) == strip(b)
        assert a.stop_reason == b.stop_reason == "tool_use"
        assert a.usage.output_tokens == b.usage.output_tokens > 40
        assert len(up.requests) == 2 and json.loads(up.requests[1]["body"])["stream"] is True


def test_cache_write_read_expiry_and_refresh():
    with FakeUpstream([{"text": "ok"}] * 9, clock="manual") as up:
        c = client(up)
        u = ask(c, [user(BIG, mark=True)]).usage
        assert u.cache_creation_input_tokens > 1024 and u.cache_read_input_tokens == 0
        assert u.cache_creation.ephemeral_5m_input_tokens == u.cache_creation_input_tokens
        wrote = u.cache_creation_input_tokens
        for _ in range(3):  # each read refreshes the 300 s
            up.clock.advance(299)
            assert ask(c, [user(BIG, mark=True)]).usage.cache_read_input_tokens == wrote
        up.clock.advance(301)
        u = ask(c, [user(BIG, mark=True)]).usage
        assert u.cache_read_input_tokens == 0 and u.cache_creation_input_tokens == wrote


def test_one_byte_breaks_it_and_the_marker_is_not_part_of_the_key():
    with FakeUpstream([{"text": "ok"}] * 9, clock="manual") as up:
        c = client(up)
        first = [user(BIG, mark=True)]
        ask(c, first)
        grown = [user(BIG), {"role": "assistant", "content": "ok"}, user("next", mark=True)]
        u = ask(c, grown).usage
        assert u.cache_read_input_tokens > 1024  # marker moved; prefix still hits
        assert 0 < u.cache_creation_input_tokens < 100
        assert ask(c, [user(BIG + "!", mark=True)]).usage.cache_read_input_tokens == 0


def test_minimum_and_one_hour_split():
    with FakeUpstream([{"text": "ok"}] * 9, clock="manual") as up:
        c = client(up)
        u = ask(c, [user("small", mark=True)]).usage
        assert (u.cache_creation_input_tokens, u.cache_read_input_tokens) == (0, 0)
        msgs = [user(BIG, ttl="1h"), {"role": "assistant", "content": "ok"}, user(BIG, mark=True)]
        u = ask(c, msgs).usage
        assert u.cache_creation.ephemeral_1h_input_tokens > 1024
        assert u.cache_creation.ephemeral_5m_input_tokens > 1024
        up.clock.advance(400)  # the 5m entry is gone, the 1h one is not
        u = ask(c, msgs).usage
        assert u.cache_read_input_tokens > 1024
        assert u.cache_creation.ephemeral_1h_input_tokens == 0
        assert u.cache_creation.ephemeral_5m_input_tokens > 1024


def test_twenty_block_lookback():
    for extra, hits in ((18, True), (20, False)):
        with FakeUpstream([{"text": "ok"}] * 9, clock="manual") as up:
            c = client(up)
            ask(c, [user(BIG, mark=True)])
            blocks = [{"type": "text", "text": BIG}]
            blocks += [{"type": "text", "text": f"b{i}"} for i in range(extra)]
            blocks.append({"type": "text", "text": "end", "cache_control": {"type": "ephemeral"}})
            u = ask(c, [{"role": "user", "content": blocks}]).usage
            assert bool(u.cache_read_input_tokens) is hits, extra


def test_tool_choice_and_model_in_key():
    for flag, reads in ((False, True), (True, False)):
        with FakeUpstream([{"text": "ok"}] * 9, tool_choice_in_key=flag) as up:
            c = client(up)
            ask(c, [user(BIG, mark=True)], tools=[TOOL])
            u = ask(c, [user(BIG, mark=True)], tools=[TOOL], tool_choice={"type": "none"}).usage
            assert bool(u.cache_read_input_tokens) is reads
            u = ask(c, [user(BIG, mark=True)], tools=[TOOL], model="claude-haiku-4-5").usage
            assert u.cache_read_input_tokens == 0


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}
RES = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}


@pytest.mark.parametrize(
    "body, needle",
    [
        ({"messages": [user("a"), USE]}, "without `tool_result` blocks immediately after"),
        ({"messages": [user("a"), USE, user("b")]}, "without `tool_result` blocks immediately"),
        (
            {
                "messages": [
                    user("a"),
                    USE,
                    {"role": "user", "content": [{"type": "text", "text": "first"}, RES["content"][0]]},
                ]
            },
            "without `tool_result`",
        ),
        ({"messages": [user("a"), RES]}, "unexpected `tool_use_id`"),
        ({"messages": [user("a"), USE, {"role": "user", "content": RES["content"] * 2}]}, "single result"),
        ({"messages": [user("a"), {"role": "tool", "content": "x"}]}, "role: Input should be"),
        ({"messages": [user("a"), {"role": "system", "content": "x"}]}, "role 'system'"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "first message"),
        ({"messages": [user("a")], "extra_body": {"cg_note": 1}}, "cg_note: Extra inputs"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "non-empty"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 5,
                    }
                ]
            },
            "Found 5",
        ),
        (
            {"messages": [user("a", mark=True), {"role": "assistant", "content": "b"}, user("c", ttl="1h")]},
            "must not come after",
        ),
        ({"messages": [user("a")], "tool_choice": {"type": "none"}}, "while providing tools"),
        ({"messages": [user("a")], "tools": [TOOL, TOOL]}, "names must be unique"),
        (
            {
                "messages": [
                    user("a"),
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "hm", "signature": "forged"},
                            {"type": "text", "text": "t"},
                        ],
                    },
                    user("b"),
                ]
            },
            "Invalid `signature`",
        ),
    ],
)
def test_bad_requests(body, needle):
    with FakeUpstream([{"text": "ok"}]) as up:
        body = dict(body)
        body.setdefault("tools", [TOOL] if USE in body["messages"] or RES in body["messages"] else anthropic.NOT_GIVEN)
        with pytest.raises(anthropic.BadRequestError) as e:
            ask(client(up), **body)
        assert e.value.body["type"] == "error"
        assert e.value.body["error"]["type"] == "invalid_request_error"
        assert needle in e.value.body["error"]["message"]
        assert up.requests[0]["status"] == 400


def test_good_tool_round_with_text_after_and_neighbouring_users():
    with FakeUpstream([{"text": "ok"}] * 3) as up:
        after = {"role": "user", "content": RES["content"] + [{"type": "text", "text": "and"}]}
        assert ask(client(up), [user("a"), USE, after], tools=[TOOL]).content[0].text == "ok"
        assert ask(client(up), [user("a"), USE, RES, user("b")], tools=[TOOL])
        ok = {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": sign("hm")}, {"type": "text", "text": "t"}],
        }
        assert ask(client(up), [user("a"), ok, user("b")])


@pytest.mark.parametrize(
    "status, exc",
    [
        (429, anthropic.RateLimitError),
        (529, anthropic.InternalServerError),
        (500, anthropic.InternalServerError),
        (413, anthropic.APIStatusError),
    ],
)
def test_http_faults_then_the_turn_is_served(status, exc):
    fault = {"kind": "http_error", "status": status, "retry_after": 0}
    with FakeUpstream([{"text": "one", "fault": fault}, {"text": "two"}]) as up:
        with pytest.raises(exc) as e:
            ask(client(up), [user("a")])
        assert e.value.status_code == status
        assert ask(client(up), [user("a")]).content[0].text == "one"
        assert ask(client(up), [user("a")]).content[0].text == "two"
        assert up.cache.entries == {}


def test_sdk_retries_by_itself():
    fault = {"kind": "http_error", "status": 529, "retry_after": 0, "times": 2}
    with FakeUpstream([{"text": "one", "fault": fault}]) as up:
        assert ask(client(up, max_retries=3), [user("a")]).content[0].text == "one"
        assert [r["status"] for r in up.requests] == [529, 529, 200]


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_cut_mid_stream_and_mid_json(how):
    with FakeUpstream([{"text": "long " * 99, "fault": {"kind": "cut", "how": how, "times": 2}}]) as up:
        with pytest.raises(Exception):  # noqa: B017 - the SDK lets its transport's own errors through
            ask(client(up), [user("a")])
        seen = []
        with (
            pytest.raises(Exception),  # noqa: B017
            client(up).messages.stream(model="claude-sonnet-5", max_tokens=500, messages=[user("a")]) as s,
        ):
            for event in s:
                seen.append(event.type)
        assert how == "rst" or "message_start" in seen
        assert ask(client(up), [user("a")]).stop_reason == "end_turn"  # same turn, now whole


def test_sse_error_slow_pings_stall_and_gateway():
    script = [
        {
            "text": "x " * 99,
            "fault": [{"kind": "sse_error"}, {"kind": "slow_first_byte", "seconds": 0.3, "ping_every_s": 0.1}],
        },
        {"text": "y", "fault": {"kind": "stall", "seconds": 0.2, "ping_every_s": 0.05}},
        {"text": "z", "fault": {"kind": "gateway"}},
    ]
    with FakeUpstream(script) as up:
        kw = {"model": "claude-sonnet-5", "max_tokens": 500, "messages": [user("a")]}
        with pytest.raises(anthropic.APIStatusError), client(up).messages.stream(**kw) as s:
            s.until_done()
        t = time.time()
        with client(up).messages.stream(**kw) as s:
            assert s.get_final_text().startswith("x ")
        with client(up).messages.stream(**kw) as s:
            assert s.get_final_text() == "y"
        assert time.time() - t > 0.45
        with pytest.raises(anthropic.InternalServerError):
            ask(client(up), [user("a")])


def test_truncation_at_max_tokens():
    with FakeUpstream(
        [{"text": "word " * 500}] * 2 + [{"text": "word " * 50, "fault": {"kind": "max_tokens", "tokens": 5}}]
    ) as up:
        m = ask(client(up), [user("a")], max_tokens=50)
        assert m.stop_reason == "max_tokens" and m.usage.output_tokens == 50
        assert len(m.content[0].text) == 200
        assert ask(client(up), [user("a")], max_tokens=5000).stop_reason == "end_turn"
        assert ask(client(up), [user("a")]).stop_reason == "max_tokens"


def test_verdicts_and_damage():
    spec = {
        "labels": r"^\[(\d+)\]",
        "keep": ["2"],
        "item": {"i": "$label", "needed_by": "none", "quote": "", "verdict": "drop"},
        "keep_item": {"i": "$label", "needed_by": "a", "quote": "q", "verdict": "keep"},
    }
    inventory = user("\n".join(f"[{i}] 900 tokens" for i in range(1, 5)))
    shapes = ["bracket_prose", "unclosed_array", "empty", "null_fields", "fabricated_quote"]
    with FakeUpstream([{"verdicts": spec}] + [{"verdicts": {**spec, "shape": s}} for s in shapes]) as up:
        got = json.loads(ask(client(up), [inventory]).content[0].text)
        assert [g["verdict"] for g in got] == ["drop", "keep", "drop", "drop"]
        replies = [ask(client(up), [inventory]) for _ in shapes]
        assert replies[0].content[0].text.startswith("Candidates: [0, 1]")
        with pytest.raises(ValueError):
            json.loads(replies[1].content[0].text)
        assert replies[2].content == []
        assert "nobody in this transcript" in replies[4].content[0].text
    good = json.dumps(got)
    for shape in [
        "prose_around",
        "trailing_bracket",
        "code_fence",
        "not_json",
        "single_quotes",
        "trailing_comma",
        "wrapped_object",
        "duplicate_label",
        "missing_label",
        "unknown_label",
        "empty_objects",
        "missing_field",
        "wrong_types",
    ]:
        assert damage(good, shape) != good


def test_routes_find_count_and_control():
    script = {
        "routes": [
            {
                "name": "side",
                "match": {"model": "*haiku*", "tools": False},
                "then": "repeat",
                "turns": [{"text": "title"}],
            },
            {
                "name": "main",
                "turns": [{"tool": "expand", "input": {"id": {"$find": r"<<cg:([0-9a-f]+)>>", "in": "messages"}}}],
            },
        ]
    }
    with FakeUpstream(script, clock="manual") as up:
        c = client(up)
        m = ask(c, [user("see <<cg:beef01>> and more")], tools=[{**TOOL, "name": "expand"}])
        assert m.content[0].input == {"id": "beef01"}
        assert ask(c, [user("t")], model="claude-haiku-4-5").content[0].text == "title"
        assert ask(c, [user("t")]).content[0].text == "Done."
        n = c.messages.count_tokens(model="claude-sonnet-5", messages=[user(BIG)]).input_tokens
        assert n > 1024
        t = post(up, "clock", {"advance_s": 250})["now"]
        assert abs(t - up.clock.now()) < 1e-6
        post(up, "faults", {"fault": {"kind": "http_error", "status": 429}, "match": {"last_user~": "poison"}})
        assert ask(c, [user("fine")])
        with pytest.raises(anthropic.RateLimitError):
            ask(c, [user("poison")])
        assert [r["route"] for r in up.requests if r["path"].endswith("count_tokens")] == ["count_tokens"]


def test_reset_starts_the_script_its_faults_and_the_cache_again():
    fault = {"kind": "http_error", "status": 529}
    with FakeUpstream([{"text": "one", "fault": fault}]) as up:
        for _ in range(2):
            with pytest.raises(anthropic.InternalServerError):
                ask(client(up), [user(BIG, mark=True)])
            m = ask(client(up), [user(BIG, mark=True)])
            assert m.content[0].text == "one" and m.usage.cache_creation_input_tokens > 1024
            post(up, "reset", {})
        assert up.requests == []


def test_threads_served_lost_and_refused():
    start = [{"role": "user", "content": "go"}]
    beta = {"betas": ["message-threads-2026-08-12"]}
    with FakeUpstream([{"tool": "Read"}, {"text": "two"}, {"text": "x"}]) as up:
        make = client(up).beta.messages.create
        kw = dict(model="claude-sonnet-5", max_tokens=50, **beta)
        a = make(messages=start, tools=[TOOL], extra_body={"thread": {"type": "create"}}, **kw)
        res = [{"role": "user", "content": [{"type": "tool_result", "content": "r", "tool_use_id": a.content[0].id}]}]
        go = {"thread": {"type": "continue", "previous_message_id": a.id}}
        assert make(messages=res, extra_body=go, **kw).content[0].text == "two"
        up.threads.clear()
        with pytest.raises(anthropic.NotFoundError) as e:
            make(messages=res, extra_body=go, **kw)
        assert e.value.body["error"]["details"]["error_code"] == "thread_not_found"
        up.threads_mode = "unsupported"
        with pytest.raises(anthropic.BadRequestError) as e:
            make(messages=start, extra_body={"thread": {"type": "create"}}, **kw)
        assert e.value.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_auth_and_version_headers():
    with FakeUpstream() as up:
        req = urllib.request.Request(up.base_url + "/v1/messages", b"{}")
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(req)
        assert e.value.code == 401


def test_tool_runner_session():
    beta_tool = anthropic.beta_tool

    @beta_tool
    def read(path: str) -> str:
        """Read a file.

        Args:
            path: the file
        """
        return BIG + path

    script = [{"tool": "read", "input": {"path": f"f{i}"}} for i in range(4)] + [{"text": "end"}]
    with FakeUpstream(script) as up:
        runner = client(up).beta.messages.tool_runner(
            model="claude-sonnet-5",
            max_tokens=500,
            tools=[read],
            cache_control={"type": "ephemeral"},
            messages=[{"role": "user", "content": "go"}],
        )
        last = runner.until_done()
        assert last.content[0].text == "end"
        reads = [r["usage"]["cache_read_input_tokens"] for r in up.requests]
        assert len(reads) == 5 and reads[0] == 0 and reads[-1] > reads[2] > 0
