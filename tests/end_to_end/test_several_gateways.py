"""Several gateways on one server, a client that is moved between them, and one that is killed in the middle of it."""

import http.client
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from state_server import StateServer, needs_server, state_server

pytestmark = needs_server
pytest.importorskip("redis", reason="redis is not installed: the store on a server is an extra")

from several import GatewayProcess, gateways, until, upstream  # noqa: E402
from wired import ALL_SPENT, ASKED, EXPAND_TOOL, Talk, find_markers, inbound  # noqa: E402

from cg.sweep.body.transcript import read  # noqa: E402
from cg.sweep.store_redis import RedisStore  # noqa: E402
from cg.sweep.values import Payload  # noqa: E402

HANGS = {"kind": "stall", "after_events": 4, "seconds": 300, "ping_every_s": 0.05}
KEY = {"$find": "<<cg:([0-9a-f]{16})>>", "in": "messages", "nth": 0}
PLAIN, FOUND = {"text": "Working on it."}, {"text": "Found it."}
CUT_AT = 4  # the request of the conversation whose gateway is killed
ANOTHER = {"name": "another", "match": {"any~": "Another conversation"}, "turns": [PLAIN], "then": "repeat"}
WORK = {
    "name": "work",
    "turns": [
        *[PLAIN] * CUT_AT,
        {**PLAIN, "fault": HANGS},
        PLAIN,
        PLAIN,
        {"tool": EXPAND_TOOL, "input": {"id": KEY}},
        FOUND,
    ],
    "then": "repeat",
}


@pytest.fixture(scope="module")
def server() -> Iterator[StateServer]:
    with state_server() as running:
        yield running


class Client:
    """Sends a conversation's requests, each to the next gateway."""

    def __init__(self, up: Any, found: list[GatewayProcess], store: RedisStore) -> None:
        self.up, self.gateways, self.turn, self.store = up, found, 0, store
        self.lost_rows = 0  # that a killed gateway has counted

    @property
    def next(self) -> GatewayProcess:
        self.turn += 1
        return self.gateways[(self.turn - 1) % len(self.gateways)]

    def post(self, body: bytes, gateway: GatewayProcess | None = None, session: str = "one") -> bytes:
        """The whole answer, once what it cost has been learnt too: that is done when the client has it already."""
        before = self.learnt()
        connection = self._sent(body, gateway or self.next, session)
        answer = connection.getresponse()
        assert answer.status == 200
        data = answer.read()
        connection.close()
        until(lambda: self.learnt() != before, "the gateway learns from the reply's usage")
        return data

    def learnt(self) -> dict[bytes, Any]:
        """Of each thread on the server what was learnt."""
        with self.store._link.client() as client:
            names = client.scan_iter(match=self.store._link.namespace + "t:*", count=1000)
            return {name: client.hmget(name, "usages", "ratio") for name in names}

    def killed(self, body: bytes) -> GatewayProcess:
        """Send a request, and kill its gateway when the answer has begun; returns the gateway."""
        gateway, before = self.next, len(self.up.requests)
        self.lost_rows += rows_of(gateway)
        connection = self._sent(body, gateway, "one")
        assert b"message_start" in connection.getresponse().read(100)
        gateway.kill()
        connection.close()
        until(lambda: len(self.up.requests) > before, "the upstream notices that its client has gone")
        return gateway

    def wait(self, seconds: float) -> None:
        self.up.clock.advance(seconds)

    def asks(self) -> int:
        return sum(ASKED in r["body"] for r in self.up.requests)

    def judged(self) -> None:
        """Wait until what fell due has been done, and remembered."""

        def is_quiet() -> bool:
            found = Counter[str]()
            for gateway in self.gateways:
                found.update(gateway.timers())
            ended = found["cancelled"] + found["fired"] + found["claimed_elsewhere"] + found["dropped"]
            rows = self.lost_rows + sum(map(rows_of, self.gateways))
            return found["armed"] == ended and rows == self.asks()

        until(is_quiet, "all timers come to their end, and what was asked is remembered")

    @staticmethod
    def _sent(body: bytes, gateway: GatewayProcess, session: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        headers = {n.decode(): v.decode() for n, v in inbound(body, x_claude_code_session_id=session).headers}
        del headers["host"]
        connection.request("POST", "/v1/messages?beta=true", body, headers)
        return connection


def rows_of(gateway: GatewayProcess) -> int:
    """The asks that a gateway has made and remembered."""
    return sum(gateway.stats()["asks"]["outcomes"].values())


def whole_session(client: Client) -> list[int]:
    """A conversation with two gaps in which the model is asked, removals after each, a retry, a gateway that is killed
    in the middle of an answer, and a look at what was removed. Returns the asks made by the end of each gap."""
    talk, asks = Talk(top={"stream": True}), []
    client.post(talk.body())
    client.post(talk.calls(14).body())
    client.wait(241)
    client.judged()
    asks.append(client.asks())
    client.wait(1000)
    client.post(talk.say("And now?").body())
    client.post(talk.body())  # a retry: another gateway, the same turn
    dead = client.killed(talk.calls(14).body())
    if len(client.gateways) == 1:
        dead.start()
    else:
        client.gateways.remove(dead)
    client.post(talk.body())
    client.wait(241)
    client.judged()
    asks.append(client.asks())
    client.wait(1000)
    client.post(talk.say("Go on.").body())
    answer = client.post(talk.say("Show me the first.").body())
    assert b"cg_expand" not in answer and b"Found it." in answer
    client.post(Talk([{"role": "user", "content": "Another conversation."}]).body(), session="two")
    return asks


def sent(up: Any) -> list[tuple[str, Any]]:
    """What the upstream got, and what it billed for it."""
    return [(r["body"], r.get("usage")) for r in up.requests]


def run(n: int, folder: Path, server: StateServer, prefix: str) -> tuple[list[int], list[tuple[str, Any]], list[Any]]:
    folder.mkdir()
    with upstream({"routes": [ALL_SPENT, ANOTHER, WORK]}, folder) as up:
        url = server.url(prefix=prefix)
        with RedisStore(url) as store, gateways(n, folder, url, up) as found:
            asks = whole_session(Client(up, list(found), store))
            stats = [gateway.stats() for gateway in found if gateway.process is not None]
        return asks, sent(up), stats


def replaced(body: str) -> dict[tuple[str, int], str]:
    return {(t.tool_use_id, t.block): t.text for t in read(body.encode()).tool_texts if t.has_marker}


def test_three_gateways_are_as_one(server: StateServer, tmp_path: Path) -> None:
    """A client that is moved at every request, one gateway killed in mid-stream: the upstream gets the same bodies, byte
    for byte, is asked as often, once a gap, and bills the same as with one gateway; every marker that left resolves."""
    asks, seen, stats = run(3, tmp_path / "three", server, "three")
    asks_of_one, seen_of_one, _ = run(1, tmp_path / "one", server, "one")
    assert asks == asks_of_one == [1, 2]
    assert len(seen) == len(seen_of_one)
    for ours, theirs in zip(seen, seen_of_one, strict=True):
        assert ours == theirs
    assert sum(len(s["faults"].get("ours", {})) for s in stats) == 0

    bodies = [replaced(body) for body, _ in seen if ASKED not in body]
    assert [len(found) for found in bodies[:6]] == [0, 0, 11, 11, 11, 11]
    assert len(bodies[-3]) == 22
    for n, before in enumerate(bodies[:-1]):
        for after in bodies[n + 1 : -1]:
            assert before.items() <= after.items(), "a removal changed or came back"
    with RedisStore(server.url(prefix="three")) as store:
        held, keys = store.status(), {key for body, _ in seen for key in find_markers(body)}
        # two conversations, and whose they are
        assert (held["threads"], held["removals"], held["payloads"], len(keys)) == (3, 22, 22, 22)
        assert store.totals()["events"]["sweep_dropped"] == 22
        (thread,) = {row.thread for row in store.rows()}
        assert all(isinstance(store.fetch(thread, key), Payload) for key in keys)
