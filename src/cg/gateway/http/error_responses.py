"""Answers that the gateway gives in the upstream's place, in the shape of the API's own errors."""

import json
from collections.abc import Mapping

from cg.gateway.exchange import Headers, Outbound

# The API's names, which its clients read; what they retry they decide by the status.
_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    421: "permission_error",
    431: "invalid_request_error",
    503: "overloaded_error",
    504: "timeout_error",
    505: "invalid_request_error",
}


def error_body(status: int, words: str) -> bytes:
    """The JSON of an error of ours; the message says that it is ours."""
    kind = _TYPES.get(status, "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": f"cg-proxy: {words}"}}).encode()


def refuse(status: int, words: str, *more: tuple[bytes, bytes]) -> Outbound:
    """An error answer; the connection ends with it, as the request's body may not have been read."""
    headers: Headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *more]
    return Outbound(status, headers, error_body(status, words))
