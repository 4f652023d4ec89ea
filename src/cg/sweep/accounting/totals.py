"""What a turn, or what happened between two turns, adds to the totals that a store keeps, by family and name."""

from collections.abc import Iterator

from cg.sweep.accounting.tally import Tally
from cg.sweep.ledger import TurnReport

FAMILIES = ("reasons", "events", "declines", "sizes", "savings", "gaps")


def shares(turn: TurnReport | Tally) -> Iterator[tuple[str, str, float]]:
    """(family, name, amount); amounts that are unknown are counted as `unpriced` turns and never as zero."""
    if isinstance(turn, TurnReport):
        yield "reasons", turn.reason.value, 1
    for event, n in turn.events.items():
        yield "events", str(event), n
    for decline, n in turn.declines.items():
        yield "declines", str(decline), n
    for length, n in turn.gaps.items():
        yield "gaps", length, n
    if isinstance(turn, Tally):
        return
    for bound, n in turn.sizes.items():
        if n:
            yield "sizes", bound, n
    if turn.savings is None:
        return
    for name, amount in turn.savings.to_dict().items():
        if amount is not None:
            yield "savings", name, amount
    if turn.savings.net_usd is None:
        yield "savings", "unpriced_turns", 1
