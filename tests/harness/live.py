"""A gateway on a real socket, an upstream that does exactly what a test says, and a client that sends bytes as given."""

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE_S = 10.0  # for anything that should happen at once; only a failing test waits as long


# -- upstream ----------------------------------------------------------------------------------------------------------


@dataclass
class Request:
    """One request as it came over the wire."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]

    def one(self, name: bytes) -> bytes | None:
        found = self.all(name)
        assert len(found) <= 1, found
        return found[0] if found else None


class Wire:
    """A connection, read and written byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(PATIENCE_S)
        self.buffer = b""

    def fill(self) -> bool:
        piece = self.socket.recv(262144)
        self.buffer += piece
        return bool(piece)

    def line_end(self, end: bytes) -> bytes | None:
        """All up to `end`, which is taken away; None if the peer closed before it."""
        while end not in self.buffer:
            if not self.fill():
                return None
        found, _, self.buffer = self.buffer.partition(end)
        return found

    def exactly(self, size: int) -> bytes:
        pieces, got = [self.buffer[:size]], min(size, len(self.buffer))
        self.buffer = self.buffer[size:]
        while got < size:
            piece = self.socket.recv(min(size - got, 262144))
            if not piece:
                raise ConnectionError("closed within a body")
            pieces.append(piece)
            got += len(piece)
        return b"".join(pieces)

    def head(self) -> Request | None:
        raw = self.line_end(b"\r\n\r\n")
        if raw is None:
            return None
        line, *rest = raw.split(b"\r\n")
        headers = [(name, value.strip()) for name, _, value in (one.partition(b":") for one in rest)]
        return Request(line, headers)

    def message(self, *, no_body: bool = False) -> Request | None:
        """One whole message, request or response; a response without a length is read to the end."""
        found = self.head()
        if found is None or no_body:
            return found
        if found.one(b"transfer-encoding"):
            found.body = self.chunks()
        elif (length := found.one(b"content-length")) is not None:
            found.body = self.exactly(int(length))
        elif found.line.startswith(b"HTTP/"):
            while self.fill():
                pass
            found.body, self.buffer = self.buffer, b""
        return found

    def chunks(self) -> bytes:
        pieces = []
        while True:
            size = self.line_end(b"\r\n")
            if size is None:
                raise ConnectionError("closed within chunks")
            count = int(size, 16)
            piece = self.exactly(count + 2)[:-2]
            if not count:
                return b"".join(pieces)
            pieces.append(piece)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reply(self, body: bytes = b"", status: str = "200 OK", *headers: bytes) -> None:
        head = [f"HTTP/1.1 {status}".encode(), *headers, b"content-length: %d" % len(body), b"", b""]
        self.send(b"\r\n".join(head) + body)

    def stream_head(self, *headers: bytes) -> None:
        self.send(b"\r\n".join([b"HTTP/1.1 200 OK", *headers, b"transfer-encoding: chunked", b"", b""]))

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def fin(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def rst(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def is_closed_by_peer(self, within_s: float = PATIENCE_S) -> bool:
        """Whether the peer ends the connection in time; what it sends before is thrown away."""
        self.socket.settimeout(within_s)
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


Script = Callable[[Wire, Request], None]


def plain(wire: Wire, request: Request) -> None:
    wire.reply(b"ok")


class RawUpstream:
    """Answers each request by a script; keeps the requests, and counts connections."""

    def __init__(
        self,
        script: Script = plain,
        *,
        reads_bodies: bool = True,
        wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection,
    ) -> None:
        self.script = script
        self.wrap = wrap
        self.reads_bodies = reads_bodies
        self.requests: list[Request] = []
        self.connections = 0
        self.faults: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()

    def __enter__(self) -> "RawUpstream":
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE_S)
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        assert not self.faults, self.faults

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._open.discard, connection)
            stack.enter_context(connection)
            try:
                connection = stack.enter_context(self.wrap(connection))
                self._open.add(connection)  # where TLS was put around it, the first one is a socket no more
                stack.callback(self._open.discard, connection)
                wire = Wire(connection)
                wire.socket.settimeout(60.0)
                while (request := wire.message() if self.reads_bodies else wire.head()) is not None:
                    self.requests.append(request)
                    self.script(wire, request)
                    if connection.fileno() == -1:
                        return
            except (OSError, TimeoutError):
                pass  # the gateway went away, which scripts that care look at themselves
            except BaseException as error:
                self.faults.append(error)


# -- client ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def dial(port: int) -> Iterator[Wire]:
    """A connection to the gateway."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        yield Wire(connection)


def ask(port: int, line: bytes, *headers: bytes, body: bytes = b"", host: bytes | None = b"localhost") -> Request:
    """One request on a connection of its own, and its whole answer."""
    lengths = [b"content-length: %d" % len(body)] if body else []
    hosts = [b"host: " + host] if host is not None else []
    raw = b"\r\n".join([line + b" HTTP/1.1", *hosts, *headers, *lengths, b"", b""]) + body
    with dial(port) as wire:
        wire.send(raw)
        answer = wire.message(no_body=line.startswith(b"HEAD"))
    assert answer is not None, "the gateway closed the connection without an answer"
    return answer


def status(answer: Request) -> int:
    return int(answer.line.split(b" ")[1])


# -- gateway -----------------------------------------------------------------------------------------------------------


def until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """Whether something comes to hold in time."""
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@dataclass
class Live:
    """A server in a thread of its own. `start` makes, on that thread's loop, what is served and how it is stopped."""

    start: Callable[[], "tuple[Callable[[], object], Callable[[], None]]"]
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    faults: list[BaseException] = field(default_factory=list)

    def __enter__(self) -> "Live":
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE_S), "the gateway did not start"
        if self.faults:
            raise self.faults[0]
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), "the gateway did not stop"
        assert not self.faults, self.faults

    def stop(self) -> None:
        """Ask the server to stop, and come back at once."""
        with contextlib.suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._stop)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self.loop_factory) as runner:
                self._loop = runner.get_loop()
                runner.run(self._main())
        except BaseException as error:
            self.faults.append(error)
        finally:
            self._started.set()

    async def _main(self) -> None:
        serve, self._stop = self.start()
        await serve(self._started.set)  # type: ignore[call-arg, misc]
