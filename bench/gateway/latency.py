"""Latency added by the gateway, beside a bare pass-through proxy on the same server and HTTP client, in one run.

    python bench/gateway/latency.py [--rounds 300] [--size 1000000]

Each round sends the same request to the upstream itself, through the bare proxy, and through the gateway, in an order that
turns, on connections that are kept; what is compared are the times above the upstream's own. `messages` are bodies of
a growing conversation (each round one turn more), so the gateway sweeps, stores and replays as it would.
"""

import argparse
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import processes

PATH = b"/v1/messages"


def conversation(size: int, turns: int) -> list[bytes]:
    """Bodies of one conversation that has `size` bytes at first and grows by a call and its result a turn."""
    line = "def f(payload, cache): return payload[cache.key]  # path/to/file.py:12 \\n\n"
    result = line * (size // 100 // len(line) + 1)
    messages: list[dict] = [{"role": "user", "content": "Read every module."}]

    def turn(n: int) -> None:
        call = {"type": "tool_use", "id": f"toolu_{n:05}", "name": "Read", "input": {"file_path": f"/repo/{n}.py"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Reading."}, call]})
        told = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{n} {result}"}
        messages.append({"role": "user", "content": [told]})

    for n in range(100):
        turn(n)
    bodies = []
    for n in range(turns):
        last = messages[-1]["content"][0]
        last["cache_control"] = {"type": "ephemeral"}
        tools = [{"name": "Read", "description": "read", "input_schema": {"type": "object"}}]
        body = {"model": "claude-sonnet-5", "messages": messages, "system": "s", "tools": tools, "max_tokens": 32_000}
        bodies.append(json.dumps(body, separators=(",", ":")).encode())
        del last["cache_control"]
        if n % 10 == 9:  # a short turn: the size must not run away over the rounds
            messages.append({"role": "assistant", "content": "Done."})
            messages.append({"role": "user", "content": f"Go on, {n}."})
            messages[-1] = {"role": "user", "content": [{"type": "text", "text": f"Go on, {n}."}]}
    return bodies


class Client:
    """One kept connection; says when the answer's first byte of body came and when it was whole."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, target: bytes, body: bytes) -> tuple[float, float]:
        """Seconds to the first byte of the body, and to its end."""
        head = b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\n" % target
        head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        start = time.perf_counter()
        self.socket.sendall(head + body)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0 or len(got) == end + 4:
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise ConnectionError("closed without an answer")
            got += piece
        first = time.perf_counter() - start
        if not got.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(got[:300])
        length = got[:end].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        while len(got) < end + 4 + int(length) if length else not got.endswith(b"0\r\n\r\n"):
            got += self.socket.recv(1 << 18)
        return first, time.perf_counter() - start


def measure(clients: dict[str, Client], rounds: int, request: Callable[[int], tuple[bytes, bytes]], which: int) -> dict:
    """Times by client, in milliseconds, in rounds whose order turns."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    names = list(clients)
    for n in range(rounds):
        target, body = request(n)
        for name in names[n % len(names) :] + names[: n % len(names)]:
            times[name].append(clients[name].post(target, body)[which] * 1000)
    return {name: values[rounds // 10 :] for name, values in times.items()}  # the first tenth warms up


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def report(title: str, times: dict[str, list[float]]) -> None:
    print(f"\n{title}, {len(times['direct'])} rounds, milliseconds")
    direct = {q: quantile(times["direct"], q) for q in (0.5, 0.99)}
    for name, values in times.items():
        p50, p99 = quantile(values, 0.5), quantile(values, 0.99)
        print(f"  {name:8} p50 {p50:7.3f}  p99 {p99:7.3f}  mean {statistics.fmean(values):7.3f}")
    bare, own = times["bare"], times["gateway"]
    for q in (0.5, 0.99):
        a, b = quantile(bare, q), quantile(own, q)
        above = (b - direct[q]) / (a - direct[q]) if a > direct[q] else float("nan")
        print(
            f"  p{q * 100:.0f}: gateway / bare {b / a:.3f}; added over direct {above:.3f}; difference {b - a:+.3f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--preset", default="paid")
    arguments = parser.parse_args()
    bodies = conversation(arguments.size, arguments.rounds)
    small = conversation(2000, 1)[0]
    with tempfile.TemporaryDirectory() as folder, processes.upstream() as up:
        url = f"http://127.0.0.1:{up}"
        options = ("--preset", arguments.preset)
        with (
            processes.bare(url) as (bare, bare_pid),
            processes.gateway(url, Path(folder) / "state.db", *options) as (own, own_pid),
        ):
            ports = {"direct": up, "bare": bare, "gateway": own}
            clients = {name: Client(number) for name, number in ports.items()}
            for title, which, request in (
                ("bodies of 1 MB passed through", 1, lambda n: (b"/v1/files", bodies[n])),
                ("messages of 1 MB, a growing conversation", 1, lambda n: (PATH, bodies[n])),
                ("first byte of a stream, the same bodies", 0, lambda n: (PATH + b"?events=20", bodies[n])),
                ("first byte of a stream, small bodies", 0, lambda n: (PATH + b"?events=20", small)),
            ):
                used = {pid: processes.cpu_s(pid) for pid in (bare_pid, own_pid)}
                report(title, measure(clients, arguments.rounds, request, which))
                cost = [(processes.cpu_s(pid) - used[pid]) / arguments.rounds * 1000 for pid in (bare_pid, own_pid)]
                print(
                    f"  processor: bare {cost[0]:.2f} ms a request, gateway {cost[1]:.2f}, ratio {cost[1] / cost[0]:.3f}"
                )


if __name__ == "__main__":
    main()
