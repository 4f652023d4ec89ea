"""Every mark of a body gets one lifetime; all its other bytes are the client's."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.sweep.body.splice import set_lifetime, splice
from cg.sweep.body.transcript import read

MARKS = [
    '{"type":"ephemeral"}',
    '{ "type" : "ephemeral" , "ttl" : "1h" }',
    '{"ttl":"5m","type":"ephemeral"}',
    '{"type":"ephemeral","ttl":null}',
    '{"type":"ephemeral","scope":"global"}',
    r'{"type":"ephemeral","\u0074tl":"\u0031h"}',
]


def body(top: str, tool: str, system: str, block: str, inner: str, message: str) -> bytes:
    """A mark in each place that takes one, and text that looks like one."""
    text = r'"\"cache_control\":{\"type\":\"ephemeral\",\"ttl\":\"1h\"}"'
    return (
        f'{{"model":"m","cache_control": {top},"tools":[{{"name":"t","cache_control":{tool}}}],'
        f'"system":[{{"type":"text","text":"s","cache_control":{system}}}],"messages":['
        f'{{"role":"user","cache_control":{message},"content":[{{"type":"text","text":{text},"cache_control":{block}}}]}},'
        f'{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"t","input":{{"cache_control":{inner}}}}}]}},'
        f'{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":['
        f'{{"type":"text","text":{text},"cache_control":{inner}}}]}}]}}]}}'
    ).encode()


def with_lifetime(value: Any, ttl: str, *, inside_arguments: bool = False) -> Any:
    """The slow way: decoded, each mark with the lifetime; what a call was given is data."""
    if isinstance(value, list):
        return [with_lifetime(item, ttl) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "tool_use":
        return value
    found = {key: with_lifetime(item, ttl) for key, item in value.items()}
    mark = found.get("cache_control")
    if mark is not None:
        asks = mark.get("ttl") is not None
        found["cache_control"] = {**mark, "ttl": ttl} if asks or ttl == "1h" else mark
    return found


@given(marks=st.lists(st.sampled_from(MARKS), min_size=6, max_size=6), ttl=st.sampled_from([300, 3600]))
def test_all_marks_have_the_lifetime_and_nothing_else_differs(marks: list[str], ttl: int) -> None:
    """In tools, system, messages, blocks, results and at the top; arguments and texts are no marks."""
    sent = body(*marks)
    left = splice(sent, set_lifetime(read(sent), ttl))
    assert json.loads(left) == with_lifetime(json.loads(sent), "1h" if ttl == 3600 else "5m")
    assert {mark[3] for mark in read(left).scan.marks()} == {ttl}
    assert set_lifetime(read(left), ttl) == []


@pytest.mark.parametrize(
    "mark", ["", ',"cache_control":{"type":"ephemeral","ttl":"2h"}', ',"cache_control":{"type":"x"}']
)
def test_a_body_without_a_known_lifetime_is_refused(mark: str) -> None:
    """What its marks say is not understood, or there is none."""
    sent = b'{"model":"m","messages":[{"role":"user","content":"a"}]%s}' % mark.encode()
    with pytest.raises(ValueError, match="not understood"):
        set_lifetime(read(sent), 3600)


def test_marks_of_adopted_messages_are_where_they_stand() -> None:
    """A body that goes on from an earlier one is edited as if it had been read alone."""
    sent = body(*MARKS)
    longer = sent[:-2] + b',{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"c",'
    longer += b'"cache_control":{"type":"ephemeral"}}]}]}'
    adopted = read(longer, before=read(sent).scan)
    assert adopted.scan.adopted and set_lifetime(adopted, 3600) == set_lifetime(read(longer), 3600)
    assert adopted.fingerprint == read(longer).fingerprint


def test_white_space_in_a_mark_is_no_part_of_what_is_asked() -> None:
    """The fingerprint that tells a retry has the places of marks and their lifetimes, not their bytes."""
    spaced, plain = '{ "type": "ephemeral" }', '{"type":"ephemeral"}'
    form = b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":%s}]}]}'
    prints = {read(form % mark.encode()).fingerprint for mark in (spaced, plain)}
    assert len(prints) == 1
    assert read(form % b'{"type":"ephemeral","ttl":"1h"}').fingerprint not in prints
