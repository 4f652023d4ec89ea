"""What the cache model predicts for recorded sessions, beside what the provider billed.

    python bench/replay/recorded_usage.py [PATH ...] [--into bench/results/studies/recorded-usage.md]

Prompt sizes are taken from the recorded usage, so that what is tested is the cache and not a tokenizer: the prompt of a
request holds fresh + read + written tokens, and what it grew by since the request before is the size of its new messages.
The model starts empty with each recording, has marks where Claude Code sets them (on the system prompt and on the last
block), the lifetime that the session's writes state (five minutes where they state none), and the recorded times.
A prompt that shrinks was rewritten by its client at a place that the log does not show; the model then keeps the head.

Prints Markdown; --into puts it between the lines `<!-- figures -->` and `<!-- end of figures -->` of a file.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cg.replay.cache_model import Breakpoint, CacheModel, Prompt
from cg.replay.recordings.recording import Session, Step
from cg.replay.sessions import open_all
from cg.sweep.values import Usage

RECORDINGS = Path(__file__).parents[2] / "tests" / "data" / "transcripts"
BYTES_PER_TOKEN = 2.9  # splits the first prompt into the part that logs leave out and the messages
UNSTATED_TTL_S = 300
NEARLY = 0.9  # of the request before: read as much and it was a hit
RATES = {"fresh": 1.0, "read": 0.1, "write_5m": 1.25, "write_1h": 2.0}  # of the price of a fresh token
OUTCOMES = ("hit", "part", "miss")
TOLERANCE = 0.05
FRAME_BLOCKS = 1  # in front of the messages: the system prompt, a string


@dataclass(frozen=True, slots=True)
class Compared:
    """One request: what was billed, what the model says, and how much of the prompt before it there was to read."""

    step: int
    gap_s: float | None
    there: int
    recorded: Usage
    predicted: Usage
    is_rewritten: bool

    def outcome(self, usage: Usage) -> str:
        """hit: nearly all of the request before was read; part: something; miss: nothing."""
        if usage.read == 0:
            return "miss"
        return "hit" if self.there and usage.read >= NEARLY * self.there else "part"

    @property
    def agrees(self) -> bool:
        return self.outcome(self.recorded) == self.outcome(self.predicted)


@dataclass(slots=True)
class Replayed:
    """A session's prompt as its usage says it grew."""

    ttl_s: int
    model: CacheModel = field(default_factory=CacheModel)
    prompt: Prompt | None = None

    def request(self, step: Step, size: int) -> tuple[Usage, bool]:
        """(what the model says of a request whose whole prompt holds `size` tokens, whether the prompt had shrunk)."""
        if self.prompt is None:
            written = sum(map(len, step.messages)) / BYTES_PER_TOKEN
            self.prompt = Prompt(step.model)
            self.prompt.add_system(b'"what the log leaves out"')
            resize(self.prompt, 0, max(0, size - round(written)))
        prompt = self.prompt
        is_rewritten = not step.opens and size < prompt.tokens
        if step.opens or is_rewritten:
            prompt.cut(0)
        first = len(prompt)
        if is_rewritten:
            prompt.add_message(json.dumps({"role": "user", "content": f"rewritten at {step.index}"}).encode())
        for message in step.messages:
            prompt.add_message(message)
        if len(prompt) > first:
            resize(prompt, first, max(0, size - prompt.tokens_to(first - 1)))
        blocks = sorted({FRAME_BLOCKS - 1, len(prompt) - 1})
        marks = [Breakpoint(block, self.ttl_s) for block in blocks]
        return self.model.request(prompt, marks, step.at), is_rewritten


def resize(prompt: Prompt, first: int, tokens: int) -> None:
    """Give the blocks from `first` on `tokens` together, in the proportions that they have: what a bill has shown."""
    totals = prompt._totals
    start, held = totals[first], totals[-1] - totals[first]
    for row in range(first + 1, len(totals) - 1):
        totals[row] = start + round((totals[row] - start) * tokens / held) if held else start
    totals[-1] = start + tokens


def size_of(usage: Usage) -> int:
    return usage.fresh + usage.read + usage.write_5m + usage.write_1h


def compared(session: Session) -> Iterator[Compared]:
    """Every request of the session that logs usage."""
    replayed, there, last = Replayed(session.ttl_s or UNSTATED_TTL_S), 0, None
    for step in session.steps():
        if step.usage is None or not size_of(step.usage):
            continue
        predicted, is_rewritten = replayed.request(step, size_of(step.usage))
        gap = None if last is None else step.at - last
        yield Compared(step.index, gap, 0 if step.opens else there, step.usage, predicted, is_rewritten)
        there, last = size_of(step.usage), step.at


def total(rows: Iterable[Usage], name: str) -> int:
    return sum(getattr(usage, name) for usage in rows)


def writes_of(rows: Iterable[Usage]) -> int:
    return sum(usage.write_5m + usage.write_1h for usage in rows)


def bill(rows: Iterable[Usage]) -> float:
    usages = list(rows)
    return sum(rate * total(usages, name) for name, rate in RATES.items())


def error(predicted: float, recorded: float) -> str:
    return "n/a" if not recorded else f"{100 * (predicted - recorded) / recorded:+.2f} %"


def row(*cells: object) -> str:
    return "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells) + " |"


def table(head: list[str], rows: list[str]) -> str:
    return "\n".join([row(*head), row(*["---"] * len(head)), *rows])


def by_session(sessions: dict[str, list[Compared]]) -> str:
    """Reads, writes and the input bill, predicted beside billed."""
    within = 0
    for rows in sessions.values():
        predicted, billed = (total((getattr(r, side) for r in rows), "read") for side in ("predicted", "recorded"))
        within += abs(predicted - billed) <= TOLERANCE * billed
    head = (
        "recording, requests, reads predicted, billed, error, writes predicted, billed, error, error behind the first"
        " request, input bill, requests unlike"
    )
    lines = [figures(name, rows, rows[1:]) for name, rows in sessions.items()]
    everything = [r for rows in sessions.values() for r in rows]
    lines.append(figures("all", everything, [r for rows in sessions.values() for r in rows[1:]]))
    summary = f"Total reads are within {TOLERANCE:.0%} on {within} of {len(sessions)} recordings that log usage."
    return f"{table(head.split(', '), lines)}\n\n{summary}"


def figures(name: str, rows: list[Compared], later: list[Compared]) -> str:
    """A row of the table; `later` are the rows less each recording's first request."""
    said, billed = [r.predicted for r in rows], [r.recorded for r in rows]
    reads = total(said, "read"), total(billed, "read")
    writes = writes_of(said), writes_of(billed)
    behind = error(writes_of(r.predicted for r in later), writes_of(r.recorded for r in later))
    bills = error(bill(said), bill(billed))
    unlike = sum(not r.agrees for r in rows)
    return row(name, len(rows), *reads, error(*reads), *writes, error(*writes), behind, bills, unlike)


def confusion(rows: list[Compared]) -> str:
    """Requests by what the model says and what was billed."""
    seen = Counter((r.outcome(r.predicted), r.outcome(r.recorded)) for r in rows)
    lines = [row(f"predicted {p}", *[seen[p, r] for r in OUTCOMES]) for p in OUTCOMES]
    return table(["", *[f"billed {r}" for r in OUTCOMES]], lines)


def unlike(sessions: dict[str, list[Compared]]) -> str:
    """The requests whose outcome the model does not say."""
    lines = []
    for name, rows in sessions.items():
        for r in rows:
            if not r.agrees:
                gap = "first" if r.gap_s is None else f"{r.gap_s:,.0f} s"
                note = "shrank" if r.is_rewritten else "starts anew" if not r.there else ""
                lines.append(row(name, r.step, gap, r.there, r.predicted.read, r.recorded.read, note))
    return table(["recording", "request", "gap", "prompt before", "read predicted", "read billed", ""], lines)


def report(paths: list[Path]) -> str:
    """The Markdown of all three tables."""
    sessions = {}
    for found in open_all(paths):
        if isinstance(found, Session) and (rows := list(compared(found))):
            sessions[found.name] = rows
    rows = [r for rows in sessions.values() for r in rows]
    parts = [
        "### By recording", by_session(sessions),
        "### By request", f"All {len(rows):,} requests with usage.", confusion(rows),
        "### Requests unlike what the model says", unlike(sessions),
    ]  # fmt: skip
    return "\n\n".join(parts)


def main() -> None:
    """Print the report or put it into a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[RECORDINGS])
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    text = report(arguments.paths)
    if arguments.into is None:
        print(text)
        return
    old = arguments.into.read_text("utf-8")
    before, rest = old.split("<!-- figures -->", 1)
    _, after = rest.split("<!-- end of figures -->", 1)
    arguments.into.write_text(f"{before}<!-- figures -->\n\n{text}\n\n<!-- end of figures -->{after}", "utf-8")


if __name__ == "__main__":
    main()
