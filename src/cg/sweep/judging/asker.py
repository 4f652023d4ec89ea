"""Asking the request's own model over HTTP, with the caller's own credential, model and headers."""

import http.client
import json
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from cg.errors import CgError
from cg.sweep.effects import Answer, Failure
from cg.sweep.values import Usage

LEAST_TIMEOUT_S = 0.001  # of opening a connection: zero would mean not to wait at all
LARGEST_COUNT = 10**12  # tokens; a larger number is no count of them, and may be no float either
MAX_REPLY_BYTES = 4 * 1024 * 1024  # a reply of 16,000 tokens is some 60 KB; more than this is not an answer
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
HOP_HEADERS = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)


class Asker(Protocol):
    """Whoever can put a body to the request's model."""

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """The reply's text with its usage, or why there is none; never raises for what the other side does."""
        ...


class HttpAsker:
    """Posts an ask to the provider of the request it belongs to.

    `upstream` is the provider's base URL, `headers` the caller's own, credential and betas among them: another
    credential or beta set is another cache. A redirect is a failure: the credential is for this host. Nothing is
    retried once a request was begun, since the provider may have charged for it; a connection that could not be opened
    is tried once more. Raises CgError for an upstream or a header that cannot be used; no message holds a value of one.
    """

    def __init__(self, upstream: str, headers: Mapping[str, str], path: str = "/v1/messages") -> None:
        parts, self._host, self._port = _upstream(upstream)
        self._https = parts.scheme == "https"
        self._path = parts.path.rstrip("/") + path
        self._headers = {
            name.lower(): value
            for name, value in headers.items()
            if name.lower() not in HOP_HEADERS and not name.lower().startswith("x-cg-")
        }
        for name, value in self._headers.items():
            if not HEADER_NAME.match(name) or not HEADER_VALUE.match(value):
                raise CgError(f"header {name!r} has a name or a value that HTTP does not allow")

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """One POST within `timeout_s` seconds of wall clock, opening the connection included."""
        start = time.monotonic()
        deadline = start + timeout_s
        for attempt in (1, 2):
            connection = self._connection(max(deadline - time.monotonic(), LEAST_TIMEOUT_S))
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                if attempt == 2:
                    return self._failure(f"connect: {type(error).__name__}", start)
                continue
            try:
                with _cut_off_at(deadline, connection):
                    return self._exchange(connection, body, start, deadline)
            except (OSError, http.client.HTTPException, ValueError) as error:
                late = time.monotonic() >= deadline
                return self._failure("timeout" if late else type(error).__name__, start)
            finally:
                connection.close()
        raise AssertionError("unreachable")

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._https:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, start: float, deadline: float
    ) -> Answer | Failure:
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", **self._headers}
        connection.request("POST", self._path, body, headers)
        response = connection.getresponse()
        if response.status != 200:
            return self._failure(f"status {response.status}", start)
        raw = _plain(_read(response), response.getheader("content-encoding", "identity").lower())
        if raw is None:
            return self._failure("oversized reply", start)
        parsed = parse_reply(raw)
        if parsed is None:
            return self._failure("timeout" if time.monotonic() >= deadline else "unreadable reply", start)
        return Answer(*parsed, (time.monotonic() - start) * 1000)

    @staticmethod
    def _failure(reason: str, start: float) -> Failure:
        return Failure(reason, (time.monotonic() - start) * 1000)


def _upstream(url: str) -> tuple[SplitResult, str, int | None]:
    """(parts, host, port) of a base URL; the URL itself may hold a secret and stands in no message."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise CgError("upstream is no URL: its host or port cannot be read") from error
    if parts.scheme not in ("http", "https") or not host:
        raise CgError(f"upstream has scheme {parts.scheme!r} and {'a' if host else 'no'} host; http or https and one")
    if parts.username is not None or parts.password is not None:
        raise CgError("upstream holds a user name or password; a credential goes into a header")
    return parts, host, port


@contextmanager
def _cut_off_at(deadline: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Shuts the connection down at the deadline: timeouts of a socket are per byte, and a slow drip never meets one."""
    sock: socket.socket = connection.sock

    def cut_off() -> None:
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS, whose own farewell could wait in its turn

    watch = threading.Timer(max(deadline - time.monotonic(), 0.0), cut_off)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _read(response: http.client.HTTPResponse) -> bytes | None:
    """The whole body as it came, or None past the size limit; a body that was cut off raises or does not parse."""
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(65536):
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _plain(raw: bytes | None, encoding: str) -> bytes | None:
    """The body without its content encoding, which was not asked for but some proxies add; None past the size limit."""
    if raw is None or encoding not in ("gzip", "x-gzip", "deflate"):
        return raw
    opened = zlib.decompressobj(wbits=47)  # a gzip or a zlib header
    try:
        plain = opened.decompress(raw, MAX_REPLY_BYTES)
    except zlib.error:
        return b""
    return None if opened.unconsumed_tail else plain


def parse_reply(raw: bytes) -> tuple[str, Usage | None] | None:
    """(text, usage) of a Messages reply; tool calls in it are discarded. None when it is no such reply."""
    try:
        message = json.loads(raw)
        blocks = message["content"]
        texts = [b["text"] for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return "".join(texts), usage_of(message.get("usage"))


def usage_of(usage: object) -> Usage | None:
    """A provider's usage object by tier, tokens; None when it is not one. Unlabelled writes are five-minute ones."""
    if not isinstance(usage, dict):
        return None
    split = usage.get("cache_creation")
    one_hour = _count(split.get("ephemeral_1h_input_tokens")) if isinstance(split, dict) else 0
    written = _count(usage.get("cache_creation_input_tokens"))
    return Usage(
        fresh=_count(usage.get("input_tokens")),
        read=_count(usage.get("cache_read_input_tokens")),
        write_5m=max(0, written - one_hour),
        write_1h=one_hour,
        output=_count(usage.get("output_tokens")),
    )


def _count(value: object) -> int:
    """A count of tokens; 0 for what is none, such as a number that no request could bring about."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT else 0
