"""The gateway on a real socket inside a test, before a stand-in upstream and on that upstream's clock."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_upstream import FakeUpstream

from cg.gateway.serve.thread_server import serve_in_thread
from cg.gateway.settings import Settings
from cg.sweep.config import Config

POLL_S = 0.01  # of wall clock, between two looks at a clock that only a script moves
LIMIT_S = 30.0


class UpstreamClock:
    """The stand-in upstream's clock: five minutes pass when its script says so."""

    def __init__(self, up: FakeUpstream) -> None:
        self._clock = up.clock

    def now(self) -> float:
        return float(self._clock.now())

    async def sleep_until(self, moment: float) -> None:
        while self.now() < moment:
            await asyncio.sleep(POLL_S)


@dataclass(frozen=True)
class Gateway:
    """A gateway that is being served."""

    url: str

    def get(self, path: str) -> bytes:
        """One of its own routes."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=LIMIT_S) as answer:
            return bytes(answer.read())

    def stats(self) -> dict[str, Any]:
        """Its figures."""
        found: dict[str, Any] = json.loads(self.get("/stats"))
        return found


@contextlib.contextmanager
def gateway(up: FakeUpstream, config: Config, *, state: Path | None = None, **settings: Any) -> Iterator[Gateway]:
    """A gateway before `up`, stopped with its streams finished at the end."""
    chosen = Settings(listen=("127.0.0.1", 0), upstream=up.base_url, state=state, config=config, **settings)
    with serve_in_thread(chosen, UpstreamClock(up)) as url:
        yield Gateway(url)


@contextlib.contextmanager
def address(up: FakeUpstream, config: Config, state: Path) -> Iterator[str]:
    """As `gateway`, where only the address is of interest."""
    with gateway(up, config, state=state) as live:
        yield live.url
