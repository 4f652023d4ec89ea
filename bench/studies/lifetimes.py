"""`python bench/studies/lifetimes.py PATH... [--jobs N]`: which lifetime the marks should have, by the replay's own engine.

Prints Markdown tables: the bill of each choice against that of the recorded lifetimes, on one half of the sessions by name,
on the other half, and on both, with what the better constant of each session would have brought in hindsight. The sessions
of one user are taken in the order of their client's versions, so that earlier ones teach the plan as a store would.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

from cg.replay.batch import taught
from cg.replay.policies import NONE, parse
from cg.replay.prompt import Breakpoint
from cg.replay.reading import Recording, Turn, record
from cg.replay.recordings.recording import Session
from cg.replay.run import Run, run
from cg.replay.sessions import open_all
from cg.replay.settings import Settings
from cg.replay.simulation.actors import Untouched
from cg.replay.simulation.bodies import frame_for
from cg.replay.simulation.history import History
from cg.sweep.prices import ONE_HOUR_S

FIVE_MINUTES_S = 300
DEARER = 0.05  # a session that costs so much more is counted
USERS = "the better of 5 min and 1 h for each user, in hindsight"
HINDSIGHT = "the better of 5 min and 1 h for each session, in hindsight"
PLAN = "plan"
GROUPS = {"recorded at 5 min": FIVE_MINUTES_S, "recorded at 1 h": ONE_HOUR_S, "all": None}


class AfterCold(Untouched):
    """Five minutes until a request comes too late, one hour from then on."""

    def __init__(self, line: History) -> None:
        super().__init__(line)
        line.written_s, self._line, self._last = FIVE_MINUTES_S, line, None

    def turn(self, turn: Turn) -> None:
        if self._last is not None and turn.at - self._last >= self._line.written_s:
            self._line.written_s = ONE_HOUR_S
        self._last = turn.at
        super().turn(turn)


class HeadForAnHour(History):
    """System and tools for an hour, messages for five minutes."""

    def breakpoints_to(self, n_messages: int) -> list[Breakpoint]:
        head = {*self._system_marks}
        marks = super().breakpoints_to(n_messages)
        return [Breakpoint(mark.block, ONE_HOUR_S if mark.block in head else FIVE_MINUTES_S) for mark in marks]


class Other(Run):
    """A way of setting lifetimes that the product does not have."""

    def __init__(self, recording: Recording, settings: Settings, line: type[History], actor: type[Untouched]) -> None:
        super().__init__(recording, NONE, settings, None)
        frame = frame_for(recording.first, bytes_per_token=settings.bytes_per_token)
        self.line = line(frame, settings.ttl_of(recording.ttl_s), settings.bytes_per_token)
        self._actor = actor(self.line)


def _ours(name: str) -> Callable[[Recording], float]:
    policy = parse([name])[-1]
    return lambda recording: run(recording, policy, Settings()).total.units


def _other(line: type[History], actor: type[Untouched]) -> Callable[[Recording], float]:
    return lambda recording: Other(recording, Settings(), line, actor).finish().total.units


CHOICES: Mapping[str, Callable[[Recording], float]] = {
    "as recorded": _ours("none"),
    "5 min": _ours("lifetime-5m"),
    "1 h": _ours("lifetime-1h"),
    "system and tools 1 h, messages 5 min": _other(HeadForAnHour, Untouched),
    "5 min, after the first cold request 1 h": _other(History, AfterCold),
    PLAN: _ours("lifetime-plan"),
}


@dataclass(frozen=True)
class Bills:
    """One session's bill under each choice, in units."""

    name: str
    user: str
    ttl_s: int | None
    units: Mapping[str, float]

    @property
    def is_chosen_on(self) -> bool:
        """Of the half on which the plan was chosen."""
        return sha256(self.name.encode()).digest()[0] % 2 == 0


def measured(session: Session) -> Bills:
    """All choices on one session, which is read once."""
    recording = record(session)
    units = {name: choice(recording) for name, choice in CHOICES.items()}
    units[HINDSIGHT] = min(units["5 min"], units["1 h"])
    return Bills(session.name, session.user, session.ttl_s, units)


def with_users(bills: Sequence[Bills]) -> list[Bills]:
    """The bills with the constant that was better for all sessions which one user had at one recorded lifetime."""
    sums: dict[tuple[str, int | None], dict[str, float]] = {}
    for each in bills:
        of_user = sums.setdefault((each.user, each.ttl_s), {"5 min": 0.0, "1 h": 0.0})
        for constant in of_user:
            of_user[constant] += each.units[constant]
    better = {key: min(of_user, key=lambda constant: of_user[constant]) for key, of_user in sums.items()}
    return [replace(each, units={**each.units, USERS: each.units[better[each.user, each.ttl_s]]}) for each in bills]


def in_order(sessions: Iterable[Session]) -> list[Session]:
    """By the client's version, as logs without dates can be put in order by nothing else."""

    def version(session: Session) -> tuple[list[int], str]:
        found = re.search(r"\d+(\.\d+)+", session.client)
        return [int(part) for part in found[0].split(".")] if found else [], session.name

    return sorted(sessions, key=version)


def change(bills: Sequence[Bills], choice: str) -> float:
    """The bill against that of the recorded lifetimes, as a share."""
    recorded = sum(each.units["as recorded"] for each in bills)
    return sum(each.units[choice] for each in bills) / recorded - 1 if recorded else 0.0


def line(bills: Sequence[Bills], choice: str) -> list[str]:
    """The cells of one choice."""
    halves = [[b for b in bills if b.is_chosen_on], [b for b in bills if not b.is_chosen_on]]
    worst = [each.units[choice] / each.units["as recorded"] - 1 for each in bills]
    best = change(bills, HINDSIGHT)
    shares = [f"{change(part, choice):+.2%}" for part in (*halves, bills)]
    of_best = f"{change(bills, choice) / best:.0%}" if best and choice != "as recorded" else ""
    return [choice, *shares, of_best, f"{max(worst):+.1%}", str(sum(share > DEARER for share in worst))]


HEADS = ["lifetimes", "chosen half", "other half", "both", "of hindsight", "worst session", "sessions over +5 %"]


def tables(bills: Sequence[Bills]) -> str:
    """A table for each recorded lifetime, and one of all."""
    parts = []
    for name, ttl_s in GROUPS.items():
        group = [each for each in bills if ttl_s is None or each.ttl_s == ttl_s]
        if not group:
            continue
        recorded = sum(each.units["as recorded"] for each in group)
        rows = [HEADS, ["---"] * len(HEADS), *(line(group, choice) for choice in (*CHOICES, USERS, HINDSIGHT))]
        head = f"**{name}**: {len(group)} sessions, {recorded / 1e6:.1f} M units"
        parts.append("\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)]))
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python bench/studies/lifetimes.py", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="session files, or folders of them")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (1: none)")
    arguments = parser.parse_args(argv)
    found = in_order(each for each in open_all(arguments.paths) if isinstance(each, Session))
    sessions = [each for each in taught(found) if isinstance(each, Session)]
    if arguments.jobs > 1:
        with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
            bills = list(pool.map(measured, sessions))
    else:
        bills = [measured(session) for session in sessions]
    print(tables(with_users(bills)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
