"""What the transport adds to a request, beside the same client alone and the same client before `cg-proxy`, in one run.

    python bench/gateway/in_process.py [--rounds 120] [--size 1000000]

Each round sends one body with three `httpx2` clients, in an order that turns: straight to the upstream, through the
gateway in a process of its own, and with the transport inside. Bodies are those of a growing conversation.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx2
import processes
from latency import conversation

from cg.gateway.transport import Transport

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}


def post(client: httpx2.Client, url: str, body: bytes) -> float:
    """Seconds until the answer was read."""
    start = time.perf_counter()
    with client.stream("POST", url, content=body, headers=HEADERS) as reply:
        reply.read()
    if reply.status_code != 200:
        raise RuntimeError(reply.text[:300])
    return time.perf_counter() - start


def report(title: str, times: dict[str, list[float]]) -> None:
    print(f"\n{title}, milliseconds")
    alone = statistics.median(times["alone"])
    for name, values in times.items():
        median = statistics.median(values)
        print(
            f"  {name:10} median {median * 1000:7.2f}  least {min(values) * 1000:7.2f}"
            f"  added {(median - alone) * 1000:+6.2f}  ratio {median / alone:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--preset", default="cold")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, processes.upstream() as up:
        url = f"http://127.0.0.1:{up}"
        with processes.gateway(url, Path(folder) / "state.db", "--preset", arguments.preset) as (port, _):
            state = Path(folder) / "own.db"
            clients = {
                "alone": (httpx2.Client(trust_env=False), url),
                "cg-proxy": (httpx2.Client(trust_env=False), f"http://127.0.0.1:{port}"),
                "transport": (httpx2.Client(transport=Transport(preset=arguments.preset, state=state)), url),
            }
            for title, size, query in (
                (f"bodies of {arguments.size:,} bytes", arguments.size, ""),
                ("bodies of 20,000 bytes", 20_000, ""),
                ("bodies of 20,000 bytes, a stream of 200 events", 20_000, "?events=200"),
            ):
                times: dict[str, list[float]] = {name: [] for name in clients}
                names = list(clients)
                for n, body in enumerate(conversation(size, arguments.rounds)):
                    for name in names[n % 3 :] + names[: n % 3]:
                        client, base = clients[name]
                        times[name].append(post(client, base + "/v1/messages" + query, body))
                report(title, {name: values[arguments.rounds // 10 :] for name, values in times.items()})
            for client, _ in clients.values():
                client.close()


if __name__ == "__main__":
    main()
