"""A pytest plugin: which reasons, phases, endings, events and declines the sweeps of each test have counted.

python -m pytest -p counted_names TESTS, with the file to write in CG_COUNTED_NAMES: JSON, a list of tests a name.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cg.sweep.accounting.totals import shares
from cg.sweep.core.outcome import Swept
from cg.sweep.driver.effect_runner import EffectRunner
from cg.sweep.ledger import TurnReport


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at what leaves and at what is counted between requests."""
    names: dict[str, set[str]] = request.config.stash.setdefault(COUNTED, defaultdict(set))
    test = request.node.nodeid.split("[")[0]
    of, note, decide = Swept.of.__func__, EffectRunner.note, EffectRunner._decide  # type: ignore[attr-defined]

    def look(turn: Any) -> None:
        for family, name, _ in shares(turn):
            names[f"{family} {name}"].add(test)
        if isinstance(turn, TurnReport):
            names[f"phases {turn.phase}"].add(test)

    def counted_of(cls: type[Swept], turn: Any, fault: Exception | None = None) -> Swept:
        look(turn.report)
        return of(cls, turn, fault)

    def counted_note(self: EffectRunner, thread: str, tally: Any) -> None:
        look(tally)
        note(self, thread, tally)

    def counted_decide(self: EffectRunner, thread: str, changes: Any, now: float) -> None:
        for _, ending in changes.ended:
            names[f"endings {ending}"].add(test)
        decide(self, thread, changes, now)

    monkeypatch.setattr(Swept, "of", classmethod(counted_of))
    monkeypatch.setattr(EffectRunner, "note", counted_note)
    monkeypatch.setattr(EffectRunner, "_decide", counted_decide)
    yield


COUNTED: pytest.StashKey[dict[str, set[str]]] = pytest.StashKey()


def pytest_sessionfinish(session: pytest.Session) -> None:
    names = session.config.stash.get(COUNTED, {})
    Path(os.environ["CG_COUNTED_NAMES"]).write_text(json.dumps({name: sorted(tests) for name, tests in names.items()}))
