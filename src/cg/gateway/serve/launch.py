"""Serving until a signal, and serving for as long as another program runs."""

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from cg.gateway.build import build
from cg.gateway.serve import garbage_collection
from cg.gateway.serve.server import Server, listen, serve, url_of
from cg.gateway.settings import Settings
from cg.gateway.upstream.base_url import BASE_URL

NOT_FOUND, NOT_EXECUTABLE, KILLED = 127, 126, 128  # a shell's exit codes; KILLED plus the signal's number
CHILD_GRACE_S = 5.0


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (half of the time per request), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def serve_until_stopped(settings: Settings, say: Callable[[str], None] = print) -> int:
    """Serve until SIGINT or SIGTERM, then let open streams finish; returns the exit code."""

    async def served() -> int:
        gateway = build(settings)
        listener = listen(settings.listen)
        server = Server(gateway.app, settings, gateway.events.refused)
        with garbage_collection.relaxed():
            await serve(server, listener, lambda: say(f"listening on {url_of(listener)}, upstream {settings.upstream}"))
        return 0

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        return runner.run(served())


def serve_command(settings: Settings, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Serve while a command runs that is told of the gateway by its environment; returns the command's exit code."""

    # When the command has ended nobody reads what is still streaming.
    settings = replace(settings, stop_timeout_s=min(settings.stop_timeout_s, CHILD_GRACE_S))

    async def ran() -> int:
        gateway = build(settings)
        listener = listen(settings.listen)
        server = Server(gateway.app, settings, gateway.events.refused, takes_signals=False)
        ready = asyncio.Event()
        serving = asyncio.create_task(serve(server, listener, ready.set))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            with garbage_collection.relaxed():
                return await _run_child(command, child_environment(environment, url_of(listener)), serving)
        finally:
            server.stop()
            await serving

    with asyncio.Runner(loop_factory=event_loop()) as runner:
        return runner.run(ran())


def child_environment(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """The command's environment: where to send requests, and that no proxy stands between it and the gateway."""
    host = url.partition("://")[2].rpartition(":")[0].strip("[]")
    child = {**environment, BASE_URL: url}
    for name in ("NO_PROXY", "no_proxy"):
        listed = environment.get(name) or environment.get(name.swapcase(), "")
        child[name] = ",".join(part for part in (listed, host) if part)
    return child


async def _run_child(command: Sequence[str], environment: Mapping[str, str], serving: "asyncio.Task[None]") -> int:
    """Run the command to its end; returns its exit code as a shell would."""
    if serving.done():
        serving.result()
        return 1
    try:
        child = await asyncio.create_subprocess_exec(*command, env=environment)
    except FileNotFoundError:
        print(f"cg-proxy: {command[0]}: command not found", file=sys.stderr)
        return NOT_FOUND
    except (PermissionError, OSError, ValueError) as error:
        print(f"cg-proxy: {command[0]}: cannot be run: {type(error).__name__}", file=sys.stderr)
        return NOT_EXECUTABLE
    _forward_signals(child)
    code = await child.wait()
    return KILLED - code if code < 0 else code


def _forward_signals(child: Process) -> None:
    """SIGINT reaches the command from the terminal itself, and what it means there is the command's to say; what only
    this process was sent is handed on."""
    loop = asyncio.get_running_loop()

    def forward(number: int) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            with suppress(NotImplementedError, RuntimeError):  # an event loop of Windows, or not the main thread
                loop.add_signal_handler(getattr(signal, name), forward, getattr(signal, name))
    with suppress(ValueError):
        signal.signal(signal.SIGINT, lambda number, frame: None)
