"""One gateway in a process of its own, on a clock that a file tells: `python gateway_process.py FOLDER STATE UPSTREAM`.

FOLDER holds `clock` (eight bytes, a double) and `sweep.json` (settings of [sweep] over the preset `paid`). Prints the
URL once it serves; SIGTERM ends it.
"""

import asyncio
import json
import os
import struct
import sys
from dataclasses import replace
from pathlib import Path

from cg.gateway.build import build
from cg.gateway.serve.server import Server, listen, serve, url_of
from cg.gateway.settings import load
from cg.sweep import config as sweep_config

POLL_S = 0.01
BUDGET_MS = 60_000.0  # a loaded machine is no fault


class FileClock:
    """The moment that stands in a file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def now(self) -> float:
        (moment,) = struct.unpack("d", os.pread(self._file, 8, 0))
        return float(moment)

    async def sleep_until(self, moment: float) -> None:
        while self.now() < moment:
            await asyncio.sleep(POLL_S)


async def main() -> None:
    folder, state, upstream = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    flags = {"listen": "127.0.0.1:0", "upstream": upstream, "state": state, "budget_ms": BUDGET_MS}
    settings = load(None, {}, flags)
    config = sweep_config.load(None, {}, json.loads((folder / "sweep.json").read_text("utf-8")), "paid")
    gateway = build(replace(settings, config=config), clock=FileClock(folder / "clock"))
    listener = listen(settings.listen)
    server = Server(gateway.app, settings, gateway.events.tell)
    await serve(server, listener, lambda: print(url_of(listener), flush=True))


if __name__ == "__main__":
    asyncio.run(main())
