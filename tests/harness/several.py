"""Several gateways in processes of their own on one state, the clock that they share with the stand-in upstream, and a
forwarder that gives each request to the next of them."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fake_upstream import Clock, FakeUpstream

PATIENCE_S = 60.0
PROGRAM = Path(__file__).parents[1] / "harness" / "gateway_process.py"
START = 1_800_000_000.0


class ToldClock(Clock):  # type: ignore[misc]
    """A manual clock that processes read from a file."""

    def __init__(self, path: Path) -> None:
        super().__init__("manual", START)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._tell()

    def advance(self, seconds: float) -> float:
        super().advance(seconds)
        self._tell()
        return float(self.now())

    def _tell(self) -> None:
        os.pwrite(self._file, struct.pack("d", self.now()), 0)


def upstream(script: Any, folder: Path) -> FakeUpstream:
    """A stand-in upstream whose clock the gateways of this folder share."""
    up = FakeUpstream(script)
    up.clock = up.cache.clock = ToldClock(folder / "clock")
    return up


def until(holds: Callable[[], bool], what: str) -> None:
    """Waits for what must come true, however slow the machine."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@dataclass
class GatewayProcess:
    """One gateway; `url` is another after each start."""

    folder: Path
    state: str
    upstream: str
    url: str = ""
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> "GatewayProcess":
        command = [sys.executable, str(PROGRAM), str(self.folder), self.state, self.upstream]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the gateway did not start"
        return self

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def stats(self) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + "/stats", timeout=PATIENCE_S) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def timers(self) -> dict[str, int]:
        return dict(self.stats()["timers"])

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None


@contextlib.contextmanager
def gateways(n: int, folder: Path, state: str, up: FakeUpstream, **sweep: Any) -> Iterator[list[GatewayProcess]]:
    """So many gateways on one state, before one upstream."""
    (folder / "sweep.json").write_text(json.dumps(sweep), "utf-8")
    made = [GatewayProcess(folder, state, up.base_url) for _ in range(n)]
    try:
        yield [gateway.start() for gateway in made]
    finally:
        for gateway in made:
            gateway.stop()


@dataclass
class Forwarder:
    """One address before several gateways: each request goes to the next one that takes connections.

    A request is read whole, by its content-length, and sent on a connection of its own; the answer is passed on byte by
    byte until the gateway ends it, and the client's connection ends with it.
    """

    targets: list[GatewayProcess]
    served: list[int] = field(default_factory=list)  # which gateway each request went to
    answering: list[int] = field(default_factory=list)  # which are in the middle of an answer

    def __enter__(self) -> str:
        self._guard = threading.Lock()
        self._next = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            request = _request(client)
            if request is None:
                return
            which, server = self._dial()
            with server:
                server.sendall(request)
                self._pass_on(which, server, client)

    def _pass_on(self, which: int, server: socket.socket, client: socket.socket) -> None:
        has_begun = False
        try:
            while data := server.recv(65536):
                client.sendall(data)
                if not has_begun:
                    has_begun = True
                    self.answering.append(which)
        finally:
            if has_begun:
                self.answering.remove(which)

    def _dial(self) -> tuple[int, socket.socket]:
        for _ in range(len(self.targets)):
            with self._guard:
                which = self._next % len(self.targets)
                self._next += 1
            try:
                server = socket.create_connection(("127.0.0.1", self.targets[which].port), timeout=PATIENCE_S)
            except OSError:
                continue
            with self._guard:
                self.served.append(which)
            return which, server
        raise ConnectionRefusedError


def _request(client: socket.socket) -> bytes | None:
    """One whole request, which asks for its connection to be closed; None from a client that has gone."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = client.recv(65536)
        if not piece:
            return None
        raw += piece
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    length = next((int(h.split(b":")[1]) for h in headers if h.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        piece = client.recv(262144)
        if not piece:
            return None
        body += piece
    kept = [h for h in headers if not h.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([line, *kept, b"connection: close", b"", b""]) + body
