"""The upstream over a pool of kept-alive connections, through the user's proxy where one is set."""

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import httpcore2 as http

from cg.errors import CgError
from cg.gateway.exchange import Headers, first
from cg.gateway.loop_turns import LoopTurns
from cg.gateway.upstream.base_url import checked
from cg.gateway.upstream.contract import Body, Cut, NotHttp, Reply, TimedOut, Unreachable, UpstreamError, read_whole
from cg.gateway.upstream.network import LoopBackend
from cg.gateway.upstream.proxy_environment import proxy_for
from cg.gateway.upstream.tcp_keepalive import keepalive_options

KEPT_CONNECTIONS = 64
KEPT_S = 50.0  # idle; servers close at 60 s and later, and a request that meets a closing connection is lost
BODY_METHODS = frozenset(["POST", "PUT", "PATCH"])  # always say their length, 0 included
REPEATABLE = frozenset(["GET", "HEAD", "OPTIONS"])
BODILESS = frozenset([204, 304])
CONNECT_RETRIES = 1  # nothing has been sent before a connection stands


class PooledReply:
    """A reply of the pool."""

    def __init__(self, response: Any, method: str) -> None:
        self.status: int = response.status
        self.headers: Headers = [(name.lower(), value) for name, value in response.headers]
        if first(self.headers, b"transfer-encoding") is not None:  # RFC 9112, 6.3: then a length says nothing
            self.headers = [pair for pair in self.headers if pair[0] != b"content-length"]
        self._response = response
        self._has_no_body = method == "HEAD" or self.status in BODILESS

    async def stream(self) -> AsyncIterator[bytes]:
        turns = LoopTurns()
        try:
            async for piece in self._response.stream:
                yield piece
                if turns.is_due:  # what has come in may be ten thousand chunks of a byte each
                    await turns.give()
        except http.TimeoutException as error:
            raise TimedOut(type(error).__name__) from error
        except http.ReadError as error:
            raise Cut("reset", is_reset=True) from error
        except http.ProtocolError as error:
            raise Cut("closed before its end", is_reset=False) from error

    async def read(self, limit: int) -> bytes:
        return await read_whole(self.stream(), limit)

    async def close(self) -> None:
        """See `Reply.close`. A connection with bytes behind the reply is closed too: they would be the next one's."""
        if self._is_followed:
            await self._response.extensions["network_stream"].aclose()
        await self._response.aclose()

    @property
    def _is_followed(self) -> bool:
        """Whether there is, or may come, more than this reply. What comes while a connection is idle the pool sees itself."""
        if _unparsed(self._response):
            return True
        lengths = [value for name, value in self.headers if name == b"content-length"]
        return self._has_no_body and (
            lengths not in ([], [b"0"]) or first(self.headers, b"transfer-encoding") is not None
        )


def _unparsed(response: Any) -> bool:
    """Whether the connection's parser holds bytes behind a reply. The client has no public way to ask."""
    parser = response.stream._stream._connection._h11_state
    return bool(parser.trailing_data[0])


class PooledUpstream:
    """Sends requests to one provider. `url` is its base URL; `environment` holds the proxy variables.

    Nothing is sent twice but what may be repeated and had no answer: a request that reached the provider may have been
    charged for.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_timeout_s: float = 15.0,
        idle_timeout_s: float = 900.0,
        max_connections: int = 512,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        parts = checked(url)
        self.name = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._scheme = parts.scheme.encode()
        self._host = (parts.hostname or "").encode("idna" if not (parts.hostname or "").isascii() else "ascii")
        self._port = parts.port
        self._base = parts.path.rstrip("/").encode()
        bare = b"[" + self._host + b"]" if b":" in self._host else self._host
        self._host_header = bare if parts.port is None else bare + b":%d" % parts.port
        self._timeouts = {
            "connect": connect_timeout_s,
            "pool": connect_timeout_s,
            "read": idle_timeout_s,
            "write": idle_timeout_s,
        }
        self._pool = _pool(parts, os.environ if environment is None else environment, max_connections)

    async def send(self, method: str, target: bytes, headers: Headers, body: Body = b"", call: object = None) -> Reply:
        """See `cg.gateway.upstream.contract.Upstream.send`."""
        async with AsyncExitStack() as stack:
            if not isinstance(body, bytes):
                aclose = getattr(body, "aclose", None)
                if aclose is not None:
                    stack.push_async_callback(aclose)
            request = http.Request(
                method.encode("ascii"),
                http.URL(scheme=self._scheme, host=self._host, port=self._port, target=self._base + target),
                headers=self._framed(method, headers, body),
                content=body,
                extensions={"timeout": self._timeouts},
            )
            try:
                return await self._exchange(request)
            except Cut:
                if method in REPEATABLE and body == b"":
                    return await self._exchange(request)
                raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _framed(self, method: str, headers: Headers, body: Body) -> Headers:
        framed = [(b"host", self._host_header), *headers]
        if isinstance(body, bytes):
            if body or method in BODY_METHODS:
                framed.append((b"content-length", str(len(body)).encode()))
        elif all(name != b"content-length" for name, _ in headers):
            framed.append((b"transfer-encoding", b"chunked"))
        return framed

    async def _exchange(self, request: Any) -> Reply:
        try:
            response = await self._pool.handle_async_request(request)
        except (http.ConnectTimeout, http.PoolTimeout) as error:
            raise Unreachable(type(error).__name__) from error
        except http.TimeoutException as error:
            raise TimedOut(type(error).__name__) from error
        except (http.ConnectError, http.ProxyError, http.UnsupportedProtocol) as error:
            raise Unreachable(type(error).__name__) from error
        except (http.ReadError, http.WriteError) as error:
            raise Cut("reset before its head", is_reset=True) from error
        except http.RemoteProtocolError as error:
            raise Cut("closed before its head", is_reset=False) from error
        except http.LocalProtocolError as error:
            raise UpstreamError("the request cannot be written in HTTP/1.1") from error
        if not 200 <= response.status < 600:
            await response.extensions["network_stream"].aclose()
            await response.aclose()
            raise NotHttp(f"status {response.status}")
        return PooledReply(response, request.method.decode("ascii"))


def _pool(parts: SplitResult, environment: Mapping[str, str], max_connections: int) -> Any:
    shared: dict[str, Any] = {
        "ssl_context": tls_context(environment) if parts.scheme == "https" else None,
        "max_connections": max_connections,
        "max_keepalive_connections": KEPT_CONNECTIONS,
        "keepalive_expiry": KEPT_S,
        "retries": CONNECT_RETRIES,
        "socket_options": keepalive_options(),
        "network_backend": LoopBackend(),
    }
    proxy = proxy_for(parts, environment)
    if proxy is None:
        return http.AsyncConnectionPool(**shared)
    where = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if where.scheme not in ("http", "https", "socks5", "socks5h") or not where.hostname:
        raise CgError("the proxy variable for the upstream is not an http, https or socks5 URL")
    auth = (unquote(where.username), unquote(where.password or "")) if where.username else None
    host = f"[{where.hostname}]" if ":" in where.hostname else where.hostname
    port = where.port or {"http": 80, "https": 443}.get(where.scheme, 1080)
    scheme = "socks5" if where.scheme.startswith("socks5") else where.scheme
    return http.AsyncConnectionPool(**shared, proxy=http.Proxy(f"{scheme}://{host}:{port}", auth=auth))


def tls_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """Verification against the system's authorities, SSL_CERT_FILE and SSL_CERT_DIR in their place if set;
    NODE_EXTRA_CA_CERTS adds to them, since the clients that stand before us need it on the same networks."""
    context = http.default_ssl_context()
    if extra := environment.get("NODE_EXTRA_CA_CERTS"):
        try:
            context.load_verify_locations(extra)
        except (OSError, ssl.SSLError) as error:
            raise CgError(f"NODE_EXTRA_CA_CERTS cannot be read: {type(error).__name__}") from error
    return context
