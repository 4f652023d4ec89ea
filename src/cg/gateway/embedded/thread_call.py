"""A thread that waits for an answer, and meanwhile does the sending and reading that the answer needs.

The deciding runs on an event loop in another thread; a client's own request is sent and read in the client's own
thread, as it would be without us: under its deadlines, its interrupts and its context.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from cg.gateway.embedded.client_call import ClientCall, as_upstream_errors, client_call, headers_of
from cg.gateway.exchange import Headers
from cg.gateway.upstream.contract import Body, Reply, TooLong, UpstreamError, read_whole

T = TypeVar("T")
MAX_ASK_BYTES = 4 * 2**20  # of a reply that is read in the background


class Work:
    """A piece of blocking work whose outcome the loop waits for. `is_closing`: it lets go of what others wait for."""

    def __init__(self, do: Callable[[], Any], *, is_closing: bool = False) -> None:
        self._do, self.is_closing = do, is_closing
        self.outcome: Future[Any] = Future()

    def run(self) -> None:
        """Do it here and now, unless nobody wants it any more; only an interrupt of this thread is raised."""
        if not self.outcome.set_running_or_notify_cancel():
            return
        try:
            result = self._do()
        except Exception as error:
            self.outcome.set_exception(error)
        except BaseException:
            self.outcome.set_exception(UpstreamError("interrupted"))
            raise
        else:
            self.outcome.set_result(result)

    async def done(self, dispose: Callable[[Any], object] | None = None) -> Any:
        """The outcome, for the loop; one that comes after nobody waits is disposed of."""
        try:
            return await asyncio.wrap_future(self.outcome)
        except asyncio.CancelledError:
            if dispose is not None:
                self.outcome.add_done_callback(lambda outcome: _dispose(outcome, dispose))
            raise


def _dispose(outcome: "Future[Any]", dispose: Callable[[Any], object]) -> None:
    if not outcome.cancelled() and outcome.exception() is None:
        dispose(outcome.result())


def run_in_background(work: Work) -> None:
    """Do a piece of work in a thread that nothing waits for, not even the interpreter's end."""
    threading.Thread(target=work.run, name="cg-background", daemon=True).start()


class CallThreads:
    """The threads of one call: the one that waits for it, and whichever else closes what that one reads.

    Whoever waits does what there is to do. Each has a bell of its own, so that none takes what another is to hear.
    """

    def __init__(self) -> None:
        self._queue: deque[Work | bytes] = deque()
        self._bells: list[SimpleQueue[None]] = []
        self._guard = threading.Lock()
        self._is_waiting = True
        self.is_closed = False  # nothing is read or sent any more

    # -- on the loop -------------------------------------------------------------------------------------------------

    def give(self, do: Callable[[], Any], *, is_closing: bool = False) -> Work:
        """Have it done in the call's thread, or in one of its own if that has left."""
        work = Work(do, is_closing=is_closing)
        with self._guard:
            if self._is_waiting:
                self._put(work)
                return work
        run_in_background(work)
        return work

    def hand(self, piece: bytes) -> None:
        """Give the thread a piece of its answer."""
        self._put(piece)

    def _put(self, item: Work | bytes) -> None:
        self._queue.append(item)
        for bell in tuple(self._bells):
            bell.put(None)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def wait(self, answer: "Future[T]") -> T:
        """The answer, while doing whatever it needs. An interrupt cancels it."""
        for _ in self.pieces(answer):
            pass  # there are none before an answer's head, nor once it is being closed
        return answer.result()

    def pieces(self, answer: "Future[Any]") -> Iterator[bytes]:
        """What the thread is handed until the answer is there, while doing whatever it needs.

        Work and pieces come in one order, so the answer runs ahead of its reader only until it needs to be read on.
        Once `is_closed` no piece comes, so that what is read has no gap, and no work is begun that could take long.
        """
        bell: SimpleQueue[None] = SimpleQueue()
        self._bells.append(bell)
        answer.add_done_callback(lambda _: bell.put(None))
        try:
            while True:
                try:
                    is_last = answer.done()  # asked first: whatever belongs to it is there by then
                    item = self._next()
                    if isinstance(item, Work):
                        self._do(item)
                    elif item is None and not is_last:
                        bell.get()
                except BaseException:  # an interrupt of this thread
                    answer.cancel()
                    self.leave()
                    raise
                if isinstance(item, bytes):
                    if not self.is_closed:
                        yield item
                elif item is None and is_last:
                    return
        finally:
            self._bells.remove(bell)

    def _do(self, work: Work) -> None:
        if self.is_closed and not work.is_closing:
            work.outcome.cancel()  # it would read on, and whoever closes would wait for the next piece
        else:
            work.run()

    def _next(self) -> Work | bytes | None:
        """The next thing; None if there is none now."""
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def leave(self) -> None:
        """The threads wait no more; what is still to be done is done elsewhere."""
        with self._guard:
            self._is_waiting = False
        while (item := self._next()) is not None:
            if isinstance(item, Work):
                run_in_background(item)


class ThreadReply:
    """A reply that its call's thread reads."""

    def __init__(self, response: Any, threads: CallThreads, library: Any) -> None:
        self.status: int = response.status_code
        self.headers: Headers = headers_of(response)
        self._stream, self._threads, self._library = response.stream, threads, library

    async def stream(self) -> AsyncIterator[bytes]:
        pieces = iter(self._stream)
        with as_upstream_errors(self._library):
            while (piece := await self._threads.give(lambda: next(pieces, None)).done()) is not None:
                yield piece

    async def read(self, limit: int) -> bytes:
        return await read_whole(self.stream(), limit)

    async def close(self) -> None:
        await self._threads.give(self._stream.close, is_closing=True).done()


class ThreadUpstream:
    """Sends through `inner` in the thread of the call that a request is of."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"", call: object = None) -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = client_call(call)
        threads = threads_of(calling)
        request = calling.request(method, headers, body, is_background=False)
        calling.is_sent = True
        with as_upstream_errors(calling.library):
            work = threads.give(lambda: self._inner.handle_request(request))
            response = await work.done(lambda response: response.stream.close())
        calling.keep_extensions(response)
        return ThreadReply(response, threads, calling.library)

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""


class ThreadCall(ClientCall):
    """A call with the thread that waits for it."""

    def __init__(self, request: Any, provider: str) -> None:
        super().__init__(request, provider)
        self.threads = CallThreads()


def threads_of(call: ClientCall) -> CallThreads:
    """The thread of a call. Raises TypeError for one that no thread waits for."""
    if not isinstance(call, ThreadCall):
        raise TypeError("the call has no thread")
    return call.threads


class BufferedReply:
    """A reply that has been read."""

    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status, self.headers, self._body = status, headers, body

    async def stream(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body

    async def read(self, limit: int) -> bytes:
        if len(self._body) > limit:
            raise TooLong(f"the reply has more than {limit} bytes")
        return self._body

    async def close(self) -> None:
        """Nothing is held open: the connection was released when the body had been read."""


class BackgroundUpstream:
    """Sends what no client waits for: through `inner`, in a thread of its own, the reply read there to its end."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"", call: object = None) -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = client_call(call)
        request = calling.request(method, headers, body, is_background=True)
        with as_upstream_errors(calling.library):
            work = Work(lambda: self._read(request))
            run_in_background(work)
            reply: BufferedReply = await work.done()
        return reply

    def _read(self, request: Any) -> BufferedReply:
        response = self._inner.handle_request(request)
        body = bytearray()
        try:
            for piece in response.stream:
                body += piece
                if len(body) > MAX_ASK_BYTES:
                    raise TooLong(f"the reply has more than {MAX_ASK_BYTES} bytes")
        finally:
            response.stream.close()
        return BufferedReply(response.status_code, headers_of(response), bytes(body))

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""
