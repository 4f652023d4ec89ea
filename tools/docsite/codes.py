"""The reference of every code and counter, from the closed sets that they are members of."""

import ast
import inspect
import io
import tokenize
from collections.abc import Iterable, Iterator
from enum import StrEnum

from cg.gateway import events
from cg.gateway.telemetry import meanings as words
from cg.sweep import counters, ledger, values
from docsite.configuration import code, table

# each set: heading, what it is for, members
SETS: tuple[tuple[str, str, type[StrEnum]], ...] = (
    ("Reasons of a turn", "Label `reason` of `cg_turns_total`: each turn has exactly one.", ledger.Reason),
    ("Phases of a prefix", "Label `phase` of `cg_turn_phases_total`.", values.Phase),
    ("Outcomes of an ask", "Label `outcome` of `cg_asks_total`.", ledger.AskOutcome),
    ("Work done", "Label `event` of `cg_component_events_total`.", counters.Event),
    ("Turned away", "Label `gate` of `cg_component_gate_declines_total`.", counters.Decline),
    ("Requests refused", "Label `why` of `cg_refused_total`.", events.Refusal),
    ("Faults", "Label `fault` of `cg_faults_total` and `cg_outside_faults_total`.", events.Fault),
    ("Ways back", "Label `mode` of `cg_recoveries_total`.", events.Mode),
    ("What a way back brought", "Label `outcome` of `cg_recoveries_total`.", events.Outcome),
    ("Life of an idle ask", "Label `what` of `cg_timers_total`.", events.Timer),
    ("What calls are for", "Label `for` of `cg_tokens_total` and `cg_model_calls_total`.", events.Spend),
)

# As the page and the doctor say it. Members of different sets are equal when their words are, so the set is in the key.
WORDS = {
    (type(member), member): said
    for of_set in (words.REASONS, words.FAULTS, words.OUTCOMES, words.ASKS)
    for member, said in of_set.items()
} | {(values.Phase, phase): words.REASONS[ledger.Reason(phase)] for phase in values.Phase}


def page() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *_sets()])


HEAD = """\
# Codes and counters

Made from the closed sets in the code. No code is built from content, so their number does not depend on traffic. Exit codes
stand with each [command](commands.md), the error codes of `cg-hints` in [hints](../hints.md#refusals). Words are explained
in the [glossary](../glossary.md).
"""


def _sets() -> Iterator[str]:
    for heading, what, members in SETS:
        said = comments(members)
        yield f"## {heading}\n\n{what}\n"
        yield table(
            ["code", "meaning"],
            ([code(m.value), WORDS.get((members, m)) or said[m.name]] for m in members),
        )


def comments(members: type[StrEnum]) -> dict[str, str]:
    """The comment behind each member in the source."""
    source = inspect.getsource(members)
    said = {t.start[0]: t.string.lstrip("# ") for t in _comments_in(source)}
    [body] = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    return {
        line.targets[0].id: said[line.lineno]
        for line in body.body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.lineno in said
    }


def _comments_in(source: str) -> Iterable[tokenize.TokenInfo]:
    return [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
