"""Whose conversation a request belongs to: `cg.sweep.threads` fed from the wire, with a secret of this installation."""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from cg.errors import CgError
from cg.gateway.exchange import Headers
from cg.sweep.state_file import secure
from cg.sweep.threads import thread_key
from cg.sweep.transcript import DIGEST_BYTES, Transcript

SECRET_BYTES = 32
CREDENTIALS = (b"x-api-key", b"authorization")
NAMES = frozenset([b"x-cg-session", b"x-claude-code-session-id", b"x-claude-code-agent-id"])


def install_secret(state: Path | None) -> bytes:
    """The secret beside the state file, made at the first start (mode 0600); a new one for a state in memory.

    Thread names are keyed with it, so that a state file alone tells nobody which credential or session it is about.
    Raises CgError if the file is not plainly ours or holds something else; a lost secret makes all threads new.
    """
    if state is None:
        return secrets.token_bytes(SECRET_BYTES)
    secure(state)  # the folder, before anything is put into it
    path = state.with_name(state.name + ".secret")
    try:
        if not os.path.lexists(path):
            _create(path)
        secure(path)
        secret = path.read_bytes()
    except OSError as error:
        raise CgError(f"{path}: cannot be used: {error.strerror or type(error).__name__}") from error
    if len(secret) != SECRET_BYTES:
        raise CgError(f"{path}: has {len(secret)} bytes; a secret has {SECRET_BYTES}")
    return secret


def _create(path: Path) -> None:
    """Put a new secret in its place, whole; of several processes that start together the first one's stays."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(SECRET_BYTES))
        os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(descriptor)
        draft.unlink()


class Naming:
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

    def _key(self, headers: Headers, session_id: str | None, opening: bytes) -> str:
        named = {key.decode(): value.decode("latin-1") for key, value in reversed(headers) if key in NAMES}
        return thread_key(
            self._secret,
            credential=credential_of(headers),
            upstream=self._upstream,
            headers=named,
            session_id=session_id,
            opening=opening,
        )


def credential_of(headers: Headers) -> str:
    """A digest of all credentials that a request carries, with the headers they stand in."""
    digest = hashlib.sha256()
    for name, value in headers:
        if name in CREDENTIALS:
            digest.update(b"%d %b%d %b" % (len(name), name, len(value), value))
    return digest.hexdigest()
