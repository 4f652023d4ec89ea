"""An original is given to whoever has the token and the conversation's own names, and to nobody else."""

import asyncio
import hashlib

import pytest
from event_recorder import EventRecorder
from live import RawUpstream, ask, status
from presets import paid

from cg.gateway.events import Fault, Mode, Outcome
from cg.gateway.exchange import Inbound
from cg.gateway.expansion.route import ExpandRoute
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.sweep.drivers import Sweep
from cg.sweep.store import StoreError
from cg.sweep.store_memory import MemoryStore
from cg.sweep.values import Identity, Payload

OWN = [(b"x-api-key", b"k"), (b"x-claude-code-session-id", b"s")]
CONTENT = "<script>alert(1)</script> caf\u00e9\n".encode()


@pytest.fixture
def kept():
    """A thread that holds one original: (route, key, recorder)."""
    naming, store, recorder = ThreadNaming(b"s" * 32, "https://up.example"), MemoryStore(), EventRecorder()
    identity = Identity("toolu_1", 0, hashlib.sha256(CONTENT).hexdigest())
    store.put(naming.named(OWN), [Payload(identity, CONTENT, "Read", '{"file_path":"a"}')], 1000.0)
    return ExpandRoute(Sweep(paid(), store), naming, recorder, lambda: 1000.0), identity.key, recorder


def get(route, headers, query, method="GET"):
    target = b"/expand" + (b"?" + query if query else b"")
    return asyncio.run(route.expand(Inbound(method, target, headers)))


def test_the_original_comes_back_byte_for_byte_and_as_no_page(kept):
    """What a tool has put out is shown as text, whatever it looks like."""
    route, key, recorder = kept
    answer = get(route, OWN, b"id=" + key.encode())
    assert answer.status == 200 and answer.body == CONTENT
    headers = dict(answer.headers)
    assert headers[b"content-type"].startswith(b"text/plain") and headers[b"x-content-type-options"] == b"nosniff"
    assert get(route, OWN, b"id=%3C%3Ccg%3A" + key.encode() + b"%3E%3E").body == CONTENT  # in its marker
    for around in (b"cg%%3A%s", b"%%22%s%%22", b"%%60%s%%60", b"%s%%0A"):  # its prefix, quotes, code, a line end
        assert get(route, OWN, b"id=" + around % key.upper().encode()).body == CONTENT
    assert recorder.recoveries == [(Mode.ROUTE, Outcome.ORIGINAL, 0)] * 6


@pytest.mark.parametrize(
    "headers",
    [
        [(b"x-api-key", b"other"), (b"x-claude-code-session-id", b"s")],
        [(b"x-api-key", b"k"), (b"x-claude-code-session-id", b"t")],
        [(b"authorization", b"k"), (b"x-claude-code-session-id", b"s")],
        [(b"x-claude-code-session-id", b"s")],
        [*OWN, (b"x-claude-code-agent-id", b"a")],
        [*OWN, (b"x-cg-session", b"s")],
    ],
)
def test_another_thread_finds_nothing(kept, headers):
    """Another credential, session or sub-agent is another conversation, and an id alone opens none."""
    route, key, recorder = kept
    answer = get(route, headers, b"id=" + key.encode())
    assert answer.status == 404 and CONTENT not in answer.body
    assert recorder.recoveries == [(Mode.ROUTE, Outcome.UNKNOWN, 0)]


@pytest.mark.parametrize("query", [b"", b"id=", b"id=zz", b"id=0000000000000000", b"id=%s&id=%s", b"id=..%2f..%2fetc"])
def test_an_id_that_is_none_finds_nothing(kept, query):
    """Two ids are none: nobody can say which was meant."""
    route, key, _ = kept
    assert get(route, OWN, query.replace(b"%s", key.encode())).status == 404


def test_without_a_name_there_is_no_conversation(kept):
    """It is said what is missing."""
    route, key, _ = kept
    assert get(route, [(b"x-api-key", b"k")], b"id=" + key.encode()).status == 400
    assert get(route, OWN, b"&".join(b"a=%d" % n for n in range(9))).status == 400
    assert get(route, OWN, b"id=" + key.encode(), "POST").status == 405


def test_a_session_of_the_metadata_is_named_in_the_query():
    """Clients that put their session's id into the body have no header for it."""
    naming, store = ThreadNaming(b"s" * 32, "https://up.example"), MemoryStore()
    own = [(b"x-api-key", b"k")]
    identity = Identity("toolu_1", 0, hashlib.sha256(CONTENT).hexdigest())
    store.put(naming.named(own, "session-7"), [Payload(identity, CONTENT, "Read", "{}")], 1000.0)
    route = ExpandRoute(Sweep(paid(), store), naming, EventRecorder(), lambda: 1000.0)
    assert get(route, own, b"session=session-7&id=" + identity.key.encode()).body == CONTENT
    assert get(route, own, b"session=session-8&id=" + identity.key.encode()).status == 404


def test_a_store_that_fails_is_a_clear_error():
    """And no traceback."""

    class Broken(MemoryStore):
        def load(self, thread):
            raise StoreError("locked")

    recorder = EventRecorder()
    route = ExpandRoute(Sweep(paid(), Broken()), ThreadNaming(b"s" * 32, "u"), recorder, lambda: 1000.0)
    assert get(route, OWN, b"id=0123456789abcdef").status == 503
    assert recorder.of(Fault) == [Fault.STORE]


def test_over_the_wire_it_needs_the_token(gateway, kept):
    """Other users of this machine reach the loopback address as well."""
    route, key, _ = kept
    token = "a-token-of-twenty-one"
    headers = [name + b": " + value for name, value in OWN]
    with RawUpstream() as upstream:
        served = gateway(upstream.url, gateway_routes={b"/expand": route.expand}, token=token)
        line = b"GET /expand?id=" + key.encode()
        assert status(ask(served.port, line, *headers)) == 401
        assert ask(served.port, line, *headers, b"x-cg-token: " + token.encode()).body == CONTENT
        assert upstream.requests == []
