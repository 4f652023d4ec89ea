"""A study as two pages: the conclusion, which people write, and the tables, which are replaced between two marks."""

import os
from pathlib import Path

from cg.errors import CgError
from cg.replay.reporting.resampling import LEVEL
from cg.replay.settings import VERDICT_TOKENS
from cg.sweep.economics import START_BYTES_PER_TOKEN
from studies import curves
from studies.drawing import draw
from studies.measure import Results
from studies.questions import free_rules
from studies.study import Study, table
from studies.variants import LIFETIMES, Variant

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
CURVES = "free-judges-curves"


def write(study: Study, results: Results, into: Path, tables: Path, command: str) -> list[Path]:
    """Write a study's tables and plots, and a page for its conclusion where there is none; returns the files.

    Raises CgError where the page of the tables has lost its marks.
    """
    page, figures = into / f"{study.name}.md", tables / f"{study.name}.md"
    plots = {into / f"{study.name}.svg": draw(study, results)}
    if study.name == free_rules().name and any(session.moments for session in results.sessions):
        plots[tables / f"{CURVES}.svg"] = curves.plot(results)
    block = made(study, results, command)
    try:
        old = figures.read_text("utf-8") if figures.exists() else fresh(study)
        texts = {figures: replaced(old, block, figures), **plots}
        if not page.exists():
            texts[page] = conclusion(study, Path(os.path.relpath(figures, into)))
        for path, text in texts.items():
            path.write_text(text, "utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CgError(f"{figures}: cannot be written: {type(error).__name__}") from error
    return list(texts)


def fresh(study: Study) -> str:
    """The page of the tables before it has any."""
    return f"# {study.title}\n\n{study.question}\n\n{study.how}\n\n{BEGIN}\n{END}\n"


def conclusion(study: Study, figures: Path) -> str:
    """The page that people go on to write: the question, the plot, and the way to the tables."""
    return (
        f"# {study.title}\n\n{study.question}\n\n![{study.title}]({study.name}.svg)\n\n[Tables]({figures.as_posix()})\n"
    )


def replaced(old: str, block: str, page: Path) -> str:
    """The page with a new block of figures."""
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CgError(f"{page}: has no lines {BEGIN} and {END} between which the figures stand")
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}"


def made(study: Study, results: Results, command: str) -> str:
    """All that stands between the marks."""
    parts = [f"Made by `{command}`.", sample(results), table(study, results)]
    if study.name == free_rules().name:
        parts += [f"![Live kept against spent gone]({CURVES}.svg)", curves.text(results)]
    return "\n\n".join(parts)


def sample(results: Results) -> str:
    """What the figures of every page rest on, and how little that is."""
    sessions = results.sessions
    requests, outputs = sum(s.requests for s in sessions), sum(s.outputs for s in sessions)
    cold = []
    for name, ttl_s in LIFETIMES.items():
        rows = results.rows.get(Variant(ttl_s=ttl_s), [])
        if rows:
            n, where = sum(r.cold_requests for r in rows), sum(r.cold_requests > 0 for r in rows)
            cold.append(f"{n} in {where} of them at {name}")
    untimed = sum(not s.timed for s in sessions)
    steady = f" ({untimed} without times: their requests are taken to be a few seconds apart)" if untimed else ""
    return (
        f"{len(sessions)} recordings, {requests:,} requests, {outputs:,} tool outputs{steady}"
        + (f". Cold requests: {', '.join(cold)}" if cold else "")
        + f". Bills are in price units, intervals ({LEVEL:.0%}) over resampled recordings, dollars over the recordings "
        f"whose models have a known price. {START_BYTES_PER_TOKEN:g} bytes a token, {VERDICT_TOKENS} output tokens a "
        "verdict unless said. 'live lost' counts removed outputs that the recording uses later, of all such outputs that "
        "were up for a decision; bringing them back is in the bill. 'at work on': recordings in which anything was asked, "
        "pinged or removed. The change is against doing nothing, below zero is cheaper; with nothing removed it is the "
        "price of the declared tool. 'after the end': what asks and pings would add if nobody came back."
    )
