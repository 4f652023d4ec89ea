"""Who may use the gateway: whoever is on this machine and speaks to it by name, or has the token.

A page in the user's browser can send requests to a loopback address. Two things keep it out: its host name is not a
loopback name even when it resolves to one (DNS rebinding), and it cannot hide its origin.
"""

import hmac
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from cg.gateway.events import Refusal
from cg.gateway.exchange import Headers, first
from cg.gateway.settings import is_loopback_name

TOKEN_HEADER = b"x-cg-token"
# What a reverse proxy on this machine says: its client is elsewhere, whatever host name that one has written.
FORWARDED = frozenset([b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"])


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal, with the status and the words that the client gets."""

    why: Refusal
    status: int
    words: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for one listening address. Without a token only a loopback address can be listened on."""

    is_loopback: bool
    token: bytes | None = None

    def deny(
        self, headers: Headers, *, is_gateway_route: bool, needs_token: bool = False, is_for_all: bool = False
    ) -> Denial | None:
        """Why a request is refused, or None. `is_gateway_route`: it is for one of our own routes, which no other page may
        read; `needs_token`: it is for one that shows content; `is_for_all`: it is for one that tells nothing of anybody,
        which whoever reaches another address than a loopback one may ask: health checks have no token."""
        if self._has_token(headers):
            return None
        if needs_token and self.token is None:
            return Denial(Refusal.TOKEN, 403, "this route needs a token, and cg-proxy was started without one")
        if needs_token or not (self.is_loopback or is_for_all):
            return Denial(Refusal.TOKEN, 401, "x-cg-token is missing or wrong")
        if not self.is_loopback:
            return None
        host = first(headers, b"host") or b""
        if not _names_this_machine(host) or any(name in FORWARDED for name, _ in headers):
            return Denial(
                Refusal.HOST,
                421,
                "the request is not from this machine by its host or forwarding headers; a token is needed for others",
            )
        if _is_cross_origin(headers, host, is_gateway_route):
            return Denial(Refusal.ORIGIN, 403, "requests from another web origin are refused")
        return None

    def _has_token(self, headers: Headers) -> bool:
        given = [value for name, value in headers if name == TOKEN_HEADER]
        return self.token is not None and len(given) == 1 and hmac.compare_digest(given[0], self.token)


def _is_cross_origin(headers: Headers, host: bytes, is_gateway_route: bool) -> bool:
    """Whether a page of another origin made the request. Programs send no origin; an editor's own scheme is none."""
    origins = [value for name, value in headers if name == b"origin"]
    if is_gateway_route:
        site = first(headers, b"sec-fetch-site")
        if site not in (None, b"none", b"same-origin"):
            return True
        return any(origin.lower() != b"http://" + host.lower() for origin in origins)
    return any(_is_web_origin(origin) for origin in origins)


def _is_web_origin(origin: bytes) -> bool:
    """Whether an origin is a page from elsewhere: `null` is one that hides, a loopback page is the user's own."""
    scheme, mark, rest = origin.lower().partition(b"://")
    if not mark:
        return True
    return scheme in (b"http", b"https") and not is_loopback_name(host_name(rest))


@lru_cache(maxsize=16)  # a machine has a few names, and each client sends the same one with every request
def _names_this_machine(host: bytes) -> bool:
    return is_loopback_name(host_name(host))


def host_name(host: bytes) -> str:
    """The name in a host header, without its port and in lower case; empty if it is none."""
    text = host.decode("latin-1").lower()
    if any(mark in text for mark in "/\\@?# ,") or not text:
        return ""
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port  # raises for what is no port
        return parts.hostname or ""
    except ValueError:
        return ""
