"""The secret of this installation that thread names are keyed with."""

import contextlib
import os
import secrets
from pathlib import Path

from cg.errors import CgError
from cg.sweep.storage.sqlite.state_file import secure

SECRET_BYTES = 32


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
