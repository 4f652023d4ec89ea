"""A server that says exactly the bytes it is told to, when it is told to; for clients that have to stand anything."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Script = Callable[[socket.socket], None]


@dataclass
class Upstream:
    """What was asked of the server: each request whole, as its bytes."""

    url: str
    requests: list[bytes] = field(default_factory=list)


def says(*pieces: bytes) -> Script:
    """Writes the pieces and hangs up."""

    def script(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return script


def reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP/1.1 response."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _request(connection: socket.socket) -> bytes:
    """One request with its body, by its content-length."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = connection.recv(65536)
        if not piece:
            return raw
        raw += piece
    head, body = raw.split(b"\r\n\r\n", 1)
    sizes = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    wanted = int(sizes[0]) if sizes else 0
    while len(body) < wanted:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(*scripts: Script) -> Iterator[Upstream]:
    """A server on the loopback that answers one connection with each script, then no more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)  # between two looks whether the test is over
        upstream = Upstream(f"http://127.0.0.1:{listener.getsockname()[1]}")
        is_over = threading.Event()

        def serve() -> None:
            waiting = list(scripts)
            while waiting and not is_over.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(10)
                        upstream.requests.append(_request(connection))
                        waiting.pop(0)(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield upstream
        finally:
            is_over.set()
            thread.join(60)
