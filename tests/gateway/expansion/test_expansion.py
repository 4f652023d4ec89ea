"""Recovery on the wire: hidden where a reply only expands, shown where it mixes; streamed and not."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import EXPAND_TOOL, Answer, Talk, expands, find_markers, live, output, scripted, swept

from cg.gateway.events import Fault, Mode, Outcome, Spend
from cg.gateway.upstream.contract import Cut
from cg.sweep.core.expansion import NEVER_EXISTED
from cg.sweep.store import Limits
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
READ = {"name": "Read", "input": {"file_path": "src/new.py"}}


def results_of(body: bytes) -> dict[str, str]:
    """The text of each tool result in a body."""
    found = {}
    for message in json.loads(body)["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                found[block["tool_use_id"]] = block["content"]
    return found


def kinds(answer: Answer) -> list[str]:
    return [block["type"] for block in answer.content]


def no_call_of_ours(answer: Answer) -> bool:
    return EXPAND_TOOL.encode() not in answer.body


@both
def test_a_reply_that_only_expands_is_answered_inside(stream: bool) -> None:
    """The client sees one message: what was said and thought before the call, then what was said after; the usage is
    the sum, and the upstream got the original byte for byte."""

    async def session() -> None:
        turns = [expands(thinking="I need f0.", text="Let me look. "), {"text": "Found it."}]
        async with live(scripted(*turns)) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            before = len(gateway.sent)
            answer = await gateway.post(talk.say("Show me f0.").body())
            inner, usages = gateway.bodies()[before + 1], [r["usage"] for r in gateway.sent[before:]]
            assert kinds(answer) == ["thinking", "text", "text"]
            assert [b.get("text") for b in answer.content[1:]] == ["Let me look. ", "Found it."]
            assert answer.content[0]["thinking"] == "I need f0." and answer.content[0]["signature"]
            assert no_call_of_ours(answer) and answer.message["stop_reason"] == "end_turn"
            assert output(0) in results_of(inner).values()
            said = json.loads(inner)["messages"][-2]
            assert [b["type"] for b in said["content"]] == ["thinking", "text", "tool_use"]
            for tier in ("input_tokens", "cache_read_input_tokens", "output_tokens", "cache_creation_input_tokens"):
                assert answer.message["usage"][tier] == sum(u[tier] for u in usages)
            assert gateway.recorder.recoveries == [(Mode.HIDDEN, Outcome.ORIGINAL, 1)]
            assert [why for why, _ in gateway.recorder.usages].count(Spend.RECOVERY) == 1

    asyncio.run(session())


def test_a_stream_is_one_stream_whatever_happens_inside() -> None:
    """One start, one stop, blocks numbered without a gap, each started once and stopped once."""

    async def session() -> None:
        turns = [expands(text="First. "), expands(1, text="Second. "), {"text": "Third.", "tools": [READ]}]
        async with live(scripted(*turns)) as gateway:
            talk = Talk(top={"stream": True})
            await swept(gateway, talk)
            answer = await gateway.post(talk.say("Show me.").body())
            told = [event.data() for event in answer.events]
            assert [d["type"] for d in told].count("message_start") == 1
            assert told[-1]["type"] == "message_stop" and [d["type"] for d in told].count("message_delta") == 1
            for edge in ("content_block_start", "content_block_stop"):
                assert [d["index"] for d in told if d["type"] == edge] == [0, 1, 2, 3]
            assert kinds(answer) == ["text", "text", "text", "tool_use"]
            assert answer.message["stop_reason"] == "tool_use" and no_call_of_ours(answer)
            assert answer.content[3]["input"] == READ["input"]

    asyncio.run(session())


@both
def test_at_most_three_rounds_then_the_call_passes(stream: bool) -> None:
    """A model that only ever expands is not kept going by the gateway; the client answers the fourth call itself."""

    async def session() -> None:
        async with live(scripted(*[expands(n, text=f"{n} ") for n in range(5)])) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            before = len(gateway.sent)
            answer = await gateway.post(talk.say("Show me all.").body())
            assert len(gateway.sent) - before == 4
            assert kinds(answer) == ["text"] * 4 + ["tool_use"]
            assert "".join(b["text"] for b in answer.content[:4]) == "0 1 2 3 "
            assert gateway.recorder.recoveries.count((Mode.SHOWN, Outcome.ROUNDS_SPENT, 3)) == 1

    asyncio.run(session())


@both
@pytest.mark.parametrize("ours_first", [True, False])
def test_a_mixed_reply_passes_and_later_copies_carry_the_original(stream: bool, ours_first: bool) -> None:
    """The reply is the upstream's own; the client's error result is replaced, byte for byte the same ever after."""

    async def session() -> None:
        call = expands()
        calls = [{"name": EXPAND_TOOL, "input": call["input"]}, READ]
        turns = [{"text": "Both. ", "tools": calls if ours_first else calls[::-1]}, {"text": "Seen."}, {"text": "Yes."}]
        async with live(scripted(*turns)) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            answer = await gateway.post(talk.say("Show me f0.").body())
            told = gateway.sent[-1]["reply"]["content"]
            assert answer.content == told and len(told) == 3
            ours = next(b["id"] for b in told if b.get("name") == EXPAND_TOOL)
            for _ in range(2):
                await gateway.post(talk.answered(told).body() if _ == 0 else talk.say("More?").body())
                assert results_of(gateway.bodies()[-1])[ours] == output(0)
                assert gateway.sent[-1]["status"] == 200
            assert gateway.recorder.recoveries == [(Mode.SHOWN, Outcome.ORIGINAL, 0)]

    asyncio.run(session())


@both
@pytest.mark.parametrize("kind", ["unknown", "no id", "expired"])
def test_an_id_that_brings_nothing_back_says_why(stream: bool, kind: str) -> None:
    """Never existed and no longer kept are different answers, and both are answers: the model goes on."""

    async def session() -> None:
        given = {"unknown": {"id": "0123456789abcdef"}, "no id": {"key": 1}, "expired": expands()["input"]}[kind]
        store = MemoryStore(Limits(payload_ttl_s=7200.0))
        turns = [{"tool": EXPAND_TOOL, "input": given}, {"text": "I see."}]
        async with live(scripted(*turns), store=store) as gateway:
            talk = Talk(top={"stream": stream})
            keys = await swept(gateway, talk)
            fresh = Talk(top={"stream": stream})  # a compacted history: the originals are not in it any more
            if kind == "expired":
                gateway.clock.advance(3 * 7200)
                store.sweep_ages(gateway.clock.now())
            fresh.messages = [{"role": "user", "content": f"Summary; <<cg:{keys[0]}>> was long. Go on."}]
            answer = await gateway.post(fresh.body())
            (answered,) = results_of(gateway.bodies()[-1]).values()
            if kind == "expired":
                assert "no longer kept" in answered and "Read" in answered and "src/0.py" in answered
                assert gateway.recorder.recoveries == [(Mode.HIDDEN, Outcome.EXPIRED, 1)]
            else:
                assert answered == NEVER_EXISTED
                assert gateway.recorder.recoveries == [(Mode.HIDDEN, Outcome.UNKNOWN, 1)]
            assert [b["text"] for b in answer.content] == ["I see."]

    asyncio.run(session())


@both
def test_after_compaction_the_store_answers(stream: bool) -> None:
    """The history that is left holds no original; the thread's store does."""

    async def session() -> None:
        async with live(scripted(expands(), {"text": "I see."})) as gateway:
            talk = Talk(top={"stream": stream})
            keys = await swept(gateway, talk)
            compacted = Talk(top={"stream": stream})
            compacted.messages = [{"role": "user", "content": f"Summary; <<cg:{keys[0]}>> was long. Go on."}]
            answer = await gateway.post(compacted.body())
            assert [b["text"] for b in answer.content] == ["I see."]
            assert list(results_of(gateway.bodies()[-1]).values()) == [output(0)]

    asyncio.run(session())


@both
def test_after_a_restart_the_same_bytes_leave_and_an_id_still_answers(stream: bool, tmp_path: Path) -> None:
    """Rule 7 on the wire: another process over the same state replays byte for byte, and expands."""

    async def session() -> None:
        path = tmp_path / "state" / "cg.db"
        with SqliteStore(path, bodies_in_memory=True) as store:
            async with live(scripted(expands(), {"text": "I see."}), store=store) as gateway:
                talk = Talk(top={"stream": stream})
                await swept(gateway, talk)
                sent = gateway.bodies()[-1]
                body = talk.body()
                with SqliteStore(path, bodies_in_memory=True) as reopened:
                    async with live(None, store=reopened, up=gateway.up) as again:
                        await again.wait(700)
                        answer = await again.post(body)
                        assert again.bodies()[-2] == sent
                        assert output(0) in results_of(again.bodies()[-1]).values()
                        assert [b["text"] for b in answer.content] == ["I see."]
                        assert not again.recorder.faults

    asyncio.run(session())


@both
def test_another_thread_reads_nothing(stream: bool) -> None:
    """A sub-agent, another session and another credential each get "never existed" for an id that is not theirs."""

    async def session() -> None:
        others: list[dict[str, str]] = [
            {"x_claude_code_agent_id": "agent"},
            {"x_claude_code_session_id": "another"},
            {"x_api_key": "another"},
        ]
        turns = [turn for _ in others for turn in ({"text": "Hi."}, expands(), {"text": "I see."})]
        async with live(scripted(*turns)) as gateway:
            keys = await swept(gateway, Talk(top={"stream": stream}))
            for headers in others:
                agent = Talk(top={"stream": stream})
                await gateway.post(agent.body(), **headers)
                await gateway.post(agent.say(f"Expand <<cg:{keys[0]}>>.").body(), **headers)
                assert list(results_of(gateway.bodies()[-1]).values()) == [NEVER_EXISTED]

    asyncio.run(session())


def test_what_was_recovered_is_never_removed_again() -> None:
    """Rule 9: neither the answer nor a later copy of the same text is a candidate, at any later cold request."""

    async def session() -> None:
        turns = [
            {"text": "Both. ", "tools": [{"name": EXPAND_TOOL, "input": expands()["input"]}, READ]},
            {"text": "Ok."},
        ]
        async with live(scripted(*turns)) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            answer = await gateway.post(talk.say("Show me f0.").body())
            ours = next(b["id"] for b in answer.content if b.get("name") == EXPAND_TOOL)
            await gateway.post(talk.answered(answer.content).body())
            copy = talk.call(output(0), path="src/0.py")
            await gateway.post(talk.calls(14).body())
            await gateway.wait(241)
            await gateway.wait(1000)
            await gateway.post(talk.say("And now?").body())
            last = results_of(gateway.bodies()[-1])
            assert len(find_markers(json.dumps(last))) > 11
            assert last[ours] == last[copy] == output(0)

    asyncio.run(session())


@pytest.mark.parametrize(
    "around", [lambda found: [found], lambda found: {**found, "$find": "cg:[0-9a-f]{16}"}], ids=["list", "prefix"]
)
def test_a_call_that_writes_the_id_another_way_is_answered_inside(around: Any) -> None:
    """As a list of one, or with the marker's prefix."""

    async def session() -> None:
        turn = expands()
        turn["input"]["id"] = around(turn["input"]["id"])
        async with live(scripted(turn, {"text": "Found it."})) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            before = len(gateway.sent)
            answer = await gateway.post(talk.say("Show me f0.").body())
            assert no_call_of_ours(answer) and output(0) in results_of(gateway.bodies()[before + 1]).values()

    asyncio.run(session())


def test_a_read_that_the_client_will_not_repeat_restores_the_output() -> None:
    """Clients answer a second read of an unchanged file with a notice; the first output is whole again then, for good."""

    async def session() -> None:
        async with live(scripted()) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            talk.call("File unchanged since last read. Refer to the earlier result.", path="src/3.py")
            for _ in range(2):
                await gateway.post(talk.body() if not _ else talk.say("Go on.").body())
                assert results_of(gateway.bodies()[-1])["toolu_003"] == output(3)
                assert len(find_markers(gateway.bodies()[-1].decode())) == 10

    asyncio.run(session())


@both
@pytest.mark.parametrize("fault", [{"kind": "http_error", "status": 529}, {"kind": "gateway"}])
def test_an_inner_call_that_fails_lets_the_call_pass(stream: bool, fault: dict[str, Any]) -> None:
    """The client gets the upstream's own reply, answers it with an error, and later copies carry the original."""

    async def session() -> None:
        turns = [expands(text="Let me look. "), {"text": "Unused.", "fault": fault}, {"text": "Seen."}]
        async with live(scripted(*turns)) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            answer = await gateway.post(talk.say("Show me f0.").body())
            assert kinds(answer) == ["text", "tool_use"] and answer.status == 200
            assert gateway.recorder.faults[Fault.RECOVERY] == 1
            await gateway.post(talk.answered(answer.content).body())
            assert results_of(gateway.bodies()[-1])[answer.content[1]["id"]] == output(0)

    asyncio.run(session())


def test_a_stream_that_is_cut_while_held_ends_as_it_came() -> None:
    """What was held leaves, and then the same end: the client sees what it would have seen without a gateway."""

    async def session() -> None:
        cut = {"kind": "cut", "after_events": 6}
        async with live(scripted(expands(text="Hm. ", fault=cut))) as gateway:
            talk = Talk(top={"stream": True})
            await swept(gateway, talk)
            outbound = await gateway.messages.handle(_inbound(talk.say("Show me f0.").body()))
            pieces = []
            with pytest.raises(Cut):
                async for piece in outbound.body:
                    pieces.append(piece)
            await outbound.close()
            assert b"".join(pieces).count(b"event: ") == 6
            assert EXPAND_TOOL.encode() in b"".join(pieces)
            assert not len(gateway.messages.timers._armed)  # a reply that did not arrive whole arms nothing

    asyncio.run(session())


def _inbound(body: bytes) -> Any:
    from wired import inbound

    return inbound(body)


# -- compressed replies --------------------------------------------------------------------------------------------------


class Compressing:
    """An upstream that compresses its replies, in pieces."""

    def __init__(self, inner: Any, coding: str, compressor: Any) -> None:
        self._inner, self._coding, self._compressor = inner, coding, compressor
        self.accepted: list[bytes] = []

    async def send(self, method: str, target: bytes, headers: Any, body: Any = b"", call: object = None) -> Any:
        self.accepted += [value for name, value in headers if name == b"accept-encoding"]
        reply = await self._inner.send(method, target, headers, body, call)
        return Compressed(reply, self._coding, self._compressor) if reply.status == 200 else reply

    async def aclose(self) -> None:
        await self._inner.aclose()


class Compressed:
    def __init__(self, reply: Any, coding: str, compressor: Any) -> None:
        self._reply, self._compressor = reply, compressor
        kept = [(n, v) for n, v in reply.headers if n != b"content-length"]
        self.status, self.headers = reply.status, [*kept, (b"content-encoding", coding.encode())]

    async def stream(self) -> AsyncIterator[bytes]:
        whole = b"".join([piece async for piece in self._reply.stream()])
        packed = self._compressor(whole)
        for at in range(0, len(packed), 97):
            yield packed[at : at + 97]

    async def close(self) -> None:
        await self._reply.close()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def brotli(data: bytes) -> bytes:
    return bytes(pytest.importorskip("brotli").compress(data))


def zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").compress(data))


CODINGS = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli),
    ("zstd", zstd),
]


@both
@pytest.mark.parametrize(("coding", "compressor"), CODINGS, ids=["gzip", "deflate", "raw-deflate", "br", "zstd"])
def test_compressed_replies_are_read_and_recovered(stream: bool, coding: str, compressor: Any) -> None:
    """Usage is learnt from them, and an expansion in them is answered; nothing is accepted that cannot be read."""

    async def session() -> None:
        compressor(b"")  # skips where the library is not installed
        async with live(scripted(expands(text="Look. "), {"text": "Found."})) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            squeezing = Compressing(gateway.messages._upstream, coding, compressor)
            gateway.messages._upstream = gateway.messages._expander._upstream = squeezing
            answer = await gateway.post(talk.say("Show me.").body(), accept_encoding=f"{coding}, nonsense;q=0.5")
            assert [b["text"] for b in answer.content] == ["Look. ", "Found."]
            assert b"content-encoding" not in dict(answer.headers)
            assert gateway.recorder.usages[-1][1] is not None
            assert squeezing.accepted == [coding.encode()] * 2

    asyncio.run(session())
