"""The simulated input bill of each recorded session beside the one that its recorded usage makes.

    python bench/replay/bill_error.py PATH... [--jobs N] [--into docs/studies/bill-error.md]

Both in units of one fresh input token; output is left out, since logs count it low. `before` is what the provider had
cached when the first request came, by another session: a replay knows one session at a time and writes it anew.
`missed` is what the provider read less of than a cache that loses nothing within its lifetime (recorded prompts that did
not shrink, times of the log). `size` is how the simulated prompts differ from the recorded ones, in sum. Prints
Markdown; --into puts it between the lines `<!-- figures -->` and `<!-- end of figures -->` of a file.
"""

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from cg.replay.policies import NONE
from cg.replay.reading import Recording, record
from cg.replay.run import Sent, run
from cg.replay.sessions import Session, open_all
from cg.replay.settings import Settings
from cg.sweep.values import Usage

RATES = {"fresh": 1.0, "read": 0.1, "write_5m": 1.25, "write_1h": 2.0}  # of the price of a fresh token
WORST = 10
OPENS, ENDS = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True, slots=True)
class Compared:
    """One session's two bills, and what of the difference has a known cause, in units."""

    name: str
    requests: int
    billed: float
    simulated: float
    before: float
    missed: float
    prompt_error: float  # share by which the simulated prompts are larger

    @property
    def error(self) -> float:
        return self.simulated / self.billed - 1

    @property
    def rest(self) -> float:
        """The error that neither cause explains."""
        return (self.simulated - self.before + self.missed) / self.billed - 1


def units(usage: Usage) -> float:
    """What the input of a request costs."""
    return sum(rate * getattr(usage, tier) for tier, rate in RATES.items())


def prompt(usage: Usage) -> int:
    return usage.fresh + usage.read + usage.write_5m + usage.write_1h


def compared(session: Session) -> Compared | None:
    """A session replayed untouched; None without recorded usage. Requests without one are left out of both bills."""
    recording = record(session)
    pairs: list[tuple[Usage, Usage]] = []

    def watch(sent: Sent) -> None:
        if sent.turn.usage is not None and prompt(sent.turn.usage):
            pairs.append((sent.turn.usage, sent.usage))

    run(recording, NONE, Settings(), watch)
    if not pairs:
        return None
    ttl_s = Settings().ttl_of(recording.ttl_s)
    written = RATES["write_1h" if ttl_s >= 3600 else "write_5m"] - RATES["read"]
    recorded, simulated = [r for r, _ in pairs], [s for _, s in pairs]
    return Compared(
        session.name,
        len(pairs),
        sum(map(units, recorded)),
        sum(map(units, simulated)),
        written * recorded[0].read,
        written * missed(recording, ttl_s),
        sum(map(prompt, simulated)) / sum(map(prompt, recorded)) - 1,
    )


def missed(recording: Recording, ttl_s: int) -> int:
    """Tokens that a warm request did not read although the one before had them cached."""
    found, before = 0, None
    for turn in recording.turns:
        if turn.usage is None or not prompt(turn.usage):
            continue
        if before is not None and not turn.opens and turn.at - before.at < ttl_s and turn.model == before.model:
            cached = prompt(before.usage) - before.usage.fresh
            if prompt(turn.usage) >= prompt(before.usage):
                found += max(0, cached - turn.usage.read)
        before = turn
    return found


def page(rows: Sequence[Compared], skipped: int) -> str:
    """The sums and the worst sessions."""
    errors = sorted(abs(row.error) for row in rows)
    rests = sorted(abs(row.rest) for row in rows)
    billed = sum(row.billed for row in rows)
    whole = sum(row.simulated for row in rows) / billed - 1
    explained = sum(row.simulated - row.before + row.missed for row in rows) / billed - 1
    lines = [
        f"{len(rows)} sessions, {sum(row.requests for row in rows):,} requests with usage; {skipped} without any.",
        "",
        "| | all in sum | median of sessions | nine in ten within |",
        "| --- | --- | --- | --- |",
        f"| error | {whole:+.1%} | {statistics.median(errors):.1%} | {errors[int(0.9 * len(errors))]:.1%} |",
        f"| less what was cached before, and missed | {explained:+.1%} | {statistics.median(rests):.1%} "
        f"| {rests[int(0.9 * len(rests))]:.1%} |",
        "",
        "The ten whose bills are furthest off:",
        "",
        *table(sorted(rows, key=lambda row: -abs(row.error))[:WORST]),
        "",
        "The ten that are furthest off once the two causes are taken out:",
        "",
        *table(sorted(rows, key=lambda row: -abs(row.rest))[:WORST]),
    ]
    return "\n".join(lines)


def table(rows: Sequence[Compared]) -> list[str]:
    """A line a session."""
    return [
        "| session | requests | billed | simulated | error | cached before | missed | prompts | error that is left |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {row.name} | {row.requests} | {row.billed:,.0f} | {row.simulated:,.0f} | {row.error:+.1%} "
            f"| {row.before / row.billed:+.1%} | {-row.missed / row.billed:+.1%} | {row.prompt_error:+.1%} | {row.rest:+.1%} |"
            for row in rows
        ),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python bench/replay/bill_error.py", description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--into", type=Path, metavar="FILE")
    arguments = parser.parse_args(argv)
    sessions = [session for session in open_all(arguments.paths) if isinstance(session, Session)]
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        found = [*pool.map(compared, sessions)]
    rows = [row for row in found if row is not None]
    text = page(rows, len(found) - len(rows))
    print(text)
    if arguments.into is not None:
        whole = arguments.into.read_text("utf-8")
        head, tail = whole[: whole.index(OPENS) + len(OPENS)], whole[whole.index(ENDS) :]
        arguments.into.write_text(f"{head}\n\n{text}\n\n{tail}", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
