"""What a person knows a session by: its project, its day, its first words, its model."""

import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cg.replay.reading import Recording
from cg.replay.recordings.log_files import head
from cg.replay.recordings.recording import Session, Unusable
from cg.replay.sessions import AgentSteps

HEAD_BYTES = 65_536  # a log names its folder on one of its first lines; attachments may stand before
NAMED = re.compile(rb'"(?:cwd|repo)"\s*:\s*("(?:[^"\\]|\\.){1,4096}")')  # as Claude Code, and as agent-session/1
CLIENTS_OWN = ("<", "Caveat:")  # reminders, commands and their warning, which clients put before what a person says
MOST_WORDS = 80  # letters of the first words that are kept


@dataclass(frozen=True, slots=True)
class About:
    """One session as its owner would name it."""

    project: str = ""  # the folder that the agent worked in, else the one that the log lies in
    words: str = ""  # the beginning of what the user said first
    model: str = ""  # that of most requests
    started: float | None = None  # seconds since the epoch; None: the log has no dates
    ended: float | None = None


def about(session: Session, recording: Recording) -> About:
    """What to call a session. An `agent-session/1` file has offsets and no dates, so it has no day."""
    turns = recording.turns
    is_dated = recording.timed and not isinstance(session.read, AgentSteps)
    models = Counter(turn.model for turn in turns)
    return About(
        project=project(session.path),
        words=first_words(recording),
        model=max(sorted(models), key=lambda name: models[name]),
        started=turns[0].at if is_dated else None,
        ended=turns[-1].at if is_dated else None,
    )


def project(path: Path) -> str:
    """The last part of the folder that the log says the agent worked in; without one, the folder that the log lies in."""
    try:
        found = NAMED.search(head(path, HEAD_BYTES))
        folder = json.loads(found[1]) if found else ""
    except (
        Unusable,
        OSError,
        EOFError,
        zlib.error,
        ValueError,
    ):  # the session was read before; its name is no reason to fail
        folder = ""
    return next((part for part in reversed(re.split(r"[/\\]+", folder)) if part), "") or path.absolute().parent.name


def first_words(recording: Recording) -> str:
    """The beginning of the first thing that a person said, on one line; what clients put before it is passed over."""
    for message in recording.turns[0].messages:
        content = json.loads(message.json)
        for block in content["content"] if content["role"] == "user" else ():
            said = " ".join(block["text"].split()) if block["type"] == "text" else ""
            if said and not said.startswith(CLIENTS_OWN):
                return said[:MOST_WORDS]
    return ""
