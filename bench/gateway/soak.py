"""Many streams for a long time: nothing dropped, memory flat.

    python bench/gateway/soak.py [--minutes 10] [--fill 400] [--streams 64] [--size 100000]

Each client has a conversation of its own and sends it again and again, as an agent does; every stream's events are
counted. A conversation's last body stays until its cache entry has ended, five minutes after the last request, so for
the first minutes bodies only come and none goes: `--fill` seconds are for that, and the minutes that are judged follow.
Resident memory and open files of the gateway are sampled, and the slope over the judged minutes is printed.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import processes
from latency import conversation

EVENTS, GAP_MS = 40, 25


class Sample(NamedTuple):
    at_s: float
    kb: int  # resident
    body_kb: int  # of it, last sent bodies: a conversation's stays until its cache entry has ended
    files: int


async def client(port: int, name: int, size: int, until: float, done: list[int], failed: list[str]) -> None:
    """One stream after another; each must bring every event and its end."""
    bodies = conversation(size, 30)
    turn = 0
    while time.monotonic() < until:
        body = json.loads(bodies[turn % len(bodies)])
        body["messages"][0]["content"] = f"Client {name}, conversation {turn // len(bodies)}."
        raw = json.dumps({**body, "stream": True}).encode()
        turn += 1
        try:
            got = await asyncio.wait_for(exchange(port, raw), 120)
        except Exception as error:
            failed.append(type(error).__name__)
            continue
        if got.count(b"content_block_delta\n") == EVENTS and got.endswith(b"0\r\n\r\n"):
            done.append(len(got))
        else:
            failed.append(got[:60].decode("latin-1"))


async def exchange(port: int, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        head = b"POST /v1/messages?events=%d&gap_ms=%d HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\n" % (
            EVENTS,
            GAP_MS,
        )
        writer.write(head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        writer.write(body)
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            piece = await reader.read(65536)
            if not piece:
                break
            got += piece
        return got
    finally:
        writer.close()


async def watch(port: int, pid: int, until: float, samples: list[Sample]) -> None:
    start = time.monotonic()
    while time.monotonic() < until:
        await asyncio.sleep(5)
        bodies = await asyncio.to_thread(processes.body_kb, port)
        samples.append(Sample(time.monotonic() - start, processes.resident_kb(pid), bodies, processes.open_files(pid)))
        if len(samples) % 12 == 0:
            last = samples[-1]
            print(f"  {last.at_s:5.0f} s: resident {last.kb} kB, of them last bodies {last.body_kb}", flush=True)


def slope_kb_per_minute(samples: list[Sample]) -> float:
    """Least squares."""
    mean_t = sum(sample.at_s for sample in samples) / len(samples)
    mean_m = sum(sample.kb for sample in samples) / len(samples)
    spread = sum((sample.at_s - mean_t) ** 2 for sample in samples)
    return 60 * sum((s.at_s - mean_t) * (s.kb - mean_m) for s in samples) / spread if spread else 0.0


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--fill", type=float, default=400, help="seconds before the judged minutes")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--size", type=int, default=100_000)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        processes.upstream() as up,
        processes.gateway(f"http://127.0.0.1:{up}", Path(folder) / "state.db") as (port, pid),
    ):
        await soak(arguments, port, pid)


async def soak(arguments: argparse.Namespace, port: int, pid: int) -> None:
    await asyncio.sleep(1)
    idle = processes.resident_kb(pid)
    until = time.monotonic() + arguments.fill + 60 * arguments.minutes
    done: list[int] = []
    failed: list[str] = []
    samples: list[Sample] = []
    clients = [client(port, name, arguments.size, until, done, failed) for name in range(arguments.streams)]
    await asyncio.gather(watch(port, pid, until, samples), *clients)
    await asyncio.sleep(2)
    judged = [sample for sample in samples if sample.at_s >= arguments.fill]
    memory = [sample.kb for sample in judged]
    print(f"{arguments.streams} streams at a time: {len(done)} whole, {len(failed)} not")
    print(f"resident: idle {idle} kB; judged minutes: first {memory[0]}, least {min(memory)}, most {max(memory)}")
    print(f"slope over the judged {arguments.minutes} minutes {slope_kb_per_minute(judged):+.0f} kB a minute")
    print(f"open files: most {max(sample.files for sample in samples)}, at the end {processes.open_files(pid)}")
    print(f"processor {processes.cpu_s(pid):.1f} s")
    if failed:
        print("not whole:", {why: failed.count(why) for why in set(failed)})


if __name__ == "__main__":
    asyncio.run(main())
