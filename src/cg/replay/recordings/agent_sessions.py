"""Reader of `agent-session/1`: one JSON object, whose events stand in order and whose assistant events are requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cg.replay.recordings.blocks import ResultBlock, results_of, user_blocks
from cg.replay.recordings.clock import steady
from cg.replay.recordings.conversation import START, Conversation, LoggedTurn
from cg.replay.recordings.log_files import document
from cg.replay.recordings.recording import Step, Tally, Unusable

FORMAT = "agent-session/1"
MAX_OFFSET_S = 1e9  # thirty years; a time past it is no offset


def name_of(path: Path) -> str | None:
    """The session's own name, if it has one. Raises Unusable."""
    name = _opened(path).get("name")
    return name if isinstance(name, str) and name else None


def steps(path: Path, tally: Tally) -> Iterator[Step]:
    """The requests of the session; what they show of it as a whole goes into `tally`. Raises Unusable."""
    return steady(_steps(path, tally))


def _steps(path: Path, tally: Tally) -> Iterator[Step]:
    session = _opened(path)
    tally.client = session["client"] if isinstance(session.get("client"), str) else ""
    source = session.get("source")
    repo = source.get("repo") if isinstance(source, dict) else None
    tally.user = repo if isinstance(repo, str) else ""
    conversation = Conversation(tally)
    turn: LoggedTurn | None = None
    blocks: list[bytes] = []
    results: dict[str, ResultBlock] = {}
    ready: float | None = None
    for event in session["events"]:
        role = event.get("role") if isinstance(event, dict) else None
        if role == "system" and event.get("compact") is True:
            turn, blocks, results, ready = None, [], {}, None
        elif role == "user":
            ready = _time(event.get("ts"), ready)
            blocks += user_blocks(event.get("content"))
            results |= results_of(event.get("content"), ready, len(results))
        elif role == "assistant":
            turn = conversation.ask(turn, blocks, results, ready)
            _hear(conversation, turn, event)
            yield conversation.step(turn)
            blocks, results, ready = [], {}, None


def _opened(path: Path) -> dict[str, Any]:
    session = document(path)
    if not isinstance(session, dict) or session.get("format") != FORMAT:
        raise Unusable(f"not of the format {FORMAT}")
    if not isinstance(session.get("events"), list):
        raise Unusable("no list of events")
    return session


def _hear(conversation: Conversation, turn: LoggedTurn, event: dict[str, Any]) -> None:
    conversation.hear(turn, event.get("content"))
    turn.model = event["model"] if isinstance(event.get("model"), str) else ""
    turn.usage = event.get("usage")
    turn.heard(_time(event.get("ts"), None))
    turn.heard(_time(event.get("ts_end"), None))


def _time(offset: object, default: float | None) -> float | None:
    """Seconds since the epoch of an offset from the session's start."""
    if isinstance(offset, bool) or not isinstance(offset, int | float):
        return default
    if not 0 <= offset <= MAX_OFFSET_S:  # nor is what is not finite; an int of any size compares
        return default
    return START + offset
