"""Sessions and runs for tests of the replay: recordings by name, made ones, and a run whose every body is kept."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cg.replay.cache_model import prompt_of
from cg.replay.policies import Policy, parse
from cg.replay.reading import Recording, record
from cg.replay.recordings.recording import Session, Step
from cg.replay.row import Row
from cg.replay.run import Sent, run
from cg.replay.sessions import open_sessions
from cg.replay.settings import Settings
from cg.replay.simulation import sweep_actor as swept
from cg.replay.simulation.bodies import body
from cg.replay.simulation.history import History
from cg.sweep.drivers import Sweep
from cg.sweep.values import Usage

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"
RECORDINGS = sorted(
    path.stem for path in TRANSCRIPTS.glob("*.json") if path.name != "manifest.json" and ".labels" not in path.name
)


def recording(name: str) -> Recording:
    """A shared recording."""
    (session,) = open_sessions(TRANSCRIPTS / f"{name}.json")
    assert isinstance(session, Session), session
    return record(session)


def policy(name: str, **config: Any) -> Policy:
    """A policy by name, some keys of its configuration set."""
    found = parse([name])[-1]
    if config:
        assert found.config is not None
        found = dataclasses.replace(found, config=dataclasses.replace(found.config, **config))
    return found


def sent_body(line: History) -> bytes:
    """The request as it leaves."""
    messages = list(line.sent)
    if line.spare is not None:
        messages[line.spare[0]] = line.spare[1]
    tools = line._tools()
    return body(dataclasses.replace(line.frame, tools=tools), messages, ttl_s=line.written_s)


class Bodies:
    """Watches a run and keeps the bodies that left; every `nth` is compared with the prompt that was priced."""

    def __init__(self, nth: int = 5) -> None:
        self._nth = nth
        self.bodies: list[bytes] = []
        self.swept: list[bytes] = []
        self.usages: list[Usage] = []
        self.mismatched: list[int] = []
        self.row = Row()

    def __call__(self, sent: Sent) -> None:
        left = sent_body(sent.line)
        self.bodies.append(left)
        self.usages.append(sent.usage)
        if self._nth and sent.turn.index % self._nth == 0:
            self._check(sent, left)

    def _check(self, sent: Sent, left: bytes) -> None:
        prompt, breakpoints = prompt_of(left, bytes_per_token=sent.line.prompt.bytes_per_token)
        last = len(prompt) - 1
        is_same = len(prompt) == len(sent.line.prompt) and prompt.digest_at(last) == sent.line.prompt.digest_at(last)
        if not is_same or breakpoints != sent.line.breakpoints() or prompt.tokens != sent.line.prompt.tokens:
            self.mismatched.append(sent.turn.index)


def run_both_ways(found: Recording, which: Policy, monkeypatch: Any, **settings: Any) -> tuple[Bodies, Bodies]:
    """(every request through the core, only where it could do something)."""
    runs = []
    for every_turn in (True, False):
        bodies = Bodies(nth=0 if every_turn else 7)

        class Kept(Sweep):
            """Keeps what the core wrote."""

            def process(self, *arguments: Any, **named: Any) -> Any:
                done = super().process(*arguments, **named)
                bodies.swept.append(done.body)  # noqa: B023
                return done

        monkeypatch.setattr(swept, "Sweep", Kept)
        bodies.row = run(found, which, Settings(every_turn=every_turn, **settings), bodies)
        runs.append(bodies)
    return runs[0], runs[1]


@dataclasses.dataclass(frozen=True)
class Given:
    """Steps that are already there, to be read as a file's are."""

    steps: tuple[Step, ...]

    def __call__(self) -> Iterator[Step]:
        return iter(self.steps)


def session_of(*steps: Step, name: str = "given", ttl_s: int | None = 300) -> Session:
    """A session of these steps."""
    return Session(name, Path(name), "made", ttl_s, True, len(steps), Given(steps))
