"""What a removal leaves behind: fixed texts, byte for byte."""

import json

from hypothesis import given
from hypothesis import strategies as st
from markers import find_markers

from cg.sweep.body.marker import (
    DECLARATION,
    EXPAND_TOOL,
    hint,
    would_shrink,
    written_text,
    written_token,
)
from cg.sweep.body.transcript import read


def test_known_answer():
    """Descriptor, marker, hint, one a line."""
    assert written_text("hello") == (
        "[tool output removed: kind=other lines=1 bytes=5]\n"
        "<<cg:2cf24dba5fb0a30e>>\n"
        "[call cg_expand with id 2cf24dba5fb0a30e to see it again; repeating the original call may not return it]"
    )


def test_declarations_are_fixed_bytes():
    """A changed byte breaks each cached prefix that holds it; tools are cached first."""
    assert DECLARATION == (
        b'{"name":"cg_expand","description":"Shows a tool output again, whole, by the 16-digit id that stands in its '
        b'place.","input_schema":{"type":"object","properties":{"id":{"type":"string","description":"The 16 hexadecimal '
        b'digits of the id"}},"required":["id"]}}'
    )
    tool = json.loads(DECLARATION)
    assert list(tool) == ["name", "description", "input_schema"]
    assert tool["name"] == EXPAND_TOOL
    assert json.dumps(tool, separators=(",", ":")).encode() == DECLARATION
    assert b"<<cg:" not in DECLARATION


def test_hint_and_declaration_say_only_how_to_ask():
    """Nothing tells the judge that a removal can be undone."""
    for text in (hint("0" * 16), DECLARATION.decode()):
        for word in ("undo", "restore", "recover", "revers", "safe", "nothing is lost"):
            assert word not in text.lower()


@given(st.text(alphabet=st.characters(codec=None)) | st.binary())
def test_written_tokens_are_ascii_json_and_the_same_each_time(content):
    """A pure function of the content that carries one marker of it, and no other byte of it."""
    token = written_token(content)
    assert token == written_token(content)
    assert token.isascii()
    text = json.loads(token)
    assert text == written_text(content)
    lines = text.split("\n")
    assert len(lines) == 3
    (key,) = find_markers(text)
    assert lines[1:] == [f"<<cg:{key}>>", hint(key)]


def test_str_and_its_bytes_leave_the_same():
    """A lone surrogate has a key too."""
    for content in ("x\ny", "é\ud800"):
        assert written_token(content) == written_token(content.encode("utf-8", "surrogatepass"))


def text_of(content, **how):
    body = {
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]}]
    }
    return read(json.dumps(body, **how).encode()).tool_texts[0]


def test_never_worse():
    """A replacement is made only if it is shorter on the wire and shorter once decoded."""
    token = written_token("x" * 50)
    assert not would_shrink(text_of("x" * 50), token)
    assert would_shrink(text_of("x" * 500), written_token("x" * 500))
    escaped = "é" * 50  # 300 bytes as ASCII JSON, 100 once decoded: the model would read more than before
    assert not would_shrink(text_of(escaped), written_token(escaped))
    size = len(json.loads(token))
    assert not would_shrink(text_of("x" * size), token)
    assert would_shrink(text_of("x" * (size + 4)), token)
