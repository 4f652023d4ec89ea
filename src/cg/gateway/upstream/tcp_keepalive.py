"""TCP keep-alive: the system asks a peer that is silent, and ends the connection if it does not answer."""

import socket


def keepalive_options(idle_s: int = 60, interval_s: int = 15, probes: int = 4) -> list[tuple[int, int, int]]:
    """Options for `setsockopt`, as far as this system has them; by default a dead peer is noticed after two minutes."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", idle_s), ("TCP_KEEPINTVL", interval_s), ("TCP_KEEPCNT", probes)):
        if (option := getattr(socket, name, None)) is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options


def keep_alive(connection: socket.socket) -> None:
    """Set them on a connection."""
    for level, name, value in keepalive_options():
        connection.setsockopt(level, name, value)
