"""Which conversation a request belongs to: a keyed digest, so that no stored name leads back to a credential."""

import hashlib
import hmac
from collections.abc import Mapping

MAX_HEADER_CHARS = 256  # a session id longer than this is nobody's; the next source is used instead


def thread_key(
    secret: bytes, *, credential: str, upstream: str, headers: Mapping[str, str], session_id: str | None, opening: bytes
) -> str:
    """Hex HMAC-SHA-256 over credential, upstream and the first usable name of the conversation.

    `headers` has lower-case names; `session_id` is the one in `metadata.user_id`, `opening` a digest of the history's
    first message. Two credentials, or two upstreams, never share a thread, whatever a client calls itself.
    """
    return _digest(secret, credential, upstream, *_name(headers, session_id, opening))


def user_key(secret: bytes, *, credential: str, upstream: str, kind: str) -> str:
    """Hex HMAC-SHA-256 that names all conversations which one kind of client has with a credential."""
    return _digest(secret, credential, upstream, "user", kind)


def session_key(secret: bytes, *, upstream: str, headers: Mapping[str, str], session_id: str | None) -> str | None:
    """As `thread_key` without a credential, for all threads of one session; None for a conversation that is known by its
    opening alone. It names no thread: a thread's credential is never empty."""
    kind, *name = _name(headers, session_id, b"")
    return None if kind == "opening" else _digest(secret, "", upstream, kind, *name)


def _digest(secret: bytes, *parts: str) -> str:
    encoded = (part.encode("utf-8", "surrogatepass") for part in parts)
    message = b"".join(len(raw).to_bytes(4, "big") + raw for raw in encoded)
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


def _name(headers: Mapping[str, str], session_id: str | None, opening: bytes) -> tuple[str, ...]:
    """The first source that names the conversation, with its kind in front so that kinds cannot be confused."""
    if own := _usable(headers.get("x-cg-session")):
        return "header", own
    if client := _usable(headers.get("x-claude-code-session-id")):
        # A sub-agent shares its parent's session id; the two ids together name one conversation.
        return "client", client, _usable(headers.get("x-claude-code-agent-id")) or ""
    if user := _usable(session_id):
        return "metadata", user
    return "opening", opening.hex()


def _usable(value: str | None) -> str | None:
    return value if value and len(value) <= MAX_HEADER_CHARS else None
