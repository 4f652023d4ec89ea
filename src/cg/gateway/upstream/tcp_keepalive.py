"""Finding peers that have gone without a word: the system asks, and ends a connection that answers no more."""

import socket

# First question after a minute of silence, four in all, fifteen seconds apart: about two minutes.
_TIMES = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))

OPTIONS: list[tuple[int, int, int]] = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _TIMES if hasattr(socket, name)),
]


def watch(connection: socket.socket) -> None:
    """Have the system watch a connection."""
    for level, name, value in OPTIONS:
        connection.setsockopt(level, name, value)
