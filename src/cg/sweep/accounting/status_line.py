"""One line for a status bar: how long the cached beginning lives, what a lapse would cost, what was removed, what it saved."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cg.errors import CgError
from cg.sweep.counters import Event
from cg.sweep.economics import START_BYTES_PER_TOKEN
from cg.sweep.prices import ONE_HOUR_S, PriceTable
from cg.sweep.values import Thread, Usage, usage_of

TAIL_BYTES = 4 * 2**20  # of a log: its last answer is there unless one tool output is larger
VARIANT = re.compile(r"\[[^\]]*\]\Z")  # as in claude-opus-4-6[1m], which is sold as claude-opus-4-6
SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """What Claude Code hands to a status line, as far as it is used here."""

    session: str = ""
    log: Path | None = None  # of the session, JSON lines
    model: str = ""
    usage: Usage | None = None  # of the last request


@dataclass(frozen=True, slots=True)
class Entry:
    """The cached beginning of a conversation."""

    at: float | None = None  # when it was last read or written, seconds since the epoch
    ttl_s: int | None = None
    tokens: int | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Swept:
    """What the sweep did, in one session or in all that a state holds."""

    removals: int
    tokens: float
    net_usd: float | None
    is_all: bool = False


def client_status(raw: bytes) -> ClientStatus:
    """Claude Code's status JSON. What is missing or of another type is left out; raises CgError for no JSON object."""
    try:
        status = json.loads(raw)
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        raise CgError("status: standard input holds no JSON object; Claude Code writes one to a status line's command")
    model, window = _object(status, "model"), _object(status, "context_window")
    log = _text(status, "transcript_path")
    current = window.get("current_usage")
    return ClientStatus(_text(status, "session_id"), Path(log) if log else None, _text(model, "id"), usage_of(current))


def last_answer(lines: Iterable[bytes]) -> Entry:
    """The entry that the newest answer on these lines of a log used; a sub-agent's answers are about another one.

    The lifetime is that of the newest write that states one.
    """
    newest = Entry()
    ttl_s = None
    for line in reversed([line for line in lines if b'"usage"' in line]):
        answer = _answer(line)
        if answer is None:
            continue
        entry, ttl_s = answer
        newest = entry if newest.at is None else newest
        if ttl_s is not None:
            break
    return Entry(newest.at, ttl_s, newest.tokens, newest.model)


def _answer(line: bytes) -> tuple[Entry, int | None] | None:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("type") != "assistant" or answer.get("isSidechain") is True:
        return None
    message = _object(answer, "message")
    at, usage = _time(_text(answer, "timestamp")), usage_of(message.get("usage"))
    if at is None or usage is None or not tokens_of(usage):
        return None
    split = _object(_object(message, "usage"), "cache_creation")
    is_stated = bool(split) and (usage.write_1h or usage.write_5m)
    ttl_s = (ONE_HOUR_S if usage.write_1h >= usage.write_5m else 300) if is_stated else None
    return Entry(at, None, tokens_of(usage), _text(message, "model")), ttl_s


def tokens_of(usage: Usage) -> int:
    """What of a request is cached behind it."""
    return usage.read + usage.write_5m + usage.write_1h


def entry_of(thread: Thread, model: str) -> Entry:
    """The entry of a session's newest branch, by its state."""
    if not thread.branches:
        return Entry(model=model)
    branch = max(thread.branches, key=lambda branch: branch.clock)
    tokens = tokens_of(thread.usages[-1]) if thread.usages else None
    return Entry(branch.clock, branch.ttl_s, tokens, model)


def swept_of(thread: Thread, totals: Mapping[str, Mapping[str, float]]) -> Swept:
    """What stands removed in one session, and what that has saved so far."""
    ratio = thread.bytes_per_token or START_BYTES_PER_TOKEN
    saved = sum(removal.saved_bytes for removal in thread.removals.values())
    return Swept(len(thread.removals), saved / ratio, totals.get("savings", {}).get("net_usd"))


def swept_in_all(totals: Mapping[str, Mapping[str, float]]) -> Swept:
    """The same of every session of a state; a removal counts once."""
    savings, events = totals.get("savings", {}), totals.get("events", {})
    tokens = savings.get("unique_bytes", 0.0) / START_BYTES_PER_TOKEN
    return Swept(round(events.get(Event.APPLIED, 0)), tokens, savings.get("net_usd"), is_all=True)


def status_line(entry: Entry, swept: Swept | None, now: float, prices: PriceTable) -> str:
    """The line. What is not known is not in it."""
    return SEPARATOR.join(part for part in (_lives(entry, now), _lapse(entry, now, prices), *_done(swept)) if part)


def _lives(entry: Entry, now: float) -> str:
    if entry.at is None:
        return "cache: nothing sent yet" if entry.tokens is None else ""
    idle = max(0.0, now - entry.at)
    if entry.ttl_s is None:
        return f"cache last used {_clock(idle)} ago"
    left = entry.ttl_s - idle
    return f"cache {_clock(left)} left" if left > 0 else f"cache expired {_clock(-left)} ago"


def _lapse(entry: Entry, now: float, prices: PriceTable) -> str:
    """What the next request pays more once the entry is gone."""
    if not entry.tokens:
        return ""
    price = prices.price(VARIANT.sub("", entry.model))
    is_gone = entry.at is not None and entry.ttl_s is not None and now - entry.at >= entry.ttl_s
    size = f"{_short(entry.tokens)} tokens"
    what = f"next request writes {size} again" if is_gone else f"a lapse writes {size} again"
    if price is None:
        return what
    return f"{what}: ${entry.tokens * (price.write(entry.ttl_s) - price.read) / 1e6:.2f}"


def _done(swept: Swept | None) -> Iterable[str]:
    if swept is None:
        return
    where = " in all sessions" if swept.is_all else ""
    yield (
        f"{swept.removals:,} removed ({_short(swept.tokens)} tokens){where}"
        if swept.removals
        else f"nothing removed{where}"
    )
    if swept.net_usd is not None and swept.removals:
        yield f"saved {'-' if swept.net_usd < 0 else ''}${abs(swept.net_usd):.2f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _short(count: float) -> str:
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e3:.0f}k" if count >= 1e3 else f"{count:.0f}"


def _object(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _time(stamp: str) -> float | None:
    try:
        when = datetime.fromisoformat(stamp)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
