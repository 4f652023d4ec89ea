"""The gateway as installed, beside a bare proxy on the same server and HTTP client: latency in turns, memory, start."""

import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "gateway"))  # the programs that a measurement starts

import latency
import processes

ROUNDS = 60
SIZE = 1_000_000
REQUESTS = {  # by what is asked for: which time counts (0 first byte, 1 whole), path
    "passed": (1, b"/v1/files"),
    "messages": (1, latency.PATH),
    "first_byte": (0, latency.PATH + b"?events=20"),
}


class Latency:
    """Bodies of 1 MB of a growing conversation, sent in turns to the upstream, the bare proxy and the gateway."""

    params, param_names = [list(REQUESTS)], ["request"]
    timeout = 300

    def setup_cache(self):
        """Milliseconds by request and way, all measured in one run."""
        bodies = latency.conversation(SIZE, ROUNDS)
        with tempfile.TemporaryDirectory() as folder, processes.upstream() as up:
            url = f"http://127.0.0.1:{up}"
            state = Path(folder) / "state.db"
            with processes.bare(url) as (bare, _), processes.gateway(url, state) as (own, _):
                ports = {"direct": up, "bare": bare, "gateway": own}
                clients = {name: latency.Client(port) for name, port in ports.items()}
                return {
                    name: latency.measure(clients, ROUNDS, lambda n, path=path: (path, bodies[n]), which)
                    for name, (which, path) in REQUESTS.items()
                }

    def track_p50(self, times, request):
        return latency.quantile(times[request]["gateway"], 0.5)

    def track_p50_over_direct(self, times, request):
        """What the gateway adds, at the median."""
        return self.track_p50(times, request) - latency.quantile(times[request]["direct"], 0.5)

    def track_p50_over_bare(self, times, request):
        """1: as fast as a proxy that decides nothing."""
        return self.track_p50(times, request) / latency.quantile(times[request]["bare"], 0.5)

    track_p50.unit = track_p50_over_direct.unit = "ms"
    track_p50_over_bare.unit = "ratio"


class Process:
    """The gateway's own process."""

    params, param_names = [[0, 100]], ["requests"]
    timeout = 300

    def setup(self, requests):
        bodies = latency.conversation(SIZE, requests)
        with tempfile.TemporaryDirectory() as folder, processes.upstream() as up:
            state = Path(folder) / "state.db"
            with processes.gateway(f"http://127.0.0.1:{up}", state) as (port, pid):
                client = latency.Client(port)
                for body in bodies:
                    client.post(latency.PATH, body)
                self.resident_bytes = processes.resident_kb(pid) * 1024

    def track_resident(self, requests):
        """Resident memory after so many messages of 1 MB in one thread."""
        return self.resident_bytes

    track_resident.unit = "bytes"


class Start:
    """From the command to the line that says where it listens, the best of five."""

    def track_start(self):
        best = float("inf")
        with tempfile.TemporaryDirectory() as folder, processes.upstream() as up:
            for n in range(5):
                start = time.perf_counter()
                with processes.gateway(f"http://127.0.0.1:{up}", Path(folder) / f"{n}.db"):
                    best = min(best, time.perf_counter() - start)
        return best

    track_start.unit = "seconds"
