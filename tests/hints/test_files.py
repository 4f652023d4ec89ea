"""--query: a document a file or a line, with the limits and the refusals of a request."""

import json
from pathlib import Path
from typing import Any

import pytest

from cg.hints.refusal import Refusal
from cg.hints.shell.files import read_fields


def candidates(result: Any) -> list[Any]:
    assert (result.returncode, result.stderr) == (0, b"")
    return list(json.loads(result.stdout)["candidates"])


def error(result: Any) -> tuple[str, str]:
    """(code, path) of a refused run."""
    assert (result.returncode, result.stdout) == (2, b"")
    fault = json.loads(result.stderr)["error"]
    return fault["code"], fault["path"]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Three tools a line, in the field names of a protocol for tools."""
    rows = [
        {"name": "get_user_name", "description": "reads a profile", "inputSchema": {"properties": {"uid": {}}}},
        {"name": "sendMail", "description": "sends a letter", "tags": ["post"]},
        {"name": "clock", "description": "tells the hour"},
    ]
    path = tmp_path / "tools.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_files_are_documents_with_their_path_as_id_and_name(cg_hints: Any, tmp_path: Path) -> None:
    for name, text in (("user_cache.py", "keeps pages"), ("b.txt", "user user"), ("c.bin", "\0\xff")):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    found = candidates(cg_hints("--query", "user cache", "--analyzer", "code", *names))
    assert sorted(c["id"] for c in found) == names and found[0]["id"].endswith("user_cache.py")
    assert found[2]["bm25_score"] == 0 and len(candidates(cg_hints("--query", "user", "--limit", "1", *names))) == 1
    table = cg_hints("--query", "pages", "--table", *names)
    assert table.stdout.decode().count("\n") == 4 and float(table.stdout.split(b"\n")[1].split()[-1]) > 0


def test_lines_are_documents_by_the_fields_that_are_named(cg_hints: Any, tools: Path) -> None:
    fields = "id=name,text=description+inputSchema+tags"
    assert error(cg_hints("--query", "uid", str(tools))) == ("missing_field", f"{tools}:1")
    for query, best in (("uid", "get_user_name"), ("user", "get_user_name"), ("post", "sendMail"), ("hours", "clock")):
        assert candidates(cg_hints("--query", query, "--fields", fields, str(tools)))[0]["id"] == best
    lines = b'{"id": 7, "text": ["a", "b"]}\n{"id": "x", "text": null, "name": "b b"}\n'
    found = candidates(cg_hints("--query", "b", stdin=lines))
    assert [c["id"] for c in found] == ["x", "7"] and found[1]["bm25_score"] > 0
    assert found == candidates(cg_hints("--query", "b", "-", stdin=lines))


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        (b'{"id": "a", "text": ""}\n{"id": "a", "text": ""}', "repeated_id", 2),
        (b"[]", "wrong_type", 1),
        (b"\n{", "invalid_json", 2),
        (b"[" * 100_000, "invalid_json", 1),
        (b'{"id": "\xff"}', "invalid_utf8", 1),
        (b'{"id": "a"}', "missing_field", 1),
        (rb'{"id": "a", "text": "\ud800"}', "lone_surrogate", 1),
        (rb'{"id": ["\udc00"], "text": ""}', "lone_surrogate", 1),
        (b'{"id": "a", "text": "' + b"x" * (2 << 20) + b'x"}', "text_too_large", 1),
        (b"x" * (5 << 20), "text_too_large", 1),
        (b"".join(b'{"id": %d, "text": ""}\n' % i for i in range(4097)), "too_many_documents", 4097),
    ],
)
def test_a_bad_line_is_named(cg_hints: Any, lines: bytes, code: str, line: int) -> None:
    assert error(cg_hints("--query", "q", stdin=lines)) == (code, f"-:{line}")


def test_the_limits_of_a_request_hold(cg_hints: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (2 << 20))
    assert error(cg_hints("--query", "q", str(tmp_path / "a")))[0] == "text_too_large"
    assert error(cg_hints("--query", "q" * 8193)) == ("query_too_large", "--query")
    assert error(cg_hints("--query", "q", stdin=b"\n")) == ("no_documents", "")
    assert error(cg_hints("--query", "q", str(tmp_path))) == ("usage", str(tmp_path))


def test_what_is_not_named_keeps_its_own_field() -> None:
    assert read_fields(None) == {"id": ["id"], "name": ["name"], "text": ["text"]}
    assert read_fields("text=a+b") == {"id": ["id"], "name": ["name"], "text": ["a", "b"]}
    for wrong in ("", "text", "text=", "=a", "body=a", "text=a,,id=b"):
        with pytest.raises(Refusal, match="--fields"):
            read_fields(wrong)
