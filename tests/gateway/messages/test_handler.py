"""The sweep on live traffic: what leaves, what comes back, what is learnt; the rules that never bend, on the wire."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, DECLARATION, WORK, Live, Talk, find_markers, inbound, live, read_out, swept, until

from cg.gateway.events import Fault, Spend
from cg.gateway.exchange import first
from cg.gateway.upstream.contract import UpstreamError
from cg.sweep.ledger import Reason
from cg.sweep.store_memory import MemoryStore
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Ending, Thread, Usage

both = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])


def fail_next(gateway: Live, status: int, *, times: int = 1, marked: bool = False) -> None:
    """The upstream refuses the next bodies; with `marked` only those that hold a marker or our tool."""
    match = {"any~": "cg_expand|<<cg:"} if marked else {}
    fault = {"kind": "http_error", "status": status, "message": "no", "times": times}
    gateway.up.queue.append({"fault": fault, "match": match})


@both
def test_every_byte_of_a_reply_is_the_upstreams(stream: bool) -> None:
    """A reply without a call of ours passes untouched, with its headers; hop-by-hop ones end here."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            talk = Talk(top={"stream": stream})
            answer = await gateway.post(talk.body())
            assert answer.status == 200 and answer.message["content"][0]["text"] == "Working on it."
            assert first(answer.headers, b"request-id") is not None
            assert first(answer.headers, b"transfer-encoding") is None
            if not stream:
                assert json.loads(answer.body) == gateway.sent[-1]["reply"]

    asyncio.run(session())


def test_our_headers_stay_here_and_the_callers_go_on() -> None:
    """Nothing of ours, and nothing that belongs to one connection, reaches the upstream; betas and query do."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            more = {"x_cg_session": "mine", "x_cg_token": "secret", "anthropic_beta": "a-1,b-2", "connection": "x-hop"}
            await gateway.post(Talk().body(), x_hop="1", **more)
            got = {name.lower(): value for name, value in gateway.sent[-1]["headers"]}
            assert not [name for name in got if name.startswith("x-cg-")]
            assert "x-hop" not in got and got["anthropic-beta"] == "a-1,b-2"
            assert gateway.sent[-1]["path"] == "/v1/messages?beta=true"

    asyncio.run(session())


@both
def test_usage_is_learnt_while_the_reply_passes(stream: bool) -> None:
    """By tier, from the events of a stream or from the message, and the thread learns its bytes a token."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            talk = Talk(top={"stream": stream}).calls(4)
            await gateway.post(talk.body())
            told = gateway.sent[-1]["usage"]
            written = told["cache_creation_input_tokens"]
            seen = Usage(told["input_tokens"], 0, written, 0, told["output_tokens"])
            assert gateway.recorder.usages == [(Spend.REQUEST, seen)]
            (thread,) = gateway.sweep._known
            state = gateway.store.load(thread)
            assert state.usages == (seen,)
            sent = len(gateway.bodies()[-1])
            assert state.bytes_per_token == pytest.approx(sent / (seen.fresh + seen.write_5m))

    asyncio.run(session())


@pytest.mark.parametrize("top", [{}, {"tools": []}], ids=["with our tool", "without"])
def test_a_stream_that_is_cut_ends_so_and_is_counted(top: dict[str, Any]) -> None:
    """All that came goes on, then the same end; its input was charged for, and nothing waits for its gap."""

    async def session() -> None:
        cut = {"text": "A long answer. " * 20, "fault": {"kind": "cut", "after_events": 5}}
        async with live([{"name": "work", "turns": [cut], "then": "repeat"}]) as gateway:
            outbound = await gateway.messages.handle(inbound(Talk(top={"stream": True, **top}).calls(4).body()))
            pieces = []
            with pytest.raises(UpstreamError):
                async for piece in outbound.body:
                    pieces.append(piece)
            await outbound.close()
            assert b"".join(pieces).count(b"event: ") == 5
            ((why, usage),) = gateway.recorder.usages
            assert why is Spend.REQUEST and usage is not None and usage.write_5m > 1000
            assert not len(gateway.messages.timers._armed)

    asyncio.run(session())


# -- rule 7 --------------------------------------------------------------------------------------------------------------


def test_rule_7_what_was_removed_leaves_the_same_bytes_on_every_later_request() -> None:
    """36 replays: at every later request, warm or cold, what stands before the new messages is what was sent before."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            before = messages_of(gateway.bodies("work")[-1])
            for n in range(36):
                talk.say(f"Step {n}.")
                await gateway.post(talk.body())
                now = messages_of(gateway.bodies("work")[-1])
                assert now[: len(before)] == before
                assert DECLARATION in gateway.bodies("work")[-1]
                assert gateway.recorder.turns[-1].replayed == 11
                before = now
            assert all(record["status"] == 200 for record in gateway.sent)

    asyncio.run(session())


def messages_of(body: bytes) -> list[Any]:
    """The messages without their breakpoints, and with the one-block shorthand written out."""
    messages = json.loads(body)["messages"]
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        for block in message["content"]:
            block.pop("cache_control", None)
    return messages


# -- rule 10 -------------------------------------------------------------------------------------------------------------


class Stuck(MemoryStore):
    """A store that can be told to keep everybody waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open, self.n_waiting = threading.Event(), 0
        self.is_open.set()

    def load(self, thread: str) -> Any:
        if not self.is_open.is_set():
            self.n_waiting += 1
            assert self.is_open.wait(60)
        return super().load(thread)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Everybody who asks in the meantime waits until the end of it."""
        self.is_open.clear()
        try:
            yield
        finally:
            self.is_open.set()


def ended(gateway: Live) -> bool:
    """Whether no turn holds or wants a thread's lock any more."""
    return len(gateway.messages._turns._threads._held) == 0


def test_rule_10_past_the_budget_the_last_frozen_form_leaves() -> None:
    """A store that hangs costs the budget and no more; the removals are replayed from memory, the turn is counted."""

    async def session() -> None:
        store = Stuck()
        async with live([ALL_SPENT, WORK], store=store, budget_ms=20_000) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            frozen = gateway.bodies("work")[-1]
            gateway.messages._turns._budget_s = 0.2
            with store.held():
                answer = await gateway.post(talk.say("Go on.").body())
            assert answer.status == 200
            body = gateway.bodies("work")[-1]
            assert find_markers(body.decode()) == find_markers(frozen.decode())
            assert DECLARATION in body
            assert gateway.recorder.turns[-1].reason is Reason.FAULT
            assert gateway.recorder.faults[Fault.WATCHDOG] == 1
            await until(lambda: ended(gateway))  # the turn that nobody waits for ends without deciding anything
            gateway.messages._turns._budget_s = 20.0
            await gateway.post(talk.say("Go on.").body())
            assert gateway.recorder.turns[-1].replayed == 11

    asyncio.run(session())


def test_rule_10_with_nothing_known_the_clients_own_bytes_leave() -> None:
    """A hanging store at the very first request changes nothing."""

    async def session() -> None:
        store = Stuck()
        async with live([WORK], store=store, budget_ms=200) as gateway:
            body = Talk().body()
            with store.held():
                answer = await gateway.post(body)
            assert answer.status == 200 and gateway.bodies()[-1] == body
            assert gateway.recorder.faults[Fault.WATCHDOG] == 1

    asyncio.run(session())


def test_a_store_that_hangs_does_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn has left and cannot be written down: the stop waits its time, and goes on."""
    monkeypatch.setattr("cg.gateway.messages.handler.WRITE_DOWN_S", 0.2)

    class Unwritable(MemoryStore):
        """Takes nothing until it is let."""

        is_open = threading.Event()

        def turned(self, *values: Any, **named: Any) -> None:
            assert self.is_open.wait(60)
            super().turned(*values, **named)

    async def session() -> None:
        store = Unwritable()
        try:
            async with live([WORK], store=store) as gateway:
                answer = await read_out(await gateway.messages.handle(inbound(Talk().body())))
                assert answer.status == 200 and gateway.messages._turns._unwritten
                await gateway.messages.close()
                assert gateway.messages._turns._unwritten
                store.is_open.set()
                await until(lambda: not gateway.messages._turns._unwritten)
        finally:
            store.is_open.set()

    asyncio.run(session())


# -- rule 11 -------------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("status", [400, 413])
def test_rule_11_a_refused_body_of_ours_is_followed_by_the_clients_own(stream: bool, status: int) -> None:
    """Once, and what the refused body carried is revoked for good: later bodies hold the outputs whole."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            fail_next(gateway, status, marked=True)
            body = talk.say("Go on.").body()
            before = len(gateway.sent)
            answer = await gateway.post(body)
            assert answer.status == 200 and answer.content[0]["text"] == "Working on it."
            assert gateway.bodies()[before + 1 :] == [body]
            assert gateway.recorder.resents == [status]
            (thread,) = gateway.sweep._known
            assert list(gateway.store.load(thread).ended.values()) == [Ending.REVOKED] * 11
            await gateway.post(talk.say("Go on.").body())
            assert find_markers(gateway.bodies()[-1].decode()) == []
            assert gateway.store.totals()["events"]["sweep_revoked"] == 11

    asyncio.run(session())


def test_rule_11_an_error_that_the_clients_own_body_gets_too_is_the_clients() -> None:
    """Then nothing is revoked, and the answer is the one to the client's own body."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            fail_next(gateway, 400, times=2)
            answer = await gateway.post(talk.say("Go on.").body())
            assert answer.status == 400 and json.loads(answer.body)["error"]["message"] == "no"
            await gateway.post(talk.say("Go on.").body())
            assert len(find_markers(gateway.bodies()[-1].decode())) == 11

    asyncio.run(session())


def test_rule_11_a_thread_that_is_refused_for_our_tool_alone_is_left_alone() -> None:
    """A body that only declares the tool is refused once; from then on the thread passes untouched."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            fail_next(gateway, 400, marked=True)
            for _ in range(2):
                body = talk.say("Hello?").body() if _ else talk.body()
                answer = await gateway.post(body)
                assert answer.status == 200 and gateway.bodies()[-1] == body
            assert gateway.recorder.resents == [400]
            assert gateway.recorder.turns[-1].reason is Reason.BYPASSED

    asyncio.run(session())


def test_rule_11_a_thread_that_is_left_alone_is_so_after_a_restart(tmp_path: Path) -> None:
    """The refusal is kept with the thread: another process declares nothing in it either, and counts none."""

    async def session() -> None:
        path, talk = tmp_path / "cg.db", Talk()
        with SqliteStore(path, bodies_in_memory=True) as store:
            async with live([WORK], store=store) as gateway:
                fail_next(gateway, 400, marked=True)
                await gateway.post(talk.body())
                with SqliteStore(path, bodies_in_memory=True) as again:
                    async with live([WORK], store=again, up=gateway.up) as other:
                        body = talk.say("Hello?").body(system="another: the prefix is lost, so the tool might come in")
                        counted = json.loads((await other.count(body)).body)["input_tokens"]
                        usage = (await other.post(body)).message["usage"]
                        assert other.bodies()[-1] == body and not other.recorder.resents
                        assert counted == usage["input_tokens"] + usage["cache_creation_input_tokens"]
                        assert other.recorder.turns[-1].reason is Reason.BYPASSED
                        await other.post(Talk().body(), x_claude_code_session_id="another")
                        assert DECLARATION in other.bodies()[-1]

    asyncio.run(session())


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 529])
def test_other_errors_pass_as_they_are(status: int) -> None:
    """Nothing is sent twice for them, and `retry-after` reaches the client."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            fault = {"kind": "http_error", "status": status, "retry_after": 7}
            gateway.up.queue.append({"fault": fault})
            answer = await gateway.post(Talk().body())
            assert answer.status == status and first(answer.headers, b"retry-after") == b"7"
            assert len(gateway.sent) == 1 and not gateway.recorder.resents
            assert not len(gateway.messages.timers._armed)

    asyncio.run(session())


# -- rule 13 -------------------------------------------------------------------------------------------------------------


def test_rule_13_near_the_models_window_nothing_new_is_removed() -> None:
    """The client has to see the real size and compact: past 90 % of the window, raw, the turn says so."""

    async def session() -> None:
        routes = [ALL_SPENT, WORK]
        async with live(routes, bytes_per_token=4.0, context_tokens=10_000_000) as gateway:
            talk = Talk(top={"model": "claude-haiku-4-5"})
            await gateway.post(talk.body())
            await gateway.post(talk.calls(14, size=48_000).body())
            await gateway.wait(241)
            assert gateway.recorder.rows[-1].dropped == 11
            await gateway.wait(1000)
            await gateway.post(talk.say("And now? " + "x" * 100_000).body())
            assert len(gateway.bodies("work")[-1]) > 0.9 * 200_000 * 4
            assert gateway.recorder.turns[-1].reason is Reason.UNSWEPT_TOO_BIG
            assert find_markers(gateway.bodies("work")[-1].decode()) == []
            asks = len(gateway.recorder.rows)
            await gateway.wait(241)
            assert len(gateway.recorder.rows) == asks  # nothing could come of one

    asyncio.run(session())


# -- retries -------------------------------------------------------------------------------------------------------------


@both
def test_a_retry_of_an_identical_body_is_the_same_turn(stream: bool) -> None:
    """The same bytes leave again, nothing is asked and nothing is counted twice, whatever the first attempt got."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk(top={"stream": stream})
            await swept(gateway, talk)
            await gateway.wait(1000)
            body = talk.say("Go on.").body()
            fail_next(gateway, 529, times=2)
            statuses = [(await gateway.post(body)).status for _ in range(3)]
            assert statuses == [529, 529, 200]
            one, two, three = gateway.bodies("work")[-3:]
            assert one == two == three
            assert [turn.reason for turn in gateway.recorder.turns[-2:]] == [Reason.RETRY] * 2
            assert all(turn.savings is None for turn in gateway.recorder.turns[-2:])

    asyncio.run(session())


def test_the_same_body_without_stream_gets_json() -> None:
    """Clients re-send a cut stream's body without `stream`: its prefix is what was sent, and the answer is no stream."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk(top={"stream": True})
            await swept(gateway, talk)
            streamed = gateway.bodies("work")[-1]
            answer = await gateway.post(talk.body(stream=False))
            assert json.loads(answer.body)["type"] == "message"
            assert messages_of(gateway.bodies("work")[-1]) == messages_of(streamed)

    asyncio.run(session())


def test_two_requests_of_a_thread_at_one_time_do_not_wait_for_each_others_upstream() -> None:
    """Only our own work is one after the other: a slow reply holds nobody up."""

    async def session() -> None:
        slow = {"text": "Slow.", "fault": {"kind": "slow_first_byte", "seconds": 3.0}}
        async with live([{"name": "work", "turns": [slow, {"text": "Fast."}]}]) as gateway:
            task = asyncio.create_task(gateway.post(Talk().body()))
            while not gateway.up.count:
                await asyncio.sleep(0.01)
            answer = await gateway.post(Talk().say("Other.").body())
            assert answer.content[0]["text"] == "Fast." and not task.done()
            assert (await task).content[0]["text"] == "Slow."

    asyncio.run(session())


# -- what is not swept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"messages":[],"messages":[]}', b'{"model":"m","messages":[{"role":1}]}'],
)
def test_a_body_that_cannot_be_understood_passes_as_it_came(body: bytes) -> None:
    """The upstream says what is wrong with it."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            answer = await gateway.post(body)
            assert answer.status in (400, 500) and gateway.bodies() == [body]
            assert gateway.recorder.turns[-1].reason is Reason.UNREADABLE

    asyncio.run(session())


def test_a_history_that_the_server_holds_passes_untouched() -> None:
    """There is nothing in it to sweep, and tools cannot be added to a continued turn."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            body = Talk(top={"thread": {"type": "create"}}).body()
            answer = await gateway.post(body, anthropic_beta="message-threads-2026-08-12")
            assert answer.status == 200 and gateway.bodies() == [body]
            assert gateway.recorder.turns[-1].reason is Reason.SERVER_THREAD

    asyncio.run(session())


def test_tokens_are_counted_of_what_would_be_sent() -> None:
    """The count is that of the swept body; counting decides nothing and moves no clock."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            body = talk.say("Go on.").body()
            (thread,) = gateway.sweep._known
            before = gateway.store.load(thread)
            counted = json.loads((await gateway.count(body)).body)["input_tokens"]
            assert gateway.store.load(thread) == before
            usage = (await gateway.post(body)).message["usage"]
            total = sum(usage[k] for k in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
            assert counted == total

    asyncio.run(session())


@pytest.mark.parametrize("calls", [0, 3], ids=["opening", "resumed"])
@pytest.mark.parametrize("top", [{}, {"tools": []}], ids=["with tools", "without"])
def test_a_count_that_comes_before_the_first_request_is_of_that_request(calls: int, top: dict[str, Any]) -> None:
    """Our tool is counted where the request will carry it, and nowhere else; the thread is none the wiser."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            body = Talk(top=top).calls(calls).body()
            counted = json.loads((await gateway.count(body)).body)["input_tokens"]
            (thread,) = gateway.sweep._known
            assert gateway.store.load(thread) == Thread()
            usage = (await gateway.post(body)).message["usage"]
            total = sum(usage[k] for k in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
            assert counted == total
            assert (DECLARATION in gateway.bodies()[-1]) == (not calls and not top)

    asyncio.run(session())


def test_a_refused_count_is_counted_anew_and_revokes_nothing() -> None:
    """The client gets the count of its own body; what the model has taken before stands."""

    async def session() -> None:
        async with live([ALL_SPENT, WORK]) as gateway:
            talk = Talk()
            await swept(gateway, talk)
            body = talk.say("Go on.").body()
            refuse = gateway.up.validator.body

            def picky(found: Any, headers: Any, counting: bool = False) -> None:
                if counting and "cg_expand" in json.dumps(found):
                    from fake_upstream import ApiError

                    raise ApiError(400, "no")
                refuse(found, headers, counting)

            gateway.up.validator.body = picky
            answer = await gateway.count(body)
            assert answer.status == 200 and gateway.recorder.resents == [400]
            await gateway.post(body)
            assert len(find_markers(gateway.bodies()[-1].decode())) == 11

    asyncio.run(session())


def test_an_answer_is_closed_although_nobody_read_it() -> None:
    """A client that goes away before the first byte leaves no connection and arms no timer."""

    async def session() -> None:
        async with live([WORK]) as gateway:
            outbound = await gateway.messages.handle(inbound(Talk(top={"stream": True}).body()))
            assert outbound.close is not None
            await outbound.close()
            assert not len(gateway.messages.timers._armed)
            answer = await read_out(await gateway.messages.handle(inbound(Talk().say("x").body())))
            assert answer.status == 200

    asyncio.run(session())


def test_a_turn_that_nobody_waits_for_decides_nothing() -> None:
    """A request whose client is gone in the middle of our work leaves no removal tasks."""

    async def session() -> None:
        store = Stuck()
        async with live([ALL_SPENT, WORK], store=store) as gateway:
            talk = Talk()
            await gateway.post(talk.body())
            await gateway.post(talk.calls(14).body())
            await gateway.wait(241)
            await gateway.wait(1000)
            with store.held():
                task = asyncio.create_task(gateway.post(talk.say("And now?").body()))
                await until(lambda: store.n_waiting > 0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await until(lambda: ended(gateway))
            (thread,) = gateway.sweep._known
            assert not gateway.store.load(thread).removals
            answer = await gateway.post(talk.body())
            assert answer.status == 200 and gateway.recorder.turns[-1].reason is Reason.REMOVED

    asyncio.run(session())
