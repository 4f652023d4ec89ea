"""Whose conversation a request belongs to, and the secret that its name is keyed with."""

import json
import os
import threading
from pathlib import Path

import pytest

from cg.errors import CgError
from cg.gateway.exchange import Headers
from cg.gateway.state.secret import SECRET_BYTES, install_secret
from cg.gateway.turns.thread_naming import Naming
from cg.sweep.body.transcript import read

SESSION: Headers = [(b"x-api-key", b"k"), (b"x-claude-code-session-id", b"s")]
posix = pytest.mark.skipif(os.name != "posix", reason="mode bits and links of POSIX")


def body(text: str = "Hello.", **top: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **top}).encode()


def thread(headers: Headers, raw: bytes = b"", *, secret: bytes = b"s", upstream: str = "https://a") -> str:
    return Naming(secret, upstream).thread(headers, read(raw or body()))


def test_a_conversation_keeps_its_name() -> None:
    """Whatever is added to its history, and whatever other headers come."""
    later = json.loads(body())
    later["messages"] += [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}]
    raw = json.dumps(later).encode()
    assert thread(SESSION) == thread([*SESSION, (b"x-stainless-retry-count", b"1")], raw)
    assert thread([(b"x-api-key", b"k")]) == thread([(b"x-api-key", b"k")], raw)


@pytest.mark.parametrize(
    "other",
    [
        {"headers": [(b"x-api-key", b"other"), SESSION[1]]},
        {"headers": [(b"authorization", b"k"), SESSION[1]]},
        {"headers": [*SESSION, (b"authorization", b"more")]},
        {"headers": [SESSION[0], (b"x-claude-code-session-id", b"other")]},
        {"headers": [*SESSION, (b"x-claude-code-agent-id", b"agent")]},
        {"headers": [*SESSION, (b"x-cg-session", b"mine")]},
        {"headers": SESSION, "upstream": "https://b"},
        {"headers": SESSION, "secret": b"other"},
    ],
)
def test_another_credential_upstream_or_name_is_another_thread(other: dict[str, object]) -> None:
    """No client can put itself into a thread of somebody else's."""
    assert thread(SESSION) != thread(**other)  # type: ignore[arg-type]


def test_the_first_of_repeated_headers_names() -> None:
    """As everywhere else that a header is read."""
    twice: Headers = [*SESSION, (b"x-claude-code-session-id", b"second")]
    assert thread(SESSION) == thread(twice)


def test_without_a_name_the_opening_names() -> None:
    """And a body that cannot be read has a thread of its own, so that it can be counted."""
    key: Headers = [(b"x-api-key", b"k")]
    assert thread(key, body("One")) != thread(key, body("Two"))
    user = json.dumps({"session_id": "abc"})
    assert thread(key, body("One", metadata={"user_id": user})) == thread(key, body("Two", metadata={"user_id": user}))
    assert len(Naming(b"s", "u").thread(key, None)) == 64


def test_the_secret_is_made_once_and_kept(tmp_path: Path) -> None:
    """Beside the state, readable by its owner alone; a state in memory has one of its own."""
    state = tmp_path / "folder" / "cg.db"
    secret = install_secret(state)
    assert len(secret) == SECRET_BYTES and install_secret(state) == secret
    if os.name == "posix":
        assert state.with_name("cg.db.secret").stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in state.parent.iterdir()) == ["cg.db", "cg.db.secret"]
    assert install_secret(None) != install_secret(None)


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    """The first one's secret stays, and nobody reads half of one."""
    found: list[bytes] = []
    starting = threading.Barrier(8)

    def start() -> None:
        starting.wait()
        found.append(install_secret(tmp_path / "cg.db"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(found[0]) == SECRET_BYTES


@posix
@pytest.mark.parametrize("kind", ["symlink", "readable", "short", "folder"])
def test_a_secret_that_is_not_plainly_ours_is_refused(kind: str, tmp_path: Path) -> None:
    """A link, a file that others may read, half a secret: named, and nothing is started with it."""
    state = tmp_path / "cg.db"
    path = tmp_path / "cg.db.secret"
    if kind == "symlink":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir(mode=0o700)
    else:
        path.write_bytes(b"x" * (SECRET_BYTES if kind == "readable" else 5))
        path.chmod(0o644 if kind == "readable" else 0o600)
    with pytest.raises(CgError):
        install_secret(state)
