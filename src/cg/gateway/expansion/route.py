"""`GET /expand?id=`: an original for whoever has both the gateway's token and the conversation's own names."""

import asyncio
import time
from collections.abc import Callable
from urllib.parse import parse_qs

from cg.gateway.events import Events, ExpandAnswered, Fault, Mode, Outcome, Stage, StageTimed
from cg.gateway.exchange import Inbound, Outbound
from cg.gateway.http.error_responses import refuse
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.sweep.core.expansion import NEVER_EXISTED, ExpansionOutcome, plain_key
from cg.sweep.drivers import Sweep

# As text in no page's name: what a tool has put out may be a page, and is nobody's to run.
_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class ExpandRoute:
    """Answers by (thread, id), never by the id alone: the request carries the credential and the session's name that the
    conversation's own requests carry, and so finds what was removed in it, and in no other."""

    def __init__(self, sweep: Sweep, naming: ThreadNaming, events: Events, now: Callable[[], float]) -> None:
        self._sweep, self._naming, self._events, self._now = sweep, naming, events, now

    async def expand(self, inbound: Inbound) -> Outbound:
        """The original's bytes; 404 with the reason if it is kept no longer, or never was here."""
        if inbound.method != "GET":
            return refuse(405, "only GET is answered here", (b"allow", b"GET"))
        try:
            asked = parse_qs(inbound.query.decode("ascii"), max_num_fields=8)
        except ValueError:
            return refuse(400, "the query has more than 8 fields")
        keys, sessions = asked.get("id", []), asked.get("session", [])
        thread = self._naming.named(inbound.headers, sessions[0] if len(sessions) == 1 else None)
        if thread is None:
            return refuse(400, "name the conversation by its session header or ?session=, beside its credential")
        key = plain_key(keys[0]) if len(keys) == 1 else None
        if key is None:
            self._events.tell(ExpandAnswered(Mode.ROUTE, Outcome.UNKNOWN))
            return refuse(404, NEVER_EXISTED)
        began = time.monotonic()
        try:
            expansion = await asyncio.to_thread(self._sweep.expand, thread, key, self._now())
        except Exception:
            self._events.tell(Fault.STORE)
            return refuse(503, "the state cannot be read", (b"retry-after", b"1"))
        self._events.tell(StageTimed(Stage.RECOVERY, time.monotonic() - began))
        self._events.tell(ExpandAnswered(Mode.ROUTE, Outcome(expansion.outcome)))
        if expansion.outcome is not ExpansionOutcome.ORIGINAL:
            return refuse(404, expansion.answer.decode("utf-8", "replace"))
        return Outbound(200, _HEADERS, expansion.answer)
