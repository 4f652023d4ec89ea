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

from cg.gateway.embedded.client_call import Calling, as_ours, calling_of, headers_of
from cg.gateway.exchange import Headers
from cg.gateway.upstream.contract import Body, Reply, TooLong, UpstreamError, read_whole

T = TypeVar("T")
MAX_ASK_BYTES = 4 * 2**20  # of a reply that is read whole on an errand


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
            found = self._do()
        except Exception as error:
            self.outcome.set_exception(error)
        except BaseException:
            self.outcome.set_exception(UpstreamError("interrupted"))
            raise
        else:
            self.outcome.set_result(found)

    async def done(self, dispose: Callable[[Any], object] | None = None) -> Any:
        """The outcome, for the loop; one that comes after nobody waits is disposed of."""
        try:
            return await asyncio.wrap_future(self.outcome)
        except asyncio.CancelledError:
            if dispose is not None:
                self.outcome.add_done_callback(lambda outcome: _let_go(outcome, dispose))
            raise


def _let_go(outcome: "Future[Any]", dispose: Callable[[Any], object]) -> None:
    if not outcome.cancelled() and outcome.exception() is None:
        dispose(outcome.result())


def on_errand(work: Work) -> None:
    """Do a piece of work in a thread that nothing waits for, not even the interpreter's end."""
    threading.Thread(target=work.run, name="cg-errand", daemon=True).start()


class Caller:
    """The threads of one call: the one that waits for it, and whichever else closes what that one reads.

    Whoever waits does what there is to do. Each has a bell of its own, so that none takes what another is to hear.
    """

    def __init__(self) -> None:
        self._found: deque[Work | bytes] = deque()
        self._bells: list[SimpleQueue[None]] = []
        self._guard = threading.Lock()
        self._is_there = True
        self.is_closed = False  # nothing is read or sent any more

    # -- on the loop -------------------------------------------------------------------------------------------------

    def give(self, do: Callable[[], Any], *, is_closing: bool = False) -> Work:
        """Have it done in the call's thread, or in one of its own if that has left."""
        work = Work(do, is_closing=is_closing)
        with self._guard:
            if self._is_there:
                self._put(work)
                return work
        on_errand(work)
        return work

    def hand(self, piece: bytes) -> None:
        """Give the thread a piece of its answer."""
        self._put(piece)

    def _put(self, found: Work | bytes) -> None:
        self._found.append(found)
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
                    found = self._taken()
                    if isinstance(found, Work):
                        self._do(found)
                    elif found is None and not is_last:
                        bell.get()
                except BaseException:  # an interrupt of this thread
                    answer.cancel()
                    self.leave()
                    raise
                if isinstance(found, bytes):
                    if not self.is_closed:
                        yield found
                elif found is None and is_last:
                    return
        finally:
            self._bells.remove(bell)

    def _do(self, work: Work) -> None:
        if self.is_closed and not work.is_closing:
            work.outcome.cancel()  # it would read on, and whoever closes would wait for the next piece
        else:
            work.run()

    def _taken(self) -> Work | bytes | None:
        """The next thing; None if there is none now."""
        try:
            return self._found.popleft()
        except IndexError:
            return None

    def leave(self) -> None:
        """The threads wait no more; what is still to be done is done elsewhere."""
        with self._guard:
            self._is_there = False
        while (found := self._taken()) is not None:
            if isinstance(found, Work):
                on_errand(found)


class CallerReply:
    """A reply that its call's thread reads."""

    def __init__(self, response: Any, caller: Caller, library: Any) -> None:
        self.status: int = response.status_code
        self.headers: Headers = headers_of(response)
        self._stream, self._caller, self._library = response.stream, caller, library

    async def stream(self) -> AsyncIterator[bytes]:
        pieces = iter(self._stream)
        with as_ours(self._library):
            while (piece := await self._caller.give(lambda: next(pieces, None)).done()) is not None:
                yield piece

    async def read(self, limit: int) -> bytes:
        return await read_whole(self.stream(), limit)

    async def close(self) -> None:
        await self._caller.give(self._stream.close, is_closing=True).done()


class CallerUpstream:
    """Sends through `inner` in the thread of the call that a request is of."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"") -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = calling_of(target)
        caller = caller_of(calling)
        request = calling.request(method, headers, body, is_ours=False)
        calling.is_sent = True
        with as_ours(calling.library):
            work = caller.give(lambda: self._inner.handle_request(request))
            response = await work.done(lambda response: response.stream.close())
        calling.came(response)
        return CallerReply(response, caller, calling.library)

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""


class ThreadCalling(Calling):
    """A call with the thread that waits for it."""

    def __init__(self, request: Any, provider: str) -> None:
        super().__init__(request, provider)
        self.caller = Caller()


def caller_of(calling: Calling) -> Caller:
    """The thread of a call. Raises TypeError for one that no thread waits for."""
    if not isinstance(calling, ThreadCalling):
        raise TypeError("the call has no thread")
    return calling.caller


class WholeReply:
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
        """It is closed."""


class ErrandUpstream:
    """Sends what no client waits for: through `inner`, in a thread of its own, the reply read there to its end."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"") -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        calling = calling_of(target)
        request = calling.request(method, headers, body, is_ours=True)
        with as_ours(calling.library):
            work = Work(lambda: self._read(request))
            on_errand(work)
            found: WholeReply = await work.done()
        return found

    def _read(self, request: Any) -> WholeReply:
        response = self._inner.handle_request(request)
        whole = bytearray()
        try:
            for piece in response.stream:
                whole += piece
                if len(whole) > MAX_ASK_BYTES:
                    raise TooLong(f"the reply has more than {MAX_ASK_BYTES} bytes")
        finally:
            response.stream.close()
        return WholeReply(response.status_code, headers_of(response), bytes(whole))

    async def aclose(self) -> None:
        """Nothing: the connections are the transport's."""
