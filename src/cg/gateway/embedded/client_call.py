"""One request of a client in this process: what its handlers are given for it, and what they send on.

The call goes with a request as `Inbound.call`, so that whatever is sent for it, now or in the gap that follows, goes where
the client's own request went.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cg.gateway.embedded.client_library import library_of
from cg.gateway.events import Route
from cg.gateway.exchange import Headers, Inbound
from cg.gateway.http.content_encoding import Undecodable
from cg.gateway.http.routes import COUNT_TOKENS, MESSAGES, route_of
from cg.gateway.upstream.contract import Body, Cut, TimedOut, Unreachable, UpstreamError

# Seconds, of a request that no client waits for; the ask's own deadline ends it sooner or at the same time.
BACKGROUND_TIMEOUTS = {"connect": 15.0, "pool": 15.0, "read": 90.0, "write": 90.0}


class ClientCall:
    """One call. It holds no body: whoever waits in the gap holds it for minutes."""

    def __init__(self, request: Any, provider: str) -> None:
        self.library = library_of(request)
        self.url, self.provider = request.url, provider
        self.host: str = request.headers.get("host", "")
        self.extensions: dict[str, Any] = dict(request.extensions)
        self.is_sent = False
        self.reply_extensions: dict[str, Any] = {}

    def request(self, method: str, headers: Headers, body: Body, *, is_background: bool) -> Any:
        """A request of the client's library to the call's own URL, under its own deadlines unless it `is_background`."""
        named = [(b"host", self.host.encode("ascii")), *headers] if self.host else headers
        extensions = {"timeout": dict(BACKGROUND_TIMEOUTS)} if is_background else self.extensions
        return self.library.Request(method, self.url, headers=named, content=body, extensions=extensions)

    def keep_extensions(self, response: Any) -> None:
        """Keep what a reply's head says beside status and headers."""
        kept = ("http_version", "reason_phrase", "network_stream")
        self.reply_extensions = {name: response.extensions[name] for name in kept if name in response.extensions}

    def release(self) -> None:
        """Nobody waits any more: let go of what belongs to the client alone, such as its trace."""
        self.extensions, self.reply_extensions = {}, {}


def client_call(call: object) -> ClientCall:
    """A call that an upstream was given. Raises TypeError for what is none."""
    if not isinstance(call, ClientCall):
        raise TypeError("the request carries no call")
    return call


def route_and_provider(request: Any) -> tuple[Route, str]:
    """What a request is for, and the base URL of its provider: all before `/v1/messages`, wherever that is served."""
    path = bytes(request.url.raw_path).partition(b"?")[0]
    for known in (MESSAGES, COUNT_TOKENS):
        if path.endswith(known):
            base = path[: -len(known)].decode("ascii", "replace")
            provider = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}{base}"
            return route_of(request.method, known, ()), provider
    return route_of(request.method, path, ()), ""


def inbound_of(request: Any, call: ClientCall) -> Inbound:
    """A request, read whole, as the handlers take it."""
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    return Inbound(request.method, call.url.raw_path, headers, request.content, call)


def headers_of(response: Any) -> Headers:
    return [(name.lower(), value) for name, value in response.headers.raw]


@contextmanager
def as_upstream_errors(library: Any) -> Iterator[None]:
    """The library's errors, and those of whatever transport it was given, as the upstream's; the cause stays."""
    try:
        yield
    except (library.ConnectTimeout, library.PoolTimeout, library.ConnectError, library.ProxyError) as error:
        raise Unreachable(type(error).__name__) from error
    except library.TimeoutException as error:
        raise TimedOut(type(error).__name__) from error
    except (library.ReadError, library.WriteError) as error:
        raise Cut("reset", is_reset=True) from error
    except library.RemoteProtocolError as error:
        raise Cut("closed before its end", is_reset=False) from error
    except UpstreamError:
        raise
    except Exception as error:
        raise UpstreamError(type(error).__name__) from error


def client_error(error: UpstreamError, library: Any) -> Exception:
    """What a client without us would have seen in the place of an upstream's error."""
    cause = error.__cause__
    if isinstance(cause, Undecodable):
        error_of: Callable[..., Exception] = library.DecodingError
        return error_of(str(cause))
    protocol_error: Callable[..., Exception] = library.RemoteProtocolError
    return cause if isinstance(cause, Exception) else protocol_error(str(error))
