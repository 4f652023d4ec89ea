"""What leaves for one request, and what it was made of."""

from dataclasses import dataclass, replace

from cg.gateway.exchange import Headers, Inbound, first
from cg.sweep.body.transcript import Transcript
from cg.sweep.core.outcome import Swept
from cg.sweep.ledger import Reason, TurnReport
from cg.sweep.prices import ONE_HOUR_S

BETA, ONE_HOUR = b"anthropic-beta", b"extended-cache-ttl-2025-04-11"


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What leaves for one request, and what it was made of. `transcript` is None for a body that was not read."""

    inbound: Inbound
    thread: str
    transcript: Transcript | None
    swept: Swept
    now: float

    @property
    def body(self) -> bytes:
        return self.swept.body

    @property
    def is_changed(self) -> bool:
        return self.swept.body != self.inbound.body

    @property
    def headers(self) -> Headers:
        """The client's, with what an hour's lifetime needs where its marks do not ask for one themselves."""
        asks_hour = self.swept.written_s == ONE_HOUR_S
        return with_one_hour(self.inbound.headers) if asks_hour else self.inbound.headers

    def original(self) -> "PreparedRequest":
        """The turn with the client's own body in place of ours."""
        branch, report = self.swept.branch, replace(self.swept.report, lifetime=None)
        if branch is not None and self.transcript is not None and self.swept.written_s is not None:
            branch = replace(branch, ttl_s=self.transcript.ttl_s)
        swept = replace(self.swept, body=self.inbound.body, carries=(), declares=False, branch=branch, report=report)
        return replace(self, swept=swept)

    def light(self) -> "PreparedRequest":
        """The turn without its bodies, for what only has to remember it."""
        inbound, swept = replace(self.inbound, body=b""), replace(self.swept, body=b"")
        return replace(self, inbound=inbound, swept=swept, transcript=None)


def with_one_hour(headers: Headers) -> Headers:
    """The headers with the feature that clients name when they ask for an hour: in their own list, or in a new one."""
    betas = first(headers, BETA)
    if betas is None:
        return [*headers, (BETA, ONE_HOUR)]
    if ONE_HOUR in [name.strip() for name in betas.split(b",")]:
        return headers
    at = next(n for n, (name, _) in enumerate(headers) if name == BETA)
    return [*headers[:at], (BETA, betas + b"," + ONE_HOUR), *headers[at + 1 :]]


def as_it_came(inbound: Inbound, now: float, reason: Reason) -> PreparedRequest:
    """The client's own bytes, with nothing known about them."""
    return PreparedRequest(inbound, "", None, Swept(inbound.body, TurnReport.of(reason)), now)
