"""Logs whose lines are damaged: what is whole on a line is read, and what is lost is counted."""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_log import Log, call, said
from recordings import whole_histories

from cg.replay.recordings.json_lines import Salvage
from cg.replay.sessions import Damaged, Session, open_sessions

REQUESTS = 5
TEXT = "größe “zitiert” 上\n" * 40  # letters of two, three bytes; one whose UTF-16 holds a line's end


def five() -> list[bytes]:
    """The lines of a session of five requests: a prompt, four calls with their results, a last word."""
    log = Log()
    log.user(f"go {TEXT}")
    for n in range(REQUESTS - 1):
        log.answer(f"m{n}", said(f"step {n}"), call(f"c{n}", command=f"cat f{n} {TEXT}"))
        log.result(f"c{n}", f"{n} {TEXT}")
    log.answer("m9", said("done"))
    return [line.encode() for line in log.lines]


def written(raw: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw)
    return path


def read(raw: bytes, tmp_path: Path) -> Session | Damaged:
    [found] = open_sessions(written(raw, tmp_path))
    return found


def histories(session: Session | Damaged) -> list[list[bytes]]:
    assert isinstance(session, Session), session
    return [messages for _, messages in whole_histories(session.steps())]


def lined(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def cut(lines: list[bytes], n: int, at: int) -> bytes:
    """A record that was cut, and its whole self behind it on the same line."""
    return lined([*lines[:n], lines[n][:at] + lines[n], *lines[n + 1 :]])


def with_text_cut(lines: list[bytes], word: str, inside: int) -> bytes:
    return cut(lines, 3, lines[3].index(word.encode()) + inside)


WHOLE: dict[str, Callable[[list[bytes]], bytes]] = {
    "two records on a line": lambda x: lined([*x[:3], x[3] + x[4], *x[5:]]),
    "three with blanks, NUL and record marks between": lambda x: lined(
        [*x[:2], x[2] + b"\0\0 " + x[3] + b"\t\x1e" + x[4], *x[5:]]
    ),
    "all on one line": lambda x: b"".join(x),
    "ends of lines are returns alone": lambda x: b"\r".join(x) + b"\r",
    "ends of lines are both": lambda x: b"\r\n".join(x),
    "NUL before a record": lambda x: lined([*x[:3], bytes(5000) + x[3], *x[4:]]),
    "NUL behind one, and a line of it": lambda x: lined([*x[:3], x[3] + bytes(9), bytes(99), *x[4:]]),
    "a byte order mark in front of any line": lambda x: lined([b"\xef\xbb\xbf" + line for line in x]),
    "a byte order mark behind a line, and two": lambda x: lined(
        [x[0] + b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2 + x[1], *x[2:]]
    ),
    "a list": lambda x: b"[\n" + b",\n".join(x) + b"\n]\n",
    "UTF-16 with a mark": lambda x: lined(x).decode().encode("utf-16"),
    "UTF-16, the other order": lambda x: b"\xfe\xff" + lined(x).decode().encode("utf-16-be"),
    "UTF-32": lambda x: lined(x).decode().encode("utf-32"),
    "records over many lines": lambda x: lined(
        [json.dumps(json.loads(y), indent=2, ensure_ascii=False).encode() for y in x]
    ),
    "a list over many lines": lambda x: (
        json.dumps([json.loads(y) for y in x[:3]], indent=1).encode()[:-1] + b",\n" + lined(x[3:])
    ),
    "a record broken between two members": lambda x: lined(
        [*x[:3], x[3].replace(b', "type"', b',\n "type"', 1), *x[4:]]
    ),
    "UTF-16 without a mark": lambda x: lined(x).decode().encode("utf-16-le"),
    "UTF-16, the other order, without a mark": lambda x: lined(x).decode().encode("utf-16-be"),
    "NUL before the first brace": lambda x: b"\0" + lined(x),
}


@pytest.mark.parametrize("damage", WHOLE.values(), ids=WHOLE)
def test_records_that_are_whole_are_read_however_they_stand(damage: Callable[[Any], bytes], tmp_path: Path) -> None:
    """Nothing of them is lost, so nothing is counted."""
    plain = five()
    expected = histories(read(lined(plain), tmp_path))
    session = read(damage(plain), tmp_path)
    assert histories(session) == expected and len(expected) == REQUESTS
    assert isinstance(session, Session) and session.damaged == 0


def test_a_shell_may_append_in_utf_16(tmp_path: Path) -> None:
    """But for letters whose second half looks like the end of a line."""
    plain = [line.replace("上".encode(), b"") for line in five()]
    session = read(lined(plain[:4]) + lined(plain[4:]).decode().encode("utf-16"), tmp_path)
    assert histories(session) == histories(read(lined(plain), tmp_path))
    assert isinstance(session, Session) and session.damaged == 0


def test_a_raw_tab_in_a_text_is_that_tab(tmp_path: Path) -> None:
    """JSON wants it escaped; a writer that does not is understood."""
    session = read(lined([line.replace(b"cat f", b"cat\tf") for line in five()]), tmp_path)
    assert b"cat\\tf" in histories(session)[-1][1]
    assert isinstance(session, Session) and session.damaged == 0


def test_the_end_of_a_line_may_stand_raw_in_a_text(tmp_path: Path) -> None:
    """The record goes on on the next line."""
    session = read(lined([line.replace(b"cat f", b"cat\n\nf") for line in five()]), tmp_path)
    assert b"cat\\n\\nf" in histories(session)[-1][1]
    assert isinstance(session, Session) and session.damaged == 0


def test_a_cut_record_takes_nothing_of_the_lines_behind_it(tmp_path: Path) -> None:
    """Whole ones, cut ones, none."""
    plain = five()
    for n in range(3, 9):
        for behind in ([], [plain[n][:70]], [b"", b"x"]):
            session = read(lined([*plain[:n], plain[n][:150], *behind, *plain[n + 1 :]]), tmp_path)
            assert isinstance(session, Session) and 1 <= session.damaged <= 2
            assert session.requests >= uncut_requests(plain, {n})


STUBS: dict[str, Callable[[list[bytes]], bytes]] = {
    "in a key": lambda x: cut(x, 3, 12),
    "behind a key": lambda x: cut(x, 3, x[3].index(b'"isSidechain":') + 14),
    "in a string": lambda x: with_text_cut(x, "zitiert", 3),
    "in a letter of two bytes": lambda x: with_text_cut(x, "ö", 1),
    "in a letter of three bytes": lambda x: with_text_cut(x, "“", 2),
    "in an escape": lambda x: with_text_cut(x, "\\n", 1),
    "behind a nested object": lambda x: cut(x, 3, x[3].rindex(b"}]") + 1),
    "before the last brace": lambda x: cut(x, 3, len(x[3]) - 1),
    "behind the first brace": lambda x: cut(x, 3, 1),
    "with NUL behind it": lambda x: lined([*x[:3], x[3][:200] + bytes(4000) + x[3], *x[4:]]),
    "at its beginning": lambda x: lined([*x[:3], x[3][200:] + x[3], *x[4:]]),
    "twice": lambda x: lined([*x[:3], x[3][:150] + x[3][:300] + x[3], *x[4:]]),
    "and another behind the whole one": lambda x: lined([*x[:3], x[3][:150] + x[3] + x[4][:99], *x[4:]]),
    "with a word of a shell before it": lambda x: lined([*x[:3], b"cat: write error" + x[3], *x[4:]]),
}


@pytest.mark.parametrize("damage", STUBS.values(), ids=STUBS)
def test_a_whole_record_behind_a_cut_one_is_read(damage: Callable[[Any], bytes], tmp_path: Path) -> None:
    """The line is counted, as something of it is lost."""
    plain = five()
    expected = histories(read(lined(plain), tmp_path))
    session = read(damage(plain), tmp_path)
    assert histories(session) == expected
    assert isinstance(session, Session) and session.damaged == 1


def test_a_record_of_twenty_megabytes_is_read_behind_a_cut_one(tmp_path: Path) -> None:
    """In time that grows with the line alone."""
    log = Log()
    log.user("go")
    log.answer("m1", call("c1"))
    log.result("c1", [said("x" * 1000 + '{"type":"user"}')] * 20_000)
    log.answer("m2", said("done"))
    lines = [line.encode() for line in log.lines]
    expected = histories(read(lined(lines), tmp_path))
    assert len(lines[2]) > 20 * 10**6
    session = read(cut(lines, 2, 15 * 10**6), tmp_path)
    assert histories(session) == expected
    assert isinstance(session, Session) and session.damaged == 1


def test_what_is_nested_in_a_damaged_record_is_no_record(tmp_path: Path) -> None:
    """A sub-agent's progress holds whole entries of another thread; they are not taken out of their places."""
    inner = json.loads(five()[1]) | {"uuid": "nested"}
    outer = json.dumps({"parentUuid": None, "type": "progress", "data": {"message": inner}, "uuid": "outer"}).encode()
    for line in (outer[:-1], outer[1:], outer.replace(b'"uuid": "outer"', b'"uuid": x'), b"x" + outer[20:]):
        salvage = Salvage(line)
        assert [value for value in salvage if isinstance(value, dict)] == [] and salvage.is_lossy, line


@pytest.mark.parametrize(
    "line", [b"{" * 10**6, b'{"a":' * 10**6, b'{"a":[' * 10**5 + b"]", b'{"' * 10**6, b'{"a":1}x' * 10**5]
)
def test_a_line_made_to_be_slow_is_given_up(line: bytes) -> None:
    """Looking for records costs no more than reading the line a few times."""
    salvage, start = Salvage(line), time.process_time()
    assert sum(1 for _ in salvage) <= 1 and salvage.is_lossy
    assert time.process_time() - start < 20  # under a second each; without a bound, hours


def test_a_run_of_nul_inside_a_text_is_counted_and_the_record_read(tmp_path: Path) -> None:
    """The request was made; a part of its text is lost."""
    lines = five()
    at = lines[3].index(b"zitiert")
    lines[3] = lines[3][:at] + bytes(30) + lines[3][at + 30 :]
    session = read(lined(lines), tmp_path)
    assert len(histories(session)) == REQUESTS
    assert isinstance(session, Session) and session.damaged == 1


def broken(lines: list[bytes], rng: random.Random) -> tuple[list[bytes], set[int]]:
    """The lines damaged at random, and the numbers of those that may have lost something."""
    places = list(range(len(lines)))
    lines, hurt = [*lines], set[int]()
    for _ in range(rng.randrange(1, 5)):
        n = rng.randrange(len(lines))
        match rng.choice(("flip", "cut", "twice", "move", "join", "nul")):
            case "flip":
                at = rng.randrange(max(1, len(lines[n])))
                flipped = bytearray(lines[n])
                if flipped:
                    flipped[at] ^= 1 << rng.randrange(8)
                lines[n] = bytes(flipped)
                hurt.add(places[n])
            case "cut":
                lines[n] = lines[n][: rng.randrange(max(1, len(lines[n])))]
                hurt.add(places[n])
            case "twice":
                to = rng.randrange(len(lines) + 1)
                lines.insert(to, lines[n])
                places.insert(to, places[n if n < to else n])
            case "move":
                line, place = lines.pop(n), places.pop(n)
                to = rng.randrange(len(lines) + 1)
                lines.insert(to, line)
                places.insert(to, place)
            case "join" if n + 1 < len(lines) and places[n] not in hurt:
                lines[n : n + 2] = [lines[n] + lines[n + 1]]
                if places[n + 1] in hurt:
                    hurt.add(places[n])
                del places[n + 1]
            case _:
                lines[n] = bytes(rng.randrange(50)) + lines[n]
    return lines, hurt


def uncut_requests(lines: list[bytes], hurt: set[int]) -> int:
    """Answers of the session none of whose lines is hurt."""
    answers: dict[str, bool] = {}
    for n, line in enumerate(lines):
        entry = json.loads(line)
        if entry["type"] == "assistant":
            name = entry["message"]["id"]
            answers[name] = answers.get(name, True) and n not in hurt
    return sum(answers.values())


@pytest.mark.parametrize("seed", range(100))
def test_damage_at_random_loses_only_the_requests_it_hits(seed: int, tmp_path: Path) -> None:
    """Bits flip, lines are cut, doubled, moved and joined: the reader gives a session, or a reason."""
    rng = random.Random(seed)
    plain = five()
    lines, hurt = broken(plain, rng)
    found = list(open_sessions(written(lined(lines), tmp_path)))
    sessions = [session for session in found if isinstance(session, Session)]
    kept = sum(session.requests for session in sessions)
    assert kept >= uncut_requests(plain, hurt), (found, sorted(hurt))
    for session in sessions:
        assert len(list(session.steps())) == session.requests
