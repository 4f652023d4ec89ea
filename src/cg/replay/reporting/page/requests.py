"""One session opened to its requests."""

from collections.abc import Iterator, Mapping

from cg.replay.batch import Result
from cg.replay.policies import NONE
from cg.replay.reporting.figures import CLIENT
from cg.replay.reporting.groups import title_of
from cg.replay.reporting.page import plots
from cg.replay.reporting.page.parts import framed, key, paragraph, table, text
from cg.replay.reporting.table import label
from cg.replay.reporting.words import count
from cg.replay.trace import Trace, context_tokens, cost

LISTED = 500  # requests in the table of one session
SHOWN = ("quiet", "cold")  # whose removals stand beside doing nothing in that table, the first that was priced


def session(result: Result, *, is_open: bool) -> str:
    """Its plots and, folded, its requests."""
    traces = {label((name, CLIENT)): trace for name, trace in result.traces.items()}
    about = f"{result.requests} requests, {result.outputs} outputs, lifetime {result.ttl_s // 60} min"
    about += f", {result.client}" if result.client else ""
    return "".join(
        [
            f"<details{' open' if is_open else ''}><summary>{text(title_of(result))} <span>{text(about)}</span></summary>",
            *_plots(traces, result.ttl_s),
            _requests(result.traces),
            "</details>",
        ]
    )


def _plots(traces: Mapping[str, Trace], ttl_s: int) -> Iterator[str]:
    removed = plots.removals(traces)
    yield "<h3>Cost per request by tier</h3>"
    yield key([*((band, plots.WORDS[band]) for band in plots.BANDS), ("late", "came after the entry's expiry")])
    yield framed(plots.costs(traces), "Plot: cost per request")
    yield "<h3>What each request carried</h3>"
    yield key([(f"l{n % plots.COLOURS}", name) for n, name in enumerate(traces)])
    yield framed(plots.context(traces), "Plot: tokens that each request carried")
    yield "<h3>The cached prefix over time</h3>"
    yield paragraph("Along the session's clock; a wait of more than two lifetimes is drawn as two.", "soft")
    marks = [
        ("held", "held"),
        ("cold", "lost"),
        ("fresh", "a request that had to write it again"),
        ("aside", "ask or ping"),
    ]
    yield key(marks)
    yield framed(plots.cache(traces, ttl_s), "Plot: whether the cached prefix was held")
    yield "<h3>Removed outputs and their later use</h3>"
    if removed:
        yield key([("soft", "gone from this request on"), ("fresh", "used again by the recorded answer")])
        yield framed(removed, "Plot: removed outputs and their later use")
    else:
        yield paragraph("Nothing was removed.")


def _requests(traces: Mapping[str, Trace]) -> str:
    """Every request with doing nothing and, beside it, one policy."""
    none = traces[NONE.name]
    name = next((name for name in SHOWN if name in traces), None)
    own = traces[name] if name else None
    gone = _removed_at(own) if own else {}
    heads = ["request", "minute", "carried", "read", "written", "fresh", "output", "units"]
    lines: list[tuple[str, ...]] = [(*heads, *(("carried", "units", "removed") if own else ()))]
    kinds = []
    for n, point in enumerate(none.points[:LISTED]):
        usage = point.usage
        written = usage.write_5m + usage.write_1h
        cells = (usage.read, written, usage.fresh, usage.output, round(cost(point)))
        beside: tuple[str, ...] = ()
        if own:
            other = own.points[n]
            beside = (count(context_tokens(other)), count(round(cost(other))), count(gone.get(point.index, 0)))
        first = (
            f"{point.index}{' cold' if point.is_cold else ''}",
            f"{point.at / 60:.1f}",
            count(context_tokens(point)),
        )
        lines.append((*first, *map(count, cells), *beside))
        kinds.append("late" if point.is_cold else "")
    caption = "Tokens by request with nothing switched on" + (
        f"; behind them carried, units and removed with {name}" if own else ""
    )
    if len(none.points) > LISTED:
        caption += f"; the first {LISTED} of {len(none.points):,}"
    return f"<details><summary>Every request</summary>{table(lines, caption, kinds)}</details>"


def _removed_at(trace: Trace) -> dict[int, int]:
    """Removed outputs by the request that dropped them."""
    found: dict[int, int] = {}
    for removed in trace.removed:
        found[removed.request] = found.get(removed.request, 0) + 1
    return found
