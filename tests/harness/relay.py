"""A bare relay: what a proxy that does nothing looks like to a client and to an upstream."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


@contextlib.contextmanager
def relay(upstream: str) -> Iterator[str]:
    """The URL of a relay to `upstream`: every connection is passed on, byte for byte, in both directions."""
    parts = urlsplit(upstream)
    target = (parts.hostname or "127.0.0.1", parts.port or 80)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_pass_on, args=(client, target), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def _pass_on(client: socket.socket, target: tuple[str, int]) -> None:
    """One connection, until both directions have ended."""
    with client, contextlib.suppress(OSError), socket.create_connection(target) as server:
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Everything from one side to the other until it ends; the end is passed on too."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
