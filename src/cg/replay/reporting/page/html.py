"""A replay as one HTML file that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Sequence

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting import table
from cg.replay.reporting.answer import Answer, answer
from cg.replay.reporting.figures import CLIENT, UNTOUCHED, Key
from cg.replay.reporting.groups import Group, Groups
from cg.replay.reporting.page import plots
from cg.replay.reporting.page.parts import framed, key, paragraph, text
from cg.replay.reporting.page.parts import table as drawn_table
from cg.replay.reporting.page.requests import session
from cg.replay.reporting.page.style import STYLE
from cg.replay.reporting.sentences import Advice, advice
from cg.replay.reporting.summary import Summary
from cg.replay.reporting.words import counted, dollars, share
from cg.replay.settings import Settings

LISTED = 40  # sessions in the table, the dearest
FIRST = 5  # sentences of the answer that stand open


def page(
    summary: Summary,
    groups: Groups,
    days: Groups,
    drawn: Sequence[Result],
    settings: Settings,
    named: Sequence[Result] = (),
) -> str:
    """The whole report: `groups` has a table, `days` the plot over time, `drawn` are opened to their requests."""
    found = answer(summary)
    said = advice(found)
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{text(said.head)}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>What the sweep would save on {counted(summary.sessions, 'session')}</h1>",
            _answer(said),
            _key_figures(summary, found),
            _over_time(summary, groups, days),
            _policies(summary, found),
            _removed(summary, found),
            _groups(summary, groups),
            *_requests(drawn, summary.sessions),
            "<h2>What the figures rest on</h2><ul>",
            *(f"<li>{text(remark)}</li>" for remark in table.remarks(summary, settings, named)),
            "</ul></main></body></html>\n",
        ]
    )


def _answer(said: Advice) -> str:
    first, rest = said.sentences[:FIRST], said.sentences[FIRST:]
    lines = (f"{paragraph(each.where)}<pre>{text_of_lines(each.text)}</pre>" for each in said.lines)
    why = "".join(map(paragraph, rest))
    more = f"<details><summary>What that means, and what it rests on</summary>{why}</details>" if why else ""
    return (
        f'<section class="answer" aria-label="The answer"><h2>{text(said.head)}</h2>'
        + "".join(map(paragraph, first))
        + "".join(lines)
        + f"</section>{more}"
    )


def text_of_lines(lines: str) -> str:
    """Lines that stay lines."""
    return "\n".join(map(text, lines.split("\n")))


def _key_figures(summary: Summary, found: Answer) -> str:
    none, chosen = found.none, found.choice
    excess = none.cold_excess / none.units if none.units else 0.0
    month = None if none.usd is None else found.monthly(none.usd)
    shown = [
        ("Bill as it was", dollars(none.usd)),
        *([("A month at this pace", dollars(month))] if month is not None else []),
        ("Requests", f"{summary.requests:,}"),
        ("Of them cold: after the entry's expiry", f"{none.cold_requests:,}"),
        ("What those wrote again, of the bill", share(excess)),
    ]
    if chosen is not None:
        shown.append(("The advice would have saved", share(-(chosen.figures.change or 0.0))))
    return (
        "<dl>" + "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in shown) + "</dl>"
    )


def _over_time(summary: Summary, groups: Groups, days: Groups) -> str:
    is_dated = summary.undated < summary.sessions
    listed = [group for group in days.listed() if group.name != "no date"] if is_dated else groups.listed()
    is_priced = all(group.usd is not None for group in listed)
    rows = [_bar(group, is_priced=is_priced) for group in listed]
    by = "day" if is_dated else groups.by
    unit = "dollars" if is_priced else "units of a fresh input token"
    plot = plots.over_time(rows, "$" if is_priced else "")
    return (
        f"<h2>The bill by {by}</h2>"
        + paragraph(f"In {unit}, with nothing switched on. The number above a bar counts its cold requests.", "soft")
        + key([("read", "all else"), ("late", "what cold requests wrote again")])
        + framed(plot, f"Plot: the bill by {by}")
    )


def _bar(group: Group, *, is_priced: bool) -> tuple[str, float, float, int]:
    units = group.units[NONE.name]
    cost = (group.usd or 0.0) if is_priced else units
    return group.name, cost, cost * group.cold_excess / units if units else 0.0, group.cold_requests


def _policies(summary: Summary, found: Answer) -> str:
    lines = table.money(summary)
    chosen = found.choice
    best: Key | None = (chosen.figures.policy, chosen.figures.lifetime) if chosen else None
    kinds = ["chosen" if key == best else "" for key in summary.shown]
    changes = [
        (table.label(key), change, interval.change if (interval := summary.interval(key)) else None)
        for key in summary.shown
        if key != UNTOUCHED and (change := summary.figures(key).change) is not None
    ]
    parts = [
        "<h2>What each choice would have cost</h2>",
        paragraph(
            "Left of the line is cheaper than doing nothing. The thin line is the range over resampled sessions.",
            "soft",
        ),
        framed(plots.changes(changes), "Plot: bills against doing nothing") if changes else "",
        drawn_table(
            lines, "Bills, and where a saving comes from: removal, entries kept alive, another lifetime", kinds
        ),
    ]
    content = table.content(summary)
    if content:
        parts.append(drawn_table(content, "What was removed, and what became of it"))
    return "".join(parts)


def _removed(summary: Summary, found: Answer) -> str:
    """By tool, for the policy that is advised, else the first that removed something."""
    names = [found.choice.figures.policy] if found.choice else []
    policy = next((name for name in [*names, *summary.kinds] if summary.kinds.get(name)), None)
    if policy is None:
        return "<h2>What was removed</h2>" + paragraph("Nothing was removed.")
    kinds = sorted(summary.kinds[policy].items(), key=lambda item: (-item[1].tokens, item[0]))
    rows = [(tool or "unknown", kind.removals, kind.tokens, kind.used_later) for tool, kind in kinds[:15]]
    return (
        f"<h2>What {text(table.label((policy, CLIENT)))} removed, by tool</h2>"
        + key([("read", "tokens taken out"), ("fresh", "share of the outputs that was used again later")])
        + framed(plots.kinds(rows), "Plot: removed outputs by tool")
    )


def _groups(summary: Summary, groups: Groups) -> str:
    if summary.sessions < 2:
        return ""
    listed = groups.listed()
    names = [policy for policy, lifetime in summary.totals if lifetime == CLIENT]
    few = f", the {LISTED} dearest of {len(listed):,}" if len(listed) > LISTED else ""
    lines = table.group_lines(groups.by, listed[:LISTED], names)
    return f"<h2>By {groups.by}</h2>" + drawn_table(lines, f"The bill by {groups.by}, and each policy against it{few}")


def _requests(drawn: Sequence[Result], n_sessions: int) -> list[str]:
    if not drawn:
        return []
    few = "" if len(drawn) == n_sessions else f" These are the {len(drawn)} sessions with the largest bills."
    head = "<h2>Sessions, request by request</h2>"
    about = paragraph(f"Units are fresh input tokens of the request's model.{few}", "soft")
    return [head, about, *(session(result, is_open=n == 0) for n, result in enumerate(drawn))]
