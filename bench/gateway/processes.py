"""Starts the programs of a measurement, each in a process of its own, and reads what the system says of them."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent


@contextlib.contextmanager
def upstream() -> Iterator[int]:
    """Port of a cheap upstream."""
    with _started([sys.executable, str(HERE / "upstream.py")]) as process:
        yield int(process.stdout.readline())


@contextlib.contextmanager
def bare(url: str) -> Iterator[tuple[int, int]]:
    """Port and process id of the pass-through proxy."""
    with _started([sys.executable, str(HERE / "bare.py"), url]) as process:
        yield int(process.stdout.readline()), process.pid


@contextlib.contextmanager
def gateway(url: str, state: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Port and process id of the gateway as installed."""
    command = [sys.executable, "-m", "cg.gateway.cli", "serve", "--listen", "127.0.0.1:0", "--upstream", url]
    with _started([*command, "--state", str(state), "--log", "error", *options]) as process:
        line = process.stdout.readline()
        if "listening on" not in line:
            raise SystemExit("the gateway did not start")
        yield int(line.partition("127.0.0.1:")[2].partition(",")[0]), process.pid


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def resident_kb(pid: int) -> int:
    """Resident memory, from the system's own count."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError(f"no VmRSS of {pid}")


def cpu_s(pid: int) -> float:
    """Processor time that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def body_kb(port: int) -> int:
    """Of the gateway's memory the part that holds last sent bodies, by its own account."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=60) as answer:
        return int(json.load(answer)["store"]["body_bytes"]) // 1024


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
