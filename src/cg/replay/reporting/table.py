"""A replay's figures as a table for people."""

from collections.abc import Iterable, Sequence

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting.printable import plain
from cg.replay.reporting.summary import Summary
from cg.replay.row import Row
from cg.replay.settings import Settings

LISTED = 40  # sessions that are listed one by one

HEADS: tuple[str, ...] = ("policy", "bill", "saved", "against none", "90 %", "asks", "pings", "removed", "tokens")
HEADS += ("live kept", "spent gone", "rescued", "expanded", "broken", "cold cost saved")


def totals(summary: Summary) -> str:
    """One line a policy: its bill, what it did, and what became of the outputs."""
    return columns([HEADS, *lines(summary)])


def lines(summary: Summary) -> list[tuple[str, ...]]:
    """The cells under HEADS, a line a policy."""
    return [_line(summary, name) for name in summary.totals]


def _line(summary: Summary, name: str) -> tuple[str, ...]:
    row = summary.totals[name]
    usd, base = summary.usd(name), summary.usd(NONE.name)
    interval = summary.interval(name)
    is_none = name == NONE.name
    return (
        name,
        dollars(usd),
        "" if is_none else dollars(None if usd is None or base is None else base - usd),
        "" if is_none else share(summary.change(name), signed=True),
        "" if is_none or interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
        *_counts(row),
        "" if is_none else share(summary.recovered(name)),
    )


def _counts(row: Row) -> tuple[str, ...]:
    return (
        count(row.bills["ask"].calls),
        count(row.bills["ping"].calls),
        count(row.removals),
        count(round(row.removed_tokens)),
        part(row.live_kept, row.live),
        part(row.spent_dropped, row.spent),
        count(row.rescued),
        count(row.expansions),
        count(row.prefix_breaks),
    )


def by_session(results: Sequence[Result]) -> str:
    """One line a session: its bill untouched, and each policy's against it."""
    return columns(session_lines(results))


def session_lines(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """The heads of that table and its cells."""
    good = [result for result in results if result.error is None]
    names = [name for name in good[0].rows if name != NONE.name]
    heads = ("session", "requests", "lifetime", "bill", *names)
    found: list[tuple[str, ...]] = [heads]
    for result in good:
        base = result.rows[NONE.name].total
        changes = (share(result.rows[name].total.units / base.units - 1, signed=True) for name in names)
        lifetime = f"{result.ttl_s // 60} min" + ("" if result.is_ttl_recorded else "*")
        found.append((result.name, str(result.requests), lifetime, dollars(base.usd), *changes))
    return found


def notes(summary: Summary, settings: Settings, results: Sequence[Result]) -> str:
    """What the figures rest on, one sentence a line."""
    after = {name: row.after_end.units for name, row in summary.totals.items()}
    none = summary.totals[NONE.name].total.units
    lines = [
        f"{counted(summary.sessions, 'session')}, {counted(summary.requests, 'request')}, "
        f"{counted(summary.outputs, 'tool output')}. 'against none', "
        "'90 %' (sessions resampled) and 'cold cost saved' are in price units, so they hold for any model.",
        f"Taken for granted: {settings.bytes_per_token:g} bytes a token, {settings.verdict_tokens} output tokens a verdict.",
    ]
    lines.append(
        "'live kept' counts, of the outputs that a policy could have removed, those that the rest of the session still used. One that is gone is charged the round "
        "that brings it back at each such use; what its absence does to the answers no bill shows."
    )
    if any(result.error is None and not result.is_ttl_recorded for result in results):
        star = "* " if summary.sessions > 1 else ""  # one session has no table of sessions, in which the star stands
        lines.append(
            f"{star}the lifetime is not the one recorded: none was written in the log, or another was asked for."
        )
    copied = [f"{result.name} {result.elsewhere}" for result in results if result.error is None and result.elsewhere]
    if copied:
        lines.append(f"Requests that an earlier log holds too are counted there: {', '.join(copied)}.")
    if summary.unpriced:
        lines.append(
            f"{summary.unpriced} sessions used a model of unknown price: their dollars are left out (--prices FILE)."
        )
    if none and any(after.values()):
        most = ", ".join(f"{name} {share(units / none)}" for name, units in after.items() if units)
        lines.append(f"If nobody ever came back after a log's end, asks and pings there would add: {most}.")
    return "\n".join(map(plain, lines))


def skipped(results: Iterable[Result]) -> str:
    """The sessions that could not be read, and why."""
    return "\n".join(plain(f"skipped {result.path}: {result.error}") for result in results if result.error is not None)


def columns(cells: Sequence[Sequence[str]]) -> str:
    """Lines of cells, set in columns; the first is flush left, columns of empty cells are left out."""
    cells = [[plain(cell) for cell in line] for line in cells]
    used = [i for i in range(len(cells[0])) if any(line[i] for line in cells[1:])]
    widths = {i: max(len(line[i]) for line in cells) for i in used}
    return "\n".join(
        "  ".join(line[i].ljust(widths[i]) if i == 0 else line[i].rjust(widths[i]) for i in used).rstrip()
        for line in cells
    )


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def dollars(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{'-' if round(value, 2) < 0 else ''}${abs(value):,.2f}"


def share(value: float | None, *, signed: bool = False) -> str:
    return "" if value is None else f"{100 * value:+.2f} %" if signed else f"{100 * value:.1f} %"


def count(value: int) -> str:
    return f"{value:,}" if value else "-"


def part(of: int, whole: int) -> str:
    return f"{of}/{whole}" if whole else "-"
