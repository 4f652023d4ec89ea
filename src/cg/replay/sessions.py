"""The door to recorded sessions: finds their files, tells the formats apart, and names what cannot be read."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cg.errors import CgError
from cg.replay.recordings import agent_sessions, claude_logs
from cg.replay.recordings.log_files import head
from cg.replay.recordings.recording import Damaged, Session, Step, Tally, Unusable
from cg.sweep.economics import units_of
from cg.sweep.planning.gaps import CONVERSATIONS, Gaps, bin_of

__all__ = ["Damaged", "Session", "Step", "find", "open_all", "open_sessions"]

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".gz")
COMPANIONS = (".labels.json", ".meta.json")  # stand beside sessions in the folders of their writers, and are none
COMPANION_NAMES = frozenset({"manifest.json", "sessions-index.json"})
HEAD_BYTES = 4096  # where a format says its name
AGENT_LETTERS = 8  # of a sub-agent's id, in the name of its session


@dataclass(frozen=True, slots=True)
class AgentSteps:
    """Reads an `agent-session/1` file."""

    path: Path

    def __call__(self) -> Iterator[Step]:
        return _guarded(self.path, agent_sessions.steps(self.path, Tally()))


@dataclass(frozen=True, slots=True)
class ClaudeSteps:
    """Reads one thread of a Claude Code log."""

    path: Path
    thread: str
    copied: frozenset[int] = frozenset()  # numbers of requests that another file holds too

    def __call__(self) -> Iterator[Step]:
        return _guarded(self.path, _without(claude_logs.steps(self.path, Tally(), self.thread), self.copied))


def find(paths: Iterable[Path | str]) -> Iterator[Path]:
    """The session files under the paths, each once: files as given, folders searched to any depth, files first.

    Folders are searched for `.json`, `.jsonl` and `.gz`; hidden ones, links to folders, and the files that clients keep
    beside their logs are passed over. Raises CgError for a path that is not there and a folder without such a file.
    """
    seen: set[str] = set()
    for path in map(Path, paths):
        for file in _under(path):
            if (real := os.path.realpath(file)) not in seen:
                seen.add(real)
                yield file


def open_sessions(path: Path | str) -> Iterator[Session | Damaged]:
    """The sessions of one file, sub-agents' as sessions of their own; one Damaged with the reason if it has none."""
    for found, _ in _opened(Path(path)):
        yield found


def open_all(paths: Iterable[Path | str]) -> Iterator[Session | Damaged]:
    """The sessions under all paths; what cannot be found, searched or read is a Damaged in its place.

    A client that resumes a session may copy its lines into the new file. Requests that an earlier file of this call
    holds too are counted there alone, wherever they stand in the later one.
    """
    seen: set[str] = set()
    answers: set[int] = set()
    for path in map(Path, paths):
        try:
            for file in _under(path):
                if (real := os.path.realpath(file)) not in seen:  # Path.resolve raises for links in rounds
                    seen.add(real)
                    for found, tally in _opened(file):
                        yield _uncopied(found, tally, answers) if isinstance(found, Session) else found
                        answers.update(mark for answer in tally.answers for mark in answer)
        except CgError as error:
            yield Damaged(path.name or str(path), path, str(error).removeprefix(f"{path}: "))


def _opened(path: Path) -> Iterator[tuple[Session | Damaged, Tally]]:
    try:
        if b'"agent-session/' in head(path, HEAD_BYTES):
            name = agent_sessions.name_of(path) or _stem(path)
            yield _session(name, path, AgentSteps(path))
            return
        threads = claude_logs.threads(path)
        if not threads:
            raise Unusable("a log without a request")
        for n, thread in enumerate(threads):
            alone = thread == claude_logs.MAIN or len(threads) == 1
            name = _stem(path) if alone else f"{_stem(path)}#{thread[:AGENT_LETTERS]}"
            session, tally = _session(name, path, ClaudeSteps(path, thread))
            yield (replace(session, damaged=tally.damaged) if n == 0 else session), tally
    except Unusable as reason:
        yield Damaged(_stem(path), path, str(reason)), Tally()
    except Exception as error:
        yield Damaged(_stem(path), path, unexpected(error)), Tally()


def unexpected(error: Exception) -> str:
    """The reason that is given for a fault of ours: its kind alone, as its words may hold content."""
    return f"cannot be replayed: {type(error).__name__}"


def _uncopied(session: Session, tally: Tally, answers: set[int]) -> Session | Damaged:
    """The session less the requests that were answered in a file before."""
    marks = enumerate(tally.answers)
    copied = frozenset(i for i, answer in marks if any(mark in answers for mark in answer))
    if not copied or not isinstance(session.read, ClaudeSteps):
        return session
    if len(copied) == session.requests:
        return Damaged(session.name, session.path, "a copy: another file holds all its requests")
    read = replace(session.read, copied=copied)
    return replace(session, requests=session.requests - len(copied), read=read, elsewhere=len(copied))


def _without(steps: Iterator[Step], copied: frozenset[int]) -> Iterator[Step]:
    """The steps but for those of these numbers; one that follows such a step brings what is new since the last left."""
    if not copied:
        yield from steps
        return
    history: list[bytes] = []
    sent: list[bytes] = []  # the history of the last step that is left
    is_apart = True  # from the step before
    left = 0
    for step in steps:
        history = [*step.messages] if step.opens else history + [*step.messages]
        if step.index in copied:
            is_apart = True
            continue
        if is_apart and sent and history[: len(sent)] == sent:
            yield replace(step, index=left, opens=False, messages=tuple(history[len(sent) :]))
        elif is_apart:
            yield replace(step, index=left, opens=True, messages=tuple(history))
        else:
            yield replace(step, index=left)
        sent, is_apart, left = history, False, left + 1


def _under(path: Path) -> Iterator[Path]:
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:  # a name that is too long, a folder above that is closed
        raise CgError(f"{path}: {error.strerror}") from error
    if not is_there:
        raise CgError(f"{path}: no such file or folder")
    if not is_folder:
        yield path
        return
    found = False
    for file in _searched(path):
        found = True
        yield file
    if not found:
        raise CgError(f"{path}: no .json, .jsonl or .gz file in this folder")


def _searched(folder: Path) -> Iterator[Path]:
    """Files below a folder, depth first. A link to a file counts, one to a folder does not: links cannot lead in rounds."""
    try:
        # files first: a session stands before its sub-agents, who may copy its lines
        inside = sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name))
    except OSError as error:
        raise CgError(f"{folder}: {error.strerror}") from error
    for path in inside:
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if not path.is_symlink():
                yield from _searched(path)
        elif path.name.endswith(SUFFIXES) and path.name not in COMPANION_NAMES and not path.name.endswith(COMPANIONS):
            yield path


def _session(name: str, path: Path, read: AgentSteps | ClaudeSteps) -> tuple[Session, Tally]:
    """Read through once: whatever is wrong shows here, before anything is priced. Raises Unusable."""
    tally = Tally()
    if isinstance(read, AgentSteps):
        passing = agent_sessions.steps(path, tally)
    else:
        passing = claude_logs.steps(path, tally, read.thread)
    counts: Counter[str] = Counter({CONVERSATIONS: 1})
    before, billed = None, 0.0
    try:
        for step in passing:
            length = bin_of(step.at - before) if before is not None and not step.opens else None
            if length is not None:
                counts[length] += 1
            before = step.at
            billed += units_of(step.usage) if step.usage is not None else 0.0
    except (ValueError, RecursionError):
        raise Unusable("holds a number or a depth that cannot be written again") from None
    if not tally.requests:
        needs = (
            "" if isinstance(read, AgentSteps) else ": no line of an answer has a uuid, its parentUuid and a message"
        )
        raise Unusable(f"a session without a request{needs}")
    found = Session(name, path, tally.client, tally.ttl_s, tally.timed, tally.requests, read)
    return replace(found, user=tally.user, gaps=Gaps.of(counts), billed=billed), tally


def _guarded(path: Path, steps: Iterator[Step]) -> Iterator[Step]:
    """The steps of a file that was read before; if it changed for the worse since, CgError."""
    try:
        yield from steps
    except (Unusable, ValueError, RecursionError) as error:
        raise CgError(f"{path}: {error}") from error


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.removesuffix(".jsonl").removesuffix(".json") or path.name
