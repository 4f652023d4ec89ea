"""A replay's figures as tables for people."""

import textwrap
from collections.abc import Iterable, Sequence
from datetime import date

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting.answer import is_best_case
from cg.replay.reporting.figures import CLIENT, UNTOUCHED, Figures, Key
from cg.replay.reporting.groups import Group, Groups
from cg.replay.reporting.printable import plain
from cg.replay.reporting.sentences import Advice
from cg.replay.reporting.summary import Summary
from cg.replay.reporting.words import count, counted, dollars, part, share
from cg.replay.settings import PLAN, Settings
from cg.sweep.prices import READ_ON

WIDTH = 100  # of a line, unless it may be wide
LEAST_NAME = 24  # letters that are left of a name at least

MONEY = ("policy", "bill", "saved", "change", "90 %", "removal", "kept alive", "lifetime", "spent")
CONTENT: tuple[str, ...] = ("policy", "removed", "tokens", "used later", "expanded", "recovered", "rescued")
CONTENT += ("asks", "pings", "broken")
JUDGING = ("live kept", "spent gone")  # of the outputs that were up for a decision
LOSING = ("mask-all-but-k", "drop-all")
WARNING = (
    "loses content for good, at requests whose cache still holds too: it is here to compare, and is no advice. What its "
    "absence does to the answers no bill shows."
)
LIFETIMES = {"5m": "5 min", "1h": "1 hour", PLAN: "planned"}


def label(key: Key) -> str:
    """A policy as the tables name it; a judge that nobody has is no policy to choose."""
    policy, lifetime = key
    base = policy.partition("/")[0]
    name = policy
    if is_best_case(policy):
        name = "best case" if base == "paid" else f"{base}, best case"
    return name if lifetime == CLIENT else f"{name}, {LIFETIMES.get(lifetime, lifetime)}"


def money(summary: Summary) -> list[tuple[str, ...]]:
    """Heads and cells: what each policy would have cost, and where its saving comes from."""
    return [MONEY, *(_money(summary, key) for key in summary.shown)]


def _money(summary: Summary, key: Key) -> tuple[str, ...]:
    own = summary.figures(key)
    if key == UNTOUCHED:
        return (label(key), dollars(own.usd), *[""] * (len(MONEY) - 2))
    interval = summary.interval(key)
    bounds = "" if interval is None else "{:+.1f} to {:+.1f}".format(*(100 * bound for bound in interval.change))
    parts = (own.removal_usd, own.alive_usd, own.lifetime_usd, own.spent_usd)
    shown = ("-" if usd is not None and not usd else dollars(usd) for usd in parts)
    return (label(key), dollars(own.usd), dollars(own.saved_usd), share(own.change, signed=True), bounds, *shown)


def content(summary: Summary) -> list[tuple[str, ...]]:
    """Heads and cells: what each policy took out, and what became of it."""
    keys = [key for key in summary.shown if key[0] != NONE.name]
    return [(*CONTENT, *JUDGING), *(_content(summary.figures(key)) for key in keys)] if keys else []


def _content(own: Figures) -> tuple[str, ...]:
    return (
        label((own.policy, own.lifetime)),
        count(own.removals),
        count(own.removed_tokens),
        part(own.used_later, own.removals),
        count(own.expansions),
        share(own.recovered if own.lifetime == CLIENT else None),
        count(own.rescued),
        count(own.asks),
        count(own.pings),
        count(own.prefix_breaks),
        part(own.live_kept, own.live),
        part(own.spent_dropped, own.spent),
    )


def totals(summary: Summary, *, wide: bool = False) -> str:
    """The two tables of policies; wide, they are one, with every column."""
    bills, removed = money(summary), content(summary)
    if not wide:
        parts = [bills, [line[: len(CONTENT)] for line in removed]]
        return "\n\n".join(_fitting(cells) for cells in parts if cells)
    found = {line[0]: line[1:] for line in removed}
    none = [""] * (len(CONTENT) + len(JUDGING) - 1)
    return columns([(*line, *found.get(line[0], none)) for line in bills])


def groups(found: Groups, policies: Sequence[str], limit: int, *, wide: bool = False) -> str:
    """A line a group, the first `limit` of them (0: all), each policy's bill against doing nothing."""
    listed = found.listed()
    shown = listed[:limit] if limit else listed
    cells = group_lines(found.by, shown, policies)
    left = len(listed) - len(shown)
    more = f"\n(and {counted(left, found.by)} more: --limit {len(listed)})" if left else ""
    return (columns(cells) if wide else _fitting(cells)) + more


def group_lines(by: str, shown: Iterable[Group], policies: Sequence[str]) -> list[tuple[str, ...]]:
    """Heads and cells of that table."""
    of_session = by == "session"
    names = [name for name in policies if name != NONE.name]
    heads = (by, *(() if of_session else ("sessions",)), "requests", *(("lifetime",) if of_session else ()))
    lines: list[tuple[str, ...]] = [(*heads, "bill", "came cold", *(label((name, CLIENT)) for name in names))]
    for group in shown:
        star = "" if group.is_ttl_recorded else "*"
        lines.append(
            (
                group.name,
                *(() if of_session else (count(group.sessions),)),
                count(group.requests),
                *((f"{group.ttl_s // 60} min{star}",) if of_session else ()),
                dollars(group.usd),
                count(group.cold_requests),
                *(share(group.change(name), signed=True) for name in names),
            )
        )
    return lines


def _fitting(cells: Sequence[tuple[str, ...]]) -> str:
    """The table in WIDTH letters: names are cut to what is left of it, and columns that have no room at all are named."""
    cells = [tuple(map(plain, line)) for line in cells]
    heads, longest = cells[0], max(len(line[0]) for line in cells)
    n = len(heads)

    def rest(columns: int) -> int:
        widths = [max(len(line[i]) for line in cells) for i in range(1, columns)]
        return WIDTH - sum(widths) - 2 * len(widths)

    while n > 2 and rest(n) < min(LEAST_NAME, longest):
        n -= 1
    note = "\n" + textwrap.fill(f"(No room for {', '.join(heads[n:])}: --wide.)", WIDTH) if n < len(heads) else ""
    return columns([(cut(line[0], rest(n)), *line[1:n]) for line in cells]) + note


def cut(text: str, size: int) -> str:
    """The text, or its beginning with a sign that more was there."""
    return text if len(text) <= size else text[: size - 3].rstrip() + "..."


def answered(advice: Advice) -> str:
    """The answer, in lines of at most WIDTH letters."""
    parts = [advice.head]
    for lines in advice.lines:
        parts.append(textwrap.fill(lines.where, WIDTH) + "\n\n" + textwrap.indent(lines.text, "    "))
    parts.append("\n".join(_wrapped(sentence) for sentence in advice.sentences))
    return "\n\n".join(parts)


def _wrapped(sentence: str) -> str:
    return textwrap.fill(plain(sentence), WIDTH, subsequent_indent="  ", break_long_words=False)


def notes(summary: Summary, settings: Settings, results: Sequence[Result]) -> str:
    """What the figures rest on, a paragraph each."""
    return "\n".join(_wrapped(sentence) for sentence in remarks(summary, settings, results))


def remarks(summary: Summary, settings: Settings, results: Sequence[Result]) -> list[str]:
    """The same as sentences."""
    lines = [
        f"{counted(summary.sessions, 'session')}, {counted(summary.requests, 'request')}, "
        f"{counted(summary.outputs, 'tool output')}. came cold: requests that came after the provider had let go of the "
        "cached beginning of their conversation; recovered: what of their cost would have been saved.",
        "saved is removal (tool outputs taken out), kept alive (cached beginnings renewed in time) and lifetime (another one than "
        "the client asked for), less spent (requests of the sweep's own, and bringing outputs back).",
        "change is the bill against doing nothing, by the usual ratios of prices, so that it holds for any model; 90 % is where nine "
        "of ten draws of as many sessions lie.",
        "used later counts removed outputs that the session used again; each such use is charged the round that brings the "
        f"output back (expanded). Taken for granted: {settings.bytes_per_token:g} bytes a token, {settings.verdict_tokens} output "
        "tokens a verdict.",
    ]
    lines.append(f"List prices of {READ_ON}, {(date.today() - READ_ON).days} days old; --prices FILE has others.")
    if any(is_best_case(policy) for policy, _ in summary.totals):
        lines.append("best case: judged by somebody who knows how the session went on.")
    if any(not result.is_ttl_recorded for result in results):
        star = "* " if summary.sessions > 1 else ""  # one session has no table of sessions, in which the star stands
        lines.append(
            f"{star}the lifetime is not the one recorded: none was written in the log, or another was asked for."
        )
    copied = [f"{result.name} {result.elsewhere}" for result in results if result.elsewhere]
    if copied:
        lines.append(f"Requests that an earlier log holds too are counted there: {', '.join(copied)}.")
    if summary.damaged_lines:
        lines.append(
            f"{counted(summary.damaged_lines, 'line')} in {counted(summary.damaged_logs, 'log')} could not be read whole: "
            "what is whole on a damaged line is counted, the rest is lost."
        )
    if summary.unpriced:
        lines.append(
            f"{counted(summary.unpriced, 'session')} used a model, or a speed or service tier, of unknown price: not in the "
            "dollars (--prices FILE)."
        )
    if summary.outside:
        lines.append(
            f"{counted(summary.outside, 'session')} began at another time than was asked for, and were left out."
        )
    lines += [f"{policy} {WARNING}" for policy in LOSING if (policy, CLIENT) in summary.totals]
    none = summary.totals[UNTOUCHED].total.units
    after = {label(key): row.after_end.units for key, row in summary.totals.items() if key[1] == CLIENT}
    if none and any(after.values()):
        most = ", ".join(f"{name} {share(units / none)}" for name, units in after.items() if units)
        lines.append(f"If nobody ever came back after a log's end, asks and pings there would add: {most}.")
    return lines


def skipped(results: Iterable[Result]) -> str:
    """The sessions that could not be read, and why."""
    return "\n".join(plain(f"skipped {result.path}: {result.error}") for result in results)


def empty(results: Sequence[Result]) -> str:
    """The files that hold no session, in one line."""
    named = ", ".join(plain(result.path.name) for result in results[:3])
    more = f" and {len(results) - 3:,} more" if len(results) > 3 else ""
    return f"{counted(len(results), 'file')} without a session of {'its' if len(results) == 1 else 'their'} own: {named}{more}"


def columns(cells: Sequence[Sequence[str]]) -> str:
    """Lines of cells, set in columns; the first is flush left, columns of empty cells are left out."""
    cells = [[plain(cell) for cell in line] for line in cells]
    used = [i for i in range(len(cells[0])) if any(line[i] for line in cells[1:])]
    widths = {i: max(len(line[i]) for line in cells) for i in used}
    return "\n".join(
        "  ".join(line[i].ljust(widths[i]) if i == 0 else line[i].rjust(widths[i]) for i in used).rstrip()
        for line in cells
    )
