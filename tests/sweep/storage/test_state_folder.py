"""Where a state may stand: in a folder, and on a way to it, where nobody else can put another one in its place."""

import os
import stat
from pathlib import Path

import pytest

from cg.sweep.store import StoreError
from cg.sweep.store_sqlite import SqliteStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="mode bits")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a folder away")
SOMEBODY = 12345


def folder(path: Path, mode: int = 0o700, *, owner: int = -1, group: int = -1) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


def opens(path: Path) -> None:
    SqliteStore(path / "gw.db").close()


def refuses(path: Path, why: str) -> None:
    """Refused with the folder's name, and nothing is left there."""
    before = list(path.iterdir()) if path.is_dir() else None
    with pytest.raises(StoreError, match=why):
        SqliteStore(path / "gw.db")
    assert before is None or list(path.iterdir()) == before


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_somebody_else_s_folder_is_refused(tmp_path: Path, mode: int) -> None:
    """However closed it is: its owner can replace what stands in it."""
    refuses(folder(tmp_path / "theirs", mode, owner=SOMEBODY), f"theirs: belongs to user {SOMEBODY}")


@as_root
def test_a_folder_of_ours_inside_somebody_else_s_is_refused(tmp_path: Path) -> None:
    """They can rename it and put another there."""
    mine = folder(tmp_path / "theirs" / "mine")
    folder(tmp_path / "theirs", 0o755, owner=SOMEBODY)
    refuses(mine, "theirs: belongs to user")
    refuses(tmp_path / "theirs" / "new", "theirs: belongs to user")


@pytest.mark.parametrize("between", ["mine", "mine/deeper/still", "new/folders"])
def test_a_folder_inside_one_that_all_may_write_is_refused(tmp_path: Path, between: str) -> None:
    """At any height, made already or not yet; no folder is left behind."""
    if not between.startswith("new"):
        folder(tmp_path / "open" / between)
    folder(tmp_path / "open", 0o777)
    refuses(tmp_path / "open" / between, "open: others may write here .mode 0777")
    assert not (tmp_path / "open" / "new").exists()


def test_a_folder_of_ours_in_a_sticky_one_is_taken(tmp_path: Path) -> None:
    """As /tmp: others may add folders there and not touch this one."""
    folder(tmp_path / "tmp", 0o1777)
    opens(tmp_path / "tmp" / "mine")
    assert stat.S_IMODE((tmp_path / "tmp" / "mine").stat().st_mode) == 0o700


@as_root
@pytest.mark.parametrize("is_above", [False, True])
def test_a_folder_that_another_group_may_write_is_refused(tmp_path: Path, is_above: bool) -> None:
    """Its members could do the same as all others."""
    shared = folder(tmp_path / "shared", 0o775, group=SOMEBODY)
    refuses(folder(shared / "mine") if is_above else shared, "shared: others may write here .mode 0775")


def test_a_folder_that_our_own_group_may_write_is_taken(tmp_path: Path) -> None:
    """Where every user has a group of his own, the usual umask makes folders so."""
    opens(folder(tmp_path / "shared", 0o775, group=os.getegid()))


@as_root
def test_a_folder_inside_one_that_root_has_opened_to_a_system_group_is_taken(tmp_path: Path) -> None:
    """As /var/log is on some systems; it cannot be the state's own."""
    logs = folder(tmp_path / "log", 0o775, owner=0, group=104)
    opens(logs / "cg")
    refuses(logs, "log: others may write here")


def test_a_linked_folder_is_looked_at_where_it_stands(tmp_path: Path) -> None:
    """A link of ours to a folder of ours is fine; what it leads to is held to the same."""
    folder(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    opens(tmp_path / "link" / "deeper")
    folder(tmp_path / "open" / "mine")
    folder(tmp_path / "open", 0o777)
    (tmp_path / "to_open").symlink_to(tmp_path / "open" / "mine")
    refuses(tmp_path / "to_open", "open: others may write here")


def test_a_link_that_others_could_turn_is_refused(tmp_path: Path) -> None:
    """On the way too: a link inside a folder that all may write leads wherever they like."""
    folder(tmp_path / "real")
    folder(tmp_path / "open", 0o777)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "real")
    (tmp_path / "safe").symlink_to(tmp_path / "open" / "link")
    refuses(tmp_path / "safe", "open: others may write here")
    refuses(tmp_path / "open" / ".." / "open" / "link" / ".." / "real", "open: others may write here")


@as_root
def test_somebody_else_s_link_is_refused(tmp_path: Path) -> None:
    """In a sticky folder everybody may leave one."""
    folder(tmp_path / "real")
    folder(tmp_path / "tmp", 0o1777)
    (tmp_path / "tmp" / "link").symlink_to(tmp_path / "real")
    os.lchown(tmp_path / "tmp" / "link", SOMEBODY, -1)
    refuses(tmp_path / "tmp" / "link", "link: belongs to user")


@pytest.mark.parametrize("target", ["loop", "nowhere", "file"])
def test_a_way_that_leads_nowhere_is_refused_in_words(tmp_path: Path, target: str) -> None:
    """A link to itself, to nothing, to a file."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to(target)
    with pytest.raises(StoreError, match="cannot be used as state"):
        SqliteStore(tmp_path / "loop" / "gw.db")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277])
def test_all_folders_that_are_made_are_ours_alone(tmp_path: Path, umask: int) -> None:
    """Those above the state's too, whatever the umask."""
    before = os.umask(umask)
    try:
        opens(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / f).stat().st_mode) for f in ("a", "a/b", "a/b/c")} == {0o700}
