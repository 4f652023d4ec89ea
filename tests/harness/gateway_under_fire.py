"""Kill gateways at random moments of live sessions, and look at what reached the upstream and what they left tasks.

Run as a script it prints one JSON line: `python gateway_under_fire.py FOLDER KILLS SEED [URL]`, the state in
FOLDER or on the server at URL.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from event_recorder import EventRecorder
from markers import find_markers
from presets import paid
from wired import EXPAND_TOOL, SECRET, Talk, inbound, read_out

from cg.gateway.messages.handler import SweepHandler
from cg.gateway.settings import Settings
from cg.gateway.turns.thread_naming import ThreadNaming
from cg.gateway.upstream.pool import PooledUpstream
from cg.sweep.body.transcript import read
from cg.sweep.drivers import Sweep
from cg.sweep.open_store import open_store
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Payload

CONFIG = paid(judge="recency", ask="off", apply="free", min_tokens=100, payload_ttl_h=8760)
STEPS = 6  # requests of a session, each after a wait that ends cold, each with two outputs more than the one before
SIZE = 1500
COLD_AFTER_S = 361.0
MOST_WORDS = 8  # of the child, after which it may be killed
LONGEST_DELAY_S = 0.03
SESSIONS = 5  # whose turn comes round: most are met again after a kill
UPSTREAM = Path(__file__).parents[1] / "harness" / "fake_upstream.py"
REMOVED = {"$find": "<<cg:([0-9a-f]{16})>>", "in": "messages", "else": "0123456789abcdef"}
SCRIPT = [{"text": "Working on it."}, {"text": "Hm.", "tool": EXPAND_TOOL, "input": {"id": REMOVED}}]


class Stepped:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    async def sleep_until(self, moment: float) -> None:
        await asyncio.Event().wait()


def opened(folder: Path, url: str | None) -> Any:
    """The state that all processes share."""
    if url is not None:
        return open_store(url, CONFIG)
    return SqliteStore(folder / "state" / "sweep.db", CONFIG, bodies_in_memory=True)


def session_body(step: int) -> bytes:
    """The same client, the same history: only how far it has come differs."""
    talk = Talk(top={"stream": step % 2 == 0}).calls(2 * step, size=SIZE)
    return talk.say(f"Step {step}.").body()


async def serve_for_ever(
    folder: Path, state: str | None, url: str, first: int, start: float, acknowledged: int
) -> None:
    """Send the requests of session after session through a gateway, telling the parent of each answer."""
    clock = Stepped()
    with opened(folder, state) as store:
        settings = Settings(upstream=url, config=CONFIG, budget_ms=60_000)
        pool = PooledUpstream(url, environment={})
        gateway = SweepHandler(settings, pool, Sweep(CONFIG, store), EventRecorder(), secret=SECRET, clock=clock)
        os.write(acknowledged, b"ready\n")
        for n in range(first, first + 10**6):
            for step in range(STEPS):
                clock.at = start = start + COLD_AFTER_S
                name = f"s{n % SESSIONS}"
                answer = await read_out(
                    await gateway.handle(inbound(session_body(step), x_cg_session=name, x_session_for_tests=name))
                )
                os.write(acknowledged, b"%d\n" % answer.status)


def kill_once(
    folder: Path, state: str | None, url: str, first: int, start: float, words: int, delay_s: float
) -> list[str]:
    """What a child had said when it was killed, `delay_s` after so many words of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            asyncio.run(serve_for_ever(folder, state, url, first, start, writer))
        finally:
            os._exit(1)
    os.close(writer)
    said = b""
    while said.count(b"\n") < words:
        piece = os.read(reader, 65536)
        if not piece:
            raise SystemExit("the child ended by itself")
        said += piece
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while piece := os.read(reader, 65536):
        said += piece
    os.close(reader)
    return said[: said.rfind(b"\n") + 1].decode().split()[1:]


def wrong_in(folder: Path, state: str | None, url: str, log: Path) -> tuple[int, int, list[str]]:
    """(bodies, markers, what is wrong) in all that the upstream got."""
    naming, wrong, bodies, markers = ThreadNaming(SECRET, url), [], 0, 0
    written: dict[tuple[str, str, int], str] = {}
    with opened(folder, state) as store:
        for line in log.read_text("utf-8").splitlines():
            record = json.loads(line)
            body, headers = record["body"].encode(), {name.lower(): value for name, value in record["headers"]}
            if len(body) < int(headers["content-length"]):
                continue  # its sender was killed in the middle of it
            bodies += 1
            if record.get("status") not in (200, None):
                wrong.append(f"status {record['status']}: {record.get('error')}")
            session = headers["x-session-for-tests"]
            request = inbound(b"", x_cg_session=session)
            thread = naming.thread(request.headers, read(body))
            for text in read(body).tool_texts:
                for key in find_markers(text.text):
                    markers += 1
                    found = store.fetch(thread, key)
                    if not isinstance(found, Payload):
                        wrong.append(f"marker {key} of {session} has no original")
                    name = session, text.tool_use_id, text.block
                    if written.setdefault(name, text.text) != text.text:
                        wrong.append(f"{name} has other bytes")
    return bodies, markers, wrong


def main() -> None:
    folder, kills, draw = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    state = sys.argv[4] if len(sys.argv) > 4 else None
    folder.joinpath("state").mkdir(mode=0o700, exist_ok=True)
    script, log = folder / "script.json", folder / "log.jsonl"
    script.write_text(json.dumps({"routes": [{"name": "work", "turns": SCRIPT * (50 * kills)}]}))
    command = [sys.executable, str(UPSTREAM), "--port", "0", "--script", str(script), "--log", str(log)]
    upstream = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert upstream.stdout is not None
        url = upstream.stdout.readline().split()[-1]
        statuses: list[str] = []
        for n in range(kills):
            words, delay_s = draw.randint(1, MOST_WORDS), draw.uniform(0.0, LONGEST_DELAY_S)
            start = 1_800_000_000.0 + n * 1_000_000.0 / 500
            statuses += kill_once(folder, state, url, n * 3, start, words, delay_s)
        bodies, markers, wrong = wrong_in(folder, state, url, log)
    finally:
        upstream.kill()
        upstream.wait()
    seen = {"kills": kills, "answers": len(statuses), "bodies": bodies, "markers": markers}
    print(json.dumps({**seen, "others": sorted(set(statuses) - {"200"}), "wrong": wrong[:5]}))


if __name__ == "__main__":
    main()
