"""Finding session files, telling formats apart, naming what cannot be read."""

import gzip
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import pytest
from claude_log import Log, said
from recordings import RECORDINGS, whole_histories

from cg.errors import CgError
from cg.replay.recordings import claude_logs, log_files
from cg.replay.sessions import Damaged, Session, find, open_all, open_sessions


def a_log(path: Path) -> Path:
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    return log.write(path)


def test_a_folder_is_searched_to_any_depth(tmp_path: Path) -> None:
    """Files before folders, each in order of name; what clients keep beside them, hidden files and other kinds are passed over."""
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    wanted = ["a.json", "a.jsonl", "b/x.json.gz", "b/deep/c.jsonl.gz"]
    others = ["a.labels.json", "agent-1.meta.json", "manifest.json", "notes.txt", ".hidden/d.jsonl", ".e.json"]
    for name in wanted + others:
        (tmp_path / name).touch()
    assert [p.relative_to(tmp_path).as_posix() for p in find([tmp_path])] == wanted


def test_links_cannot_lead_in_rounds(tmp_path: Path) -> None:
    """A link to a folder is not followed; a file that is reached twice comes once."""
    a_log(tmp_path / "a.jsonl")
    try:
        (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "same.jsonl").symlink_to(tmp_path / "a.jsonl")
    except OSError:
        pytest.skip("no links on this file system")
    assert [p.name for p in find([tmp_path, tmp_path / "a.jsonl"])] == ["a.jsonl"]


def test_a_file_is_taken_whatever_its_name(tmp_path: Path) -> None:
    """Only folders are searched by name."""
    path = a_log(tmp_path / "session.txt")
    assert list(find([path])) == [path]


@pytest.mark.parametrize(("name", "reason"), [("", "no .json, .jsonl or .gz file"), ("absent", "no such file")])
def test_an_empty_folder_and_a_missing_path_are_errors(tmp_path: Path, name: str, reason: str) -> None:
    """With the path in the message; among several paths they are named and skipped."""
    with pytest.raises(CgError, match=reason):
        list(find([tmp_path / name]))
    log = tmp_path.parent / f"{tmp_path.name}.jsonl"
    damaged, session = open_all([tmp_path / name, a_log(log)])
    assert isinstance(damaged, Damaged) and reason in damaged.reason and damaged.path == tmp_path / name
    assert isinstance(session, Session)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n\n",
        b"hello\nworld\n",
        b'{"name": "package", "version": "1.0"}',
        b'[\n {"type": 3},\n "assistant"\n]',
        b'{"type": "module"}\n',
        bytes(range(256)) * 100,
        gzip.compress(b"nothing of the kind"),
        gzip.compress(b"x" * 1000)[:-9],
        gzip.compress(bytes(5000))[:12] + b"\xff" * 40,
        b"\x1f\x8b",
    ],
    ids=["empty", "blank", "text", "json", "list", "kind", "binary", "gz", "cut gz", "broken gz", "magic"],
)
def test_a_foreign_file_is_named_and_skipped(tmp_path: Path, raw: bytes) -> None:
    """One reason, no session, nothing of the content."""
    path = tmp_path / "foreign.json"
    path.write_bytes(raw)
    [damaged] = open_sessions(path)
    assert isinstance(damaged, Damaged) and damaged.reason and damaged.name == "foreign"


def test_a_foreign_file_is_given_up_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand lines without an entry are enough: a huge file of something else costs no more."""
    path = tmp_path / "big.json"
    path.write_bytes(b'"a line"\n' * 100_000)
    seen = 0

    def counted(raw: bytes) -> object:
        nonlocal seen
        seen += 1
        return json.loads(raw)

    monkeypatch.setattr("cg.replay.recordings.claude_entries.loads", counted)
    [damaged] = open_sessions(path)
    assert isinstance(damaged, Damaged) and seen <= 1000


def test_a_line_of_two_gigabytes_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """The line is read up to the limit and no further."""
    path = a_log(tmp_path / "long.jsonl")
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(2 * 2**30)  # a hole: two gigabytes without a line's end
    tracemalloc.start()
    try:
        [damaged] = open_sessions(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(damaged, Damaged) and "longer than 67108864 bytes" in damaged.reason
    assert peak < 3 * log_files.MAX_LINE_BYTES


def test_a_packed_flood_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file can unpack to any size."""
    monkeypatch.setattr(log_files, "MAX_LOG_BYTES", 2**20)
    path = tmp_path / "flood.jsonl.gz"
    line = b'{"type":"progress","uuid":"u"}\n'
    path.write_bytes(gzip.compress(line * (2**21 // len(line))))
    [damaged] = open_sessions(path)
    assert isinstance(damaged, Damaged) and "unpacked" in damaged.reason


def test_a_document_past_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is parsed."""
    monkeypatch.setattr(log_files, "MAX_DOCUMENT_BYTES", 1000)
    [damaged] = open_sessions(RECORDINGS[0])
    assert isinstance(damaged, Damaged) and "more than 1000 bytes" in damaged.reason


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe would wait for ever."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names here")
    os.mkfifo(tmp_path / "pipe.jsonl")
    [damaged] = open_sessions(tmp_path / "pipe.jsonl")
    assert isinstance(damaged, Damaged) and damaged.reason == "not a file"


def test_a_session_can_be_read_again_and_sent_to_another_process() -> None:
    """Reading keeps no state."""
    [session] = open_sessions(RECORDINGS[0])
    assert isinstance(session, Session)
    first = list(session.steps())
    assert first == list(session.steps()) == list(pickle.loads(pickle.dumps(session)).steps())
    assert len(first) == session.requests


def test_a_session_whose_file_is_gone_says_so(tmp_path: Path) -> None:
    """The path stands in the message."""
    path = a_log(tmp_path / "a.jsonl")
    [session] = open_sessions(path)
    path.unlink()
    with pytest.raises(CgError, match=r"a\.jsonl"):
        list(session.steps())


def test_a_request_that_two_files_hold_counts_once(tmp_path: Path) -> None:
    """A resumed session starts behind what it was resumed from, with the whole history; a mere copy is named."""
    log = Log()
    for n in range(3):
        log.user(f"go {n}")
        log.answer(f"m{n}", said(f"a {n}"))
    log.write(tmp_path / "a.jsonl")
    log.write(tmp_path / "b.jsonl")
    for n in range(3, 5):
        log.user(f"go {n}")
        log.answer(f"m{n}", said(f"a {n}"))
    resumed = log.write(tmp_path / "c.jsonl")
    first, copy, second = open_all([tmp_path])
    assert isinstance(first, Session) and isinstance(second, Session)
    assert isinstance(copy, Damaged) and "copy" in copy.reason
    assert (first.requests, second.requests) == (3, 2)
    assert (first.elsewhere, second.elsewhere) == (0, 3)
    [whole] = open_sessions(resumed)
    expected = [(s, m) for s, m in whole_histories(whole.steps())][3:]
    found = list(whole_histories(second.steps()))
    assert [m for _, m in found] == [m for _, m in expected]
    assert [(s.index, s.opens) for s, _ in found] == [(0, True), (1, False)]
    assert [s.reply for s, _ in found] == [s.reply for s, _ in expected]


def test_the_recordings_are_found_by_their_folder() -> None:
    """Labels and manifest are passed over."""
    found = list(open_all([RECORDINGS[0].parent]))
    assert [s.name for s in found] == [p.stem for p in RECORDINGS]
    assert all(isinstance(s, Session) for s in found)


def test_a_link_in_a_round_and_a_name_that_is_no_name_cost_only_themselves(tmp_path: Path) -> None:
    """They are named with the reason, and the session beside them is read."""
    log = a_log(tmp_path / "z.jsonl")
    try:
        (tmp_path / "a.jsonl").symlink_to(tmp_path / "b.jsonl")
        (tmp_path / "b.jsonl").symlink_to(tmp_path / "a.jsonl")
    except OSError:
        pytest.skip("no links on this file system")
    assert len(list(find([tmp_path]))) == 3
    one, two, session = open_all([tmp_path])
    assert isinstance(one, Damaged) and isinstance(two, Damaged) and one.reason == two.reason == "not a file"
    assert isinstance(session, Session) and session.path == log
    far, session = open_all([tmp_path / ("x" * 5000), log])
    assert isinstance(far, Damaged) and isinstance(session, Session)


def test_a_fault_of_ours_while_a_file_is_opened_costs_that_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kind is given, and not its words, which may hold content."""
    paths = [a_log(tmp_path / "a.jsonl"), a_log(tmp_path / "b.jsonl")]
    threads = claude_logs.threads

    def failing(path: Path) -> list[str]:
        if path == paths[0]:
            raise KeyError("a secret")
        return threads(path)

    monkeypatch.setattr(claude_logs, "threads", failing)
    damaged, second = open_all(paths)
    assert isinstance(damaged, Damaged) and damaged.reason == "cannot be replayed: KeyError"
    assert second.path == paths[1]
