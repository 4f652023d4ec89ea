"""The server: one socket, one event loop, and an end that lets open streams finish."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from cg.errors import CgError
from cg.gateway.events import Refusal
from cg.gateway.http.app import App
from cg.gateway.serve.protocol import ProtocolRules, StrictProtocol
from cg.gateway.settings import Settings

log = logging.getLogger("cg.gateway")
BACKLOG = 1024


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with the rules of our protocol."""

    def __init__(self, app: App, settings: Settings, refused: Callable[[Refusal], None]) -> None:
        super().__init__(
            app,
            http=StrictProtocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=int(settings.stop_timeout_s),
            backlog=BACKLOG,
        )
        self.rules = ProtocolRules(settings.head_timeout_s, settings.max_connections, refused)


class Server(uvicorn.Server):
    """One gateway's server. `takes_signals` False leaves SIGINT and SIGTERM to the caller, who calls `stop`."""

    def __init__(self, app: App, settings: Settings, refused: Callable[[Refusal], None], takes_signals: bool = True):
        super().__init__(ServerConfig(app, settings, refused))
        self._app = app
        self._takes_signals = takes_signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install the handlers for the time of serving, where that is wanted."""
        if not self._takes_signals:
            yield
            return
        with super().capture_signals():
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets open streams finish, the second does not."""
        self._app.is_stopping = True
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        with contextlib.suppress(ValueError):
            log.info("stopping on %s", signal.Signals(sig).name)

    def stop(self) -> None:
        """Stop taking connections; `serve` returns when open streams have finished or the time for them is over."""
        self._app.is_stopping = True
        self.should_exit = True


def listen(address: tuple[str, int]) -> socket.socket:
    """A bound socket; port 0 takes a free one. Raises CgError with the address if that is not possible."""
    host, port = address
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise CgError(f"cannot listen on {host}:{port}: {error}") from error


def url_of(listener: socket.socket) -> str:
    """The base URL for a client on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(server: Server, listener: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until stopped; `ready` is called once connections are taken. Raises CgError if the start fails."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    if server.started:
        ready()
    await serving
    if not server.started:
        raise CgError("the gateway could not start; the log says why")
