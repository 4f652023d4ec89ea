"""Many sessions under many policies: a session is one piece of work, done here or by any executor."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from cg.errors import CgError
from cg.replay.policies import Policy
from cg.replay.reading import record
from cg.replay.row import Row
from cg.replay.run import run
from cg.replay.sessions import Damaged, Session, unexpected
from cg.replay.settings import Settings
from cg.replay.trace import Trace, Tracer

AHEAD = 4  # sessions handed to an executor for each that is awaited: results come in order, and memory stays flat


@dataclass(frozen=True, slots=True)
class Result:
    """One session under all policies, or why it was skipped."""

    name: str
    path: Path
    error: str | None = None
    client: str = ""
    requests: int = 0
    elsewhere: int = 0  # requests of this log that an earlier one holds too, where they are counted
    outputs: int = 0
    ttl_s: int = 0
    is_ttl_recorded: bool = False
    rows: dict[str, Row] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)


def replay_session(session: Session | Damaged, policies: Sequence[Policy], settings: Settings) -> Result:
    """One session under all policies; it is read once."""
    if isinstance(session, Damaged):
        return Result(session.name, session.path, session.reason)
    try:
        recording = record(session)
        rows, traces = {}, {}
        for policy in policies:
            tracer = Tracer() if settings.with_trace else None
            rows[policy.name] = run(recording, policy, settings, tracer)
            if tracer is not None:
                traces[policy.name] = tracer.trace(recording, settings.bytes_per_token)
    except CgError as error:
        return Result(session.name, session.path, str(error))
    except Exception as error:
        return Result(session.name, session.path, unexpected(error))
    return Result(
        session.name,
        session.path,
        client=session.client,
        requests=len(recording.turns),
        elsewhere=session.elsewhere,
        outputs=sum(len(m.outputs) for turn in recording.turns if not turn.opens for m in turn.messages),
        ttl_s=settings.ttl_of(recording.ttl_s),
        is_ttl_recorded=settings.ttl_s is None and recording.ttl_s is not None,
        rows=rows,
        traces=traces,
    )


def replay(
    sessions: Iterable[Session | Damaged],
    policies: Sequence[Policy],
    settings: Settings,
    *,
    executor: Executor | None = None,
    jobs: int = 1,
) -> Iterator[Result]:
    """The results of all sessions in their order, whoever works on them.

    `executor` is any `concurrent.futures.Executor`; `jobs` is how many it works on at a time. What could not be read is
    a result with an error, and so is what an executor lost.
    """
    if executor is None:
        for session in sessions:
            yield replay_session(session, policies, settings)
        return
    work = iter(sessions)
    waiting: deque[tuple[Session | Damaged, Future[Result]]] = deque()
    while True:
        for session in islice(work, max(0, AHEAD * jobs - len(waiting))):
            waiting.append((session, _submitted(executor, session, policies, settings)))
        if not waiting:
            return
        yield _awaited(*waiting.popleft())


def _submitted(
    executor: Executor, session: Session | Damaged, policies: Sequence[Policy], settings: Settings
) -> Future[Result]:
    try:
        return executor.submit(replay_session, session, policies, settings)
    except BrokenExecutor as error:  # a worker was killed before: the sessions that are left are named
        lost: Future[Result] = Future()
        lost.set_exception(error)
        return lost


def _awaited(session: Session | Damaged, future: Future[Result]) -> Result:
    try:
        return future.result()
    except BrokenExecutor:
        return Result(session.name, session.path, "lost: a worker process was ended from outside")
    except Exception as error:
        return Result(session.name, session.path, unexpected(error))
