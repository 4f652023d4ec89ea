"""A real Valkey or Redis server for a test: on a socket file in a folder of its own, ended with the test."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PATIENCE_S = 60.0
BINARY = shutil.which("valkey-server") or shutil.which("redis-server")
WHY_NOT = "no valkey-server or redis-server is installed (Debian: apt-get install redis-server)"
needs_server = pytest.mark.skipif(BINARY is None, reason=WHY_NOT)


@dataclass
class StateServer:
    """One server and its folder. `settings` are lines of its configuration, over those that a state needs."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    def url(self, **options: str) -> str:
        """Its URL; a machine under load may take long, unless a test says otherwise."""
        options = {"timeout_ms": "30000", **options}
        query = "".join(f"&{name}={value}" for name, value in options.items())
        return f"unix://{self.socket}?db=0{query}"

    def start(self) -> "StateServer":
        """Start it, or start it again over what it has left; returns when it answers."""
        assert BINARY is not None
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "appendonly": "yes",
            "appendfsync": "no",  # a kill takes nothing that the kernel has
            "save": '""',
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "logfile": str(self.folder / "log"),
            **self.settings,
        }
        lines = "\n".join(f"{name} {value}" for name, value in settings.items())
        (self.folder / "conf").write_text(lines + "\n", "utf-8")
        self.process = subprocess.Popen([BINARY, str(self.folder / "conf")], stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while not self.is_answering():
            assert self.process.poll() is None, (self.folder / "log").read_text("utf-8")
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.01)
        return self

    def is_answering(self) -> bool:
        import redis

        client = redis.Redis(unix_socket_path=str(self.socket))
        try:
            return bool(client.ping())
        except redis.ResponseError:
            return True  # it wants to know who asks
        except redis.ConnectionError:
            return False
        finally:
            client.close()

    def kill(self) -> None:
        """As a power cut would."""
        self._end(signal.SIGKILL)

    def hang(self) -> None:
        """It is there, and answers nothing."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        for one in (number, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, one)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


@contextlib.contextmanager
def state_server(**settings: str) -> Iterator[StateServer]:
    """A server that runs until the block ends; '_' in a name stands for '-'."""
    if BINARY is None:
        pytest.skip(WHY_NOT)
    pytest.importorskip("redis", reason="redis is not installed: the store on a server is an extra")
    # A socket's path may have some 100 bytes; the folders that pytest makes are longer.
    folder = Path(tempfile.mkdtemp(prefix="cg-state-"))
    server = StateServer(folder, {name.replace("_", "-"): value for name, value in settings.items()})
    try:
        yield server.start()
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
