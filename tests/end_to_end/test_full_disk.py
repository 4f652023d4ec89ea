"""A disk that is really full, in mid-session: the operating system refuses the write, and the client notices nothing."""

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, WORK, Live, Talk, find_markers, live

from cg.gateway.events import Fault
from cg.sweep.ledger import Reason
from cg.sweep.store_sqlite import SqliteStore
from cg.sweep.values import Payload

DISK_BYTES = 4 * 1024 * 1024
FILE_BYTES = 32 * 1024  # what SQLite's index of its log needs to be read; the log and the state are longer already
Full = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A file system of four megabytes, and a way to fill it up to the last byte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = sys.platform == "linux" and os.geteuid() == 0
    mounted = (
        mounted
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", str(place)], capture_output=True
        ).returncode
    )
    if not mounted:
        pytest.skip("no file system can be mounted here")

    @contextmanager
    def full() -> Iterator[None]:
        filler = place / "filler"
        with open(filler, "wb", buffering=0) as file, pytest.raises(OSError) as refused:
            for size in (65536, 4096, 1):
                while True:
                    try:
                        file.write(b"x" * size)
                    except OSError:
                        if size == 1:
                            raise
                        break
        assert refused.value.errno == errno.ENOSPC
        try:
            yield
        finally:
            filler.unlink()

    try:
        yield place, full
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def small_files(tmp_path: Path) -> tuple[Path, Full]:
    """A process that may not make a file any longer: the same refusal where nothing can be mounted."""
    resource: Any = pytest.importorskip("resource")

    @contextmanager
    def full() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return tmp_path, full


@pytest.fixture(params=["small_disk", "small_files"])
def disk(request: pytest.FixtureRequest) -> tuple[Path, Full]:
    found: tuple[Path, Full] = request.getfixturevalue(request.param)
    return found


def resolves(gateway: Live) -> int:
    """How many markers the upstream got; the store holds the original of each."""
    (thread,) = set(gateway.sweep._known)
    seen = {key for body in gateway.bodies() for key in find_markers(body.decode())}
    assert all(isinstance(gateway.store.fetch(thread, key), Payload) for key in seen)
    return len(seen)


async def judged(gateway: Live, talk: Talk) -> None:
    """A session whose outputs were judged spent in the gap, and whose next request is cold."""
    await gateway.post(talk.body())
    await gateway.post(talk.calls(14).body())
    await gateway.wait(241)
    await gateway.wait(1000)


def test_nothing_is_removed_while_the_disk_is_full_and_all_of_it_once_there_is_room(disk: tuple[Path, Full]) -> None:
    """No original can be stored, so no marker leaves; the verdicts wait, and are applied when it can."""
    place, full = disk

    async def session() -> None:
        with SqliteStore(place / "cg" / "state.db", bodies_in_memory=True) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                await judged(gateway, talk)
                with full():
                    answer = await gateway.post(talk.say("And now?").body())
                    assert answer.status == 200 and answer.content[0]["text"] == "Working on it."
                    assert find_markers(gateway.bodies("work")[-1].decode()) == []
                    assert gateway.recorder.turns[-1].reason in (Reason.REFUSED, Reason.FAULT)
                await gateway.wait(1000)
                await gateway.post(talk.say("And now?").body())
                assert len(find_markers(gateway.bodies("work")[-1].decode())) == 11
                assert resolves(gateway) == 11 and not gateway.recorder.faults[Fault.WATCHDOG]

    asyncio.run(session())


def test_what_was_removed_before_the_disk_was_full_stays_removed_and_comes_back(disk: tuple[Path, Full]) -> None:
    """Rule 7 and the way back need no room: the same bytes leave at each request, and originals can be read."""
    place, full = disk

    async def session() -> None:
        with SqliteStore(place / "cg" / "state.db", bodies_in_memory=True) as store:
            async with live([ALL_SPENT, WORK], store=store) as gateway:
                talk = Talk()
                await judged(gateway, talk)
                await gateway.post(talk.say("And now?").body())
                sent = find_markers(gateway.bodies("work")[-1].decode())
                assert len(sent) == 11
                with full():
                    for n in range(3):
                        answer = await gateway.post(talk.say(f"Step {n}.").body())
                        assert answer.status == 200
                        assert find_markers(gateway.bodies("work")[-1].decode()) == sent
                    assert resolves(gateway) == 11

    asyncio.run(session())
