"""Which tool outputs may be judged, which of them one ask takes, and the line that names each of them."""

from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal

from cg.sweep.accounting.tally import Tally
from cg.sweep.body.marker import EXPAND_TOOL
from cg.sweep.body.transcript import ToolText, ToolUse, Transcript, strings
from cg.sweep.config import Config
from cg.sweep.counters import Decline, Event
from cg.sweep.judging.coreference import Index, Record, Standing, decoded_arguments, turns_up_to
from cg.sweep.judging.paths import command_paths, is_under, named_paths
from cg.sweep.values import Thread

CUT = 90  # characters of an argument or a first line that a line shows: enough to tell one call from another
NAME_CUT = 64  # characters of a tool's name or an id, the API's own limit

# The arguments that tell one call of a tool from another, best first; tools that have none of them show their first string.
TELLING = (
    "file_path",
    "notebook_path",
    "path",
    "filename",
    "file",
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "uri",
    "prompt",
    "description",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One output that may be judged."""

    text: ToolText
    tool: str
    locator: str  # the call in words that the model can see: name, most telling argument, which call of that kind
    tokens: float  # estimated
    later_turns: int  # assistant messages after it


@dataclass(frozen=True, slots=True)
class Inventory:
    """The candidates of one ask; a candidate's label is its position."""

    offered: tuple[Candidate, ...]
    events: Counter[Event]
    declines: Counter[Decline]
    is_enough: bool  # at least `min_inventory` of them, and one


def shown(text: str, limit: int) -> str:
    """`text` on one line, cut at a character, without anything that cannot be written as UTF-8."""
    line = " ".join(text[: 4 * limit].split())
    cut = line[:limit] + "…" if len(line) > limit or len(text) > 4 * limit else line
    printable = "".join(c if c.isprintable() else "\ufffd" for c in cut)
    return printable.encode("utf-8", "replace").decode("utf-8")


def telling_argument(arguments: bytes) -> str:
    """The argument that best tells a call from others of its tool, cut at 90 characters; empty where there is none."""
    return _remembered(arguments) if len(arguments) <= SHORT_ARGUMENTS else _telling(arguments)


def _telling(arguments: bytes) -> str:
    value: Any = decoded_arguments(arguments)
    if isinstance(value, dict):
        for name in TELLING:
            if isinstance(value.get(name), str) and value[name].strip():
                return shown(value[name], CUT)
    return next((shown(text, CUT) for text in strings(value) if text.strip()), "")


SHORT_ARGUMENTS = 512  # bytes, as most calls have; an edit's can be as long as its file
_remembered = lru_cache(maxsize=4096)(_telling)  # each ask names all calls of its conversation again; 4 MB at the most


def locators(transcript: Transcript, wanted: set[str]) -> dict[str, str]:
    """For each wanted tool_use id its call in words, numbered among the calls that read the same."""
    names = {transcript.tool_uses[i].name for i in wanted if i in transcript.tool_uses}
    calls: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call in sorted(transcript.tool_uses.values(), key=lambda call: call.message):
        if call.name in names:
            calls[call.name, telling_argument(call.arguments)].append(call.id)
    found = {}
    for (name, argument), ids in calls.items():
        words = shown(name, NAME_CUT) + (f' "{argument}"' if argument else "")
        for nth, tool_use_id in enumerate(ids, start=1):
            found[tool_use_id] = f"{words}, call {nth} of {len(ids)}"
    return found


def refusal(text: ToolText, tool: str, thread: Thread) -> Decline | None:
    """Why an output can never be judged, whatever its size; None if it can."""
    if text.has_marker or not text.size_bytes:
        return Decline.EMPTY_OR_MARKER
    identity = text.identity
    if tool == EXPAND_TOOL or identity.sha256 in thread.expanded or identity in thread.ended:
        return Decline.KEPT_VERBATIM
    return Decline.ALREADY_PENDING if identity in thread.pending else None


def is_protected(call: ToolUse | None, config: Config) -> bool:
    """Whether a person has said that what a call brought is never removed: by the tool's name, or by a path it names,
    in an argument, a patch or a shell command."""
    if call is None or not (config.protected_tools or config.protected_paths):
        return False
    if any(fnmatchcase(call.name, glob) for glob in config.protected_tools):
        return True
    value = decoded_arguments(call.arguments) if config.protected_paths else {}
    named = {*named_paths(value), *command_paths(value)}
    return any(is_under(path, glob) for path in named for glob in config.protected_paths)


def answered_messages(transcript: Transcript) -> int:
    """How many messages, from the first on, some answer stands behind: what comes after them nobody has read yet."""
    return max((i + 1 for i, role in enumerate(transcript.roles) if role == "assistant"), default=0)


def eligible(
    transcript: Transcript,
    thread: Thread,
    config: Config,
    bytes_per_token: float,
    *,
    removed: Container[ToolText] = (),
    asked_messages: int | None = None,
    is_to_be_shown: bool = True,
) -> tuple[tuple[Candidate, ...], Counter[Decline]]:
    """The outputs that may be judged, in body order, and how many were turned away for which reason.

    What is already removed, in this thread or as the caller knows (`removed`), is neither. With `asked_messages`, the
    length of the history that the asked model is going to read, outputs behind it are turned away: their lines alone
    cannot be judged. Candidates that nobody `is_to_be_shown` have no locator, which takes longer to make than the rest.
    """
    declines: Counter[Decline] = Counter()
    found: list[tuple[ToolText, str, float]] = []
    for text in transcript.tool_texts:
        if text in removed:
            continue
        call: ToolUse | None = transcript.tool_uses.get(text.tool_use_id)
        tool = call.name if call else ""
        reason = refusal(text, tool, thread)
        if reason is None and is_protected(call, config):
            reason = Decline.PROTECTED
        tokens = text.size_bytes / bytes_per_token
        if reason is None and text.identity in thread.removals:
            continue
        if reason is None and tokens < config.min_tokens:
            reason = Decline.BELOW_OUTPUT_FLOOR
        if reason is None and asked_messages is not None and text.message >= asked_messages:
            reason = Decline.CANDIDATE_UNSEEN
        if reason is not None:
            declines[reason] += 1
            continue
        found.append((text, tool, tokens))
    if not found:
        return (), declines
    turns = turns_up_to(transcript.roles)
    words = locators(transcript, {text.tool_use_id for text, _, _ in found}) if is_to_be_shown else {}
    return tuple(
        Candidate(text, tool, words.get(text.tool_use_id, "unknown call"), tokens, turns[-1] - turns[text.message])
        for text, tool, tokens in found
    ), declines


def choose(
    candidates: Sequence[Candidate], cap: int, select: Literal["oldest", "largest"]
) -> tuple[tuple[Candidate, ...], int]:
    """At most `cap` candidates in body order, and how many were left out; of equal sizes the older go first."""
    if len(candidates) <= cap:
        return tuple(candidates), 0
    order = list(range(len(candidates)))
    if select == "largest":
        order.sort(key=lambda i: -candidates[i].tokens)
    return tuple(candidates[i] for i in sorted(order[:cap])), len(candidates) - cap


def assemble(
    found: Sequence[Candidate],
    *,
    cap: int,
    select: Literal["oldest", "largest"],
    min_inventory: int,
) -> Inventory:
    """The inventory of one ask and its counts."""
    offered, over_cap = choose(found, cap, select)
    events: Counter[Event] = Counter()
    declines: Counter[Decline] = Counter()
    events[Event.OFFERED] = len(offered)
    events[Event.INVENTORY_OF_ONE] = int(len(offered) == 1 >= min_inventory)
    declines[Decline.OVER_ASK_CAP] = over_cap
    is_enough = len(offered) >= max(1, min_inventory)
    if not is_enough:
        declines[Decline.INVENTORY_BELOW_MIN] = len(offered)
    return Inventory(offered, +events, +declines, is_enough)


def note_thinned(tally: Tally, asked: Sequence[Candidate], cap: int) -> None:
    """Count what was lost between the listing and the ask, wherever that happened: such a filter starves asks unseen."""
    left = len(asked) or tally.declines[Decline.INVENTORY_BELOW_MIN]
    tally.event(Event.INVENTORY_THINNED, max(0, min(cap, tally.listed) - left))


def evidence(record: Record | None, later_turns: int) -> str:
    """The index's counters in words; never zeros where it has no record."""
    if record is None:
        return f"no index record, {later_turns} turns since"
    if record.standing is Standing.OPAQUE:
        return f"nothing in it that could be recognised, {record.later_turns} turns since"
    last = "" if record.age is None else f", last {record.age} messages ago"
    return (
        f"introduced {record.introduced}, used {record.used_share:.0%} in {record.references} messages{last}, "
        f"{record.later_turns} turns since: {record.standing}"
    )


def first_line(text: str) -> str:
    """The first line of a text that is not blank, or its beginning if that is very long."""
    start = text.lstrip()[: 8 * CUT]
    return start.replace("\r", "\n").split("\n", 1)[0]


def line(label: int, candidate: Candidate, *, index: Index | None = None, head_line: bool = False) -> str:
    """One candidate in an ask: label, size, id if the wire gave one, the call, then evidence and first line if wanted."""
    text = candidate.text
    parts = [f"[{label}] {round(candidate.tokens)} tokens"]
    if text.tool_use_id:
        parts.append(f"id {shown(text.tool_use_id, NAME_CUT)}" + (f" part {text.block + 1}" if text.block else ""))
    parts.append(candidate.locator)
    if index is not None:
        parts.append(evidence(index.record(text.identity), candidate.later_turns))
    if head_line:
        parts.append("starts: " + shown(first_line(text.text), CUT))
    return ", ".join(parts)
