"""Which request heads two readers could understand differently: those are refused, never guessed at.

A gateway that reads a message's end one way while the server behind it reads it another lets one client speak in
another's name (RFC 9112, 11.2). The parser refuses most of it; what it leaves open is refused here.
"""

import re

from cg.gateway.exchange import Headers

MAX_HEAD_BYTES = 64 * 1024  # request line and headers; the longest seen from a real client is 4 KB
MAX_HEADERS = 256

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")  # RFC 9110 token, in lower case
_VALUE = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*\Z")
_LENGTH = re.compile(rb"[0-9]{1,15}\Z")  # a petabyte; no sign, no list, no hexadecimal
_TARGET = re.compile(rb"/[\x21-\x7e]*\Z")  # origin form in visible ASCII


def fault(headers: Headers, version: str = "1.1") -> tuple[int, str] | None:
    """What is wrong with a request's headers: a status and a few words without their content; None if nothing is."""
    if version != "1.1":
        return 505, "HTTP/1.1 is required"
    if len(headers) > MAX_HEADERS:
        return 431, f"more than {MAX_HEADERS} headers"
    ambiguity = _ambiguity(headers)
    return None if ambiguity is None else (400, ambiguity)


def _ambiguity(headers: Headers) -> str | None:
    """What two readers of these headers could understand differently."""
    seen = {b"host": 0, b"content-length": 0, b"transfer-encoding": 0}
    for name, value in headers:
        if not _NAME.match(name) or not _VALUE.match(value):
            return "a header has a character that is not allowed"
        if name in seen:
            seen[name] += 1
            if name == b"content-length" and not _LENGTH.match(value):
                return "content-length is not a plain number"
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                return "transfer-encoding is not exactly 'chunked'"
    if seen[b"host"] != 1:
        return "exactly one host header is required"
    if seen[b"content-length"] + seen[b"transfer-encoding"] > 1:
        return "more than one header says where the body ends"
    return None


def is_origin_form(target: bytes) -> bool:
    """Whether a request target is a path of this server, not an absolute URL, an authority, or `*`."""
    return _TARGET.match(target) is not None
