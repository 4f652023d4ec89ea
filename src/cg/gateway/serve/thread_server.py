"""A gateway that is served in a thread, for as long as something else runs in this process."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cg.errors import CgError
from cg.gateway.build import build
from cg.gateway.serve.server import Server, listen, serve, url_of
from cg.gateway.settings import Settings
from cg.gateway.state.clock import Clock

START_S = 30.0
STOP_S = 30.0  # for streams that are open at the end


@contextmanager
def serve_in_thread(settings: Settings, clock: Clock | None = None) -> Iterator[str]:
    """The URL of a gateway that is served until the block ends. Raises what its start raised."""
    listener = listen(settings.listen)
    ready = threading.Event()
    failed: list[BaseException] = []
    stops: list[Callable[[], object]] = []

    async def served() -> None:
        gateway = build(settings, clock=clock)
        server = Server(gateway.app, settings, gateway.events.refused, takes_signals=False)
        loop = asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(server.stop))
        await serve(server, listener, ready.set)

    def work() -> None:
        try:
            asyncio.run(served())
        except BaseException as error:
            failed.append(error)
        finally:
            listener.close()  # the server closes it too, if it came as far as having one
            ready.set()

    thread = threading.Thread(target=work, name="cg-gateway", daemon=True)
    thread.start()
    if not ready.wait(START_S):
        raise CgError(f"the gateway did not start within {START_S:g} s")
    if failed:
        raise failed[0]
    try:
        yield url_of(listener)
    finally:
        for stop in stops:
            stop()
        thread.join(STOP_S)
    if failed:
        raise failed[0]
