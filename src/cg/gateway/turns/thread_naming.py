"""Whose conversation a request belongs to: `cg.sweep.history.thread_key` fed from the wire."""

import hashlib
import re

from cg.gateway.exchange import Headers, first
from cg.sweep.body.transcript import Transcript
from cg.sweep.history.thread_key import session_key, thread_key, user_key
from cg.sweep.planning.gaps import Client
from cg.sweep.values import DIGEST_BYTES

CREDENTIALS = (b"x-api-key", b"authorization")
# Nobody sits in front of these: the client's own SDK and its `-p`, and the libraries that programs call.
PROGRAMS = re.compile(rb"\(external, sdk-|^(?:Async)?Anthropic/")
NAMES = frozenset([b"x-cg-session", b"x-claude-code-session-id", b"x-claude-code-agent-id"])


class ThreadNaming:
    """Names threads for one upstream."""

    def __init__(self, secret: bytes, upstream: str) -> None:
        self._secret, self._upstream = secret, upstream

    def thread(self, headers: Headers, transcript: Transcript | None) -> str:
        """The thread of a request; `transcript` is None for a body that could not be read."""
        opening = transcript.chain[:DIGEST_BYTES] if transcript is not None else b""
        return self._key(headers, transcript.session_id if transcript is not None else None, opening)

    def named(self, headers: Headers, session_id: str | None = None) -> str | None:
        """The thread that a session's id names, in a header or as it stands in `metadata.user_id`; None if none does:
        a conversation that is known by its opening alone cannot be named without it."""
        if not session_id and not any(key in NAMES for key, _ in headers):
            return None
        return self._key(headers, session_id, b"")

    def client(self, headers: Headers) -> Client:
        """Whose waits a request shows: those of its credential, apart for people, programs and sub-agents."""
        agent = first(headers, b"x-claude-code-agent-id")
        is_program = agent is not None or PROGRAMS.search(first(headers, b"user-agent") or b"") is not None
        kind = "agent" if agent is not None else "program" if is_program else "person"
        name = user_key(self._secret, credential=credential_of(headers), upstream=self._upstream, kind=kind)
        return Client(name, is_person=not is_program)

    def session(self, headers: Headers, transcript: Transcript) -> str | None:
        """What all threads of a request's session are put down under; None where it has no id."""
        return session_key(
            self._secret, upstream=self._upstream, headers=_names_in(headers), session_id=transcript.session_id
        )

    def _key(self, headers: Headers, session_id: str | None, opening: bytes) -> str:
        return thread_key(
            self._secret,
            credential=credential_of(headers),
            upstream=self._upstream,
            headers=_names_in(headers),
            session_id=session_id,
            opening=opening,
        )


def _names_in(headers: Headers) -> dict[str, str]:
    return {key.decode(): value.decode("latin-1") for key, value in reversed(headers) if key in NAMES}


def credential_of(headers: Headers) -> str:
    """A digest of all credentials that a request carries, with the headers they stand in."""
    digest = hashlib.sha256()
    for name, value in headers:
        if name in CREDENTIALS:
            digest.update(b"%d %b%d %b" % (len(name), name, len(value), value))
    return digest.hexdigest()
