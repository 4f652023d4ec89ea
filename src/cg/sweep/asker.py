"""Asking the request's own model over HTTP, with the caller's own credential, model and headers."""

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from cg.errors import CgError
from cg.sweep.values import Usage
from cg.sweep.wants import Answer, Failure

MAX_REPLY_BYTES = 4 * 1024 * 1024  # a reply of 16,000 tokens is some 60 KB; more than this is not an answer
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
    credential or beta set is another cache. Nothing is retried once a request was written whole, since the provider may
    have charged for it; a connection that could not be opened is tried once more.
    """

    def __init__(self, upstream: str, headers: Mapping[str, str], path: str = "/v1/messages") -> None:
        parts = urlsplit(upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CgError(f"upstream is {upstream!r}; it must be an http or https URL")
        self._https = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/") + path
        self._headers = {
            name: value
            for name, value in headers.items()
            if name.lower() not in HOP_HEADERS and not name.lower().startswith("x-cg-")
        }

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """One POST within `timeout_s` seconds of wall clock, opening the connection included."""
        start = time.monotonic()
        for attempt in (1, 2):
            connection = self._connection(timeout_s)
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                if attempt == 2:
                    return self._failure(f"connect: {type(error).__name__}", start)
                continue
            try:
                return self._exchange(connection, body, start, timeout_s)
            except (OSError, http.client.HTTPException) as error:
                return self._failure(type(error).__name__, start)
            finally:
                connection.close()
        raise AssertionError("unreachable")

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._https:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)

    def _exchange(
        self, connection: http.client.HTTPConnection, body: bytes, start: float, timeout_s: float
    ) -> Answer | Failure:
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", **self._headers}
        connection.request("POST", self._path, body, headers)
        response = connection.getresponse()
        raw = _read_within(response, connection, start + timeout_s)
        if raw is None:
            return self._failure("timeout or oversized reply", start)
        if response.status != 200:
            return self._failure(f"status {response.status}", start)
        parsed = parse_reply(raw)
        if parsed is None:
            return self._failure("unreadable reply", start)
        return Answer(*parsed, (time.monotonic() - start) * 1000)

    @staticmethod
    def _failure(reason: str, start: float) -> Failure:
        return Failure(reason, (time.monotonic() - start) * 1000)


def _read_within(
    response: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float
) -> bytes | None:
    """The whole body, or None past the deadline or the size limit: a slow drip of bytes must not hold a leg open."""
    pieces: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        if connection.sock is not None:
            connection.sock.settimeout(left)
        piece = response.read1(65536)
        if not piece:
            return b"".join(pieces)
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            return None
        pieces.append(piece)


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
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
