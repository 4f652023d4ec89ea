"""What leaves for one request, and what it was made of."""

from dataclasses import dataclass, replace

from cg.gateway.exchange import Inbound
from cg.sweep.body.transcript import Transcript
from cg.sweep.core.outcome import Swept
from cg.sweep.ledger import Reason, TurnReport


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

    def light(self) -> "PreparedRequest":
        """The turn without its bodies, for what only has to remember it."""
        inbound, swept = replace(self.inbound, body=b""), replace(self.swept, body=b"")
        return replace(self, inbound=inbound, swept=swept, transcript=None)


def as_it_came(inbound: Inbound, now: float, reason: Reason) -> PreparedRequest:
    """The client's own bytes, with nothing known about them."""
    return PreparedRequest(inbound, "", None, Swept(inbound.body, TurnReport.of(reason)), now)
