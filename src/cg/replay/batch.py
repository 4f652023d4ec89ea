"""Many sessions under many policies: a session is one piece of work, done here or by any executor."""

import contextlib
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path

from cg.errors import CgError
from cg.replay.about import About, about
from cg.replay.policies import LIFETIMES, NONE, Policy
from cg.replay.reading import Recording, record
from cg.replay.recordings.recording import Before
from cg.replay.row import Row
from cg.replay.run import run
from cg.replay.sessions import Damaged, Session, unexpected
from cg.replay.settings import PLAN, TTLS, Settings
from cg.replay.trace import Trace, Tracer

AHEAD = 4  # sessions handed to an executor for each that is awaited: results come in order, and memory stays flat
PLANNED = Policy(f"lifetime-{PLAN}", LIFETIMES[f"lifetime-{PLAN}"])
SWITCHED_ON = (NONE.name, "quiet", "cold")  # policies that need no judge and bring all back: what advice may name


# How the reason begins where a file was read well and there is nothing in it to price.
NO_SESSION = ("a log without a request", "a session without a request", "not a session log", "a copy: ")


@dataclass(frozen=True, slots=True)
class Result:
    """One session under all policies, or why it was skipped."""

    name: str
    path: Path
    error: str | None = None
    client: str = ""
    requests: int = 0
    elsewhere: int = 0  # requests of this log that an earlier one holds too, where they are counted
    damaged: int = 0  # lines of its file of which something is lost
    outputs: int = 0
    ttl_s: int = 0
    is_ttl_recorded: bool = False
    about: About = About()
    is_outside: bool = False  # began before or after what was asked for: read, and not priced
    rows: dict[str, Row] = field(default_factory=dict)
    lifetimes: dict[str, dict[str, Row]] = field(
        default_factory=dict
    )  # lifetime -> policy -> what it costs at that one
    traces: dict[str, Trace] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """The file holds no session of its own: nothing is lost by passing over it."""
        return self.error is not None and self.error.startswith(NO_SESSION)


def replay_session(session: Session | Damaged, policies: Sequence[Policy], settings: Settings) -> Result:
    """One session under all policies; it is read once."""
    if isinstance(session, Damaged):
        return Result(session.name, session.path, session.reason)
    try:
        return _priced(session, policies, settings)
    except CgError as error:
        return Result(session.name, session.path, str(error))
    except Exception as error:
        return Result(session.name, session.path, unexpected(error))


def _priced(session: Session, policies: Sequence[Policy], settings: Settings) -> Result:
    recording = record(session)
    known = about(session, recording)
    if not settings.takes(known.started):
        return Result(session.name, session.path, about=known, is_outside=True)
    rows, traces = {}, {}
    for policy in policies:
        tracer = Tracer() if settings.with_trace else None
        rows[policy.name] = run(recording, policy, settings, tracer)
        if tracer is not None:
            traces[policy.name] = tracer.trace(recording, settings.bytes_per_token)
    return Result(
        session.name,
        session.path,
        client=session.client,
        requests=len(recording.turns),
        elsewhere=session.elsewhere,
        damaged=session.damaged,
        outputs=sum(len(m.outputs) for turn in recording.turns if not turn.opens for m in turn.messages),
        ttl_s=settings.ttl_of(recording.ttl_s),
        is_ttl_recorded=settings.ttl_s is None and recording.ttl_s is not None,
        about=known,
        rows=rows,
        lifetimes={name: _at_lifetime(name, recording, policies, settings, rows) for name in settings.lifetimes},
        traces=traces,
    )


def _at_lifetime(
    name: str, recording: Recording, policies: Sequence[Policy], settings: Settings, rows: dict[str, Row]
) -> dict[str, Row]:
    """What doing nothing, and each policy that could be switched on, costs at another lifetime than the client's."""
    wanted = [policy for policy in policies if policy.name in SWITCHED_ON]
    if name == PLAN:
        planned = replace(settings, lifetime=PLAN)
        return {each.name: run(recording, PLANNED if each == NONE else each, planned) for each in wanted}
    if TTLS[name] == settings.ttl_of(recording.ttl_s):
        return {policy.name: rows[policy.name] for policy in wanted}
    there = replace(
        settings, ttl_s=TTLS[name]
    )  # what the sweep does when it writes this lifetime from the first body on
    return {policy.name: run(recording, policy, there) for policy in wanted}


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
    sessions = taught(sessions)
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


@contextlib.contextmanager
def workers(jobs: int) -> Iterator[Executor | None]:
    """An executor of so many processes; None for one, which is this one."""
    if jobs == 1:
        yield None
        return
    others = set(active_children())
    # A fresh interpreter for each worker: forking a process that has threads is what breaks elsewhere. One ends at an
    # interrupt without a word, which is ours to say.
    interrupts = signal.SIGINT, signal.SIG_DFL
    with ProcessPoolExecutor(jobs, get_context("spawn"), signal.signal, interrupts) as pool:
        try:
            yield pool
        except BaseException:  # nobody waits for what is still being worked on
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def taught(sessions: Iterable[Session | Damaged]) -> Iterator[Session | Damaged]:
    """The sessions, each with what a store would have learnt by then of the same user."""
    known: dict[str, Before] = {}
    for session in sessions:
        if isinstance(session, Damaged):
            yield session
            continue
        before = known.get(session.user, Before())
        yield replace(session, before=before)
        known[session.user] = Before(before.gaps.plus(session.gaps), before.billed + session.billed)


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
