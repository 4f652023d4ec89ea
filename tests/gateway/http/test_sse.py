"""Events are cut out of a stream without changing a byte, however its pieces fall."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.gateway.http import sse

ENDS = [b"\n\n", b"\r\n\r\n", b"\r\r"]
LINES = st.sampled_from(
    [b"event: ping", b"data: {}", b'data: {"type":"ping"}', b": note", b"id: 7", b"data: caf\xc3\xa9"]
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], bytes]:
    """Events with their ends, and a beginning of one more."""
    end = draw(st.sampled_from(ENDS))
    line = end[: len(end) // 2]
    events = [line.join(draw(st.lists(LINES, min_size=1, max_size=4))) + end for _ in range(draw(st.integers(0, 6)))]
    return events, draw(st.sampled_from([b"", b"data: ha", b"event: x" + line]))


@given(streams(), st.lists(st.integers(0, 400), max_size=12))
def test_events_are_whole_whatever_the_pieces(stream: tuple[list[bytes], bytes], cuts: list[int]) -> None:
    """The same events come out of any cutting, and together with the rest they are what went in."""
    events, rest = stream
    whole = b"".join(events) + rest
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    parser, found = sse.Parser(), []
    for start, end in zip(edges, edges[1:], strict=False):
        found += [event.raw for event in parser.feed(whole[start:end])]
    assert found == events and parser.rest() == rest


@pytest.mark.parametrize(
    ("raw", "name", "data"),
    [
        (b'event: ping\ndata: {"type": "ping"}\n\n', "ping", {"type": "ping"}),
        (b'data: {"a":\ndata: 1}\n\n', "", {"a": 1}),
        (b"event:x\r\ndata:[1]\r\n\r\n", "x", {}),
        (b"event: x\ndata: {nonsense\n\n", "x", {}),
        (b": only a note\n\n", "", {}),
        (b'\xef\xbb\xbfdata: {"a": 1}\n\n', "", {"a": 1}),
    ],
)
def test_fields_are_read_as_the_format_says(raw: bytes, name: str, data: object) -> None:
    """Several data lines are one text; one space behind the colon is not part of a value."""
    event = sse.SseEvent(raw)
    assert (event.name, event.data()) == (name, data)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"event: message_stop\ndata: {}\n\n", b"message_stop"),
        (b"event: message_stop\r\ndata: {}\r\n\r\n", b"message_stop"),
        (b'data: {"type":"content_block_start"}\n\n', b"content_block_start"),
        (b": nothing\n\n", b""),
        (b'id: 7\nevent: message_stop\ndata: {"message":{"type":"message"},"type":"x"}\n\n', b"message_stop"),
        (b': kept\rdata: {"message":{"type":"x"}}\revent:message_stop\r\r', b"message_stop"),
        (b'data: {"message":{"type":"message"},"type":"message_start"}\n\n', b"message_start"),
        (b'data:{\ndata: "type": "message_stop"}\n\n', b"message_stop"),
        (b'\xef\xbb\xbfevent: message_start\ndata: {"message":{"type":"message"}}\n\n', b"message_start"),
        (b'data: {"text":"\\nevent: message_stop","type":"ping"}\n\n', b"ping"),
        (b'data: {"type":7}\n\n', b""),
    ],
)
def test_the_type_is_found_wherever_it_stands(raw: bytes, kind: bytes) -> None:
    """Also where the sender leaves the event field out, or puts another field, or another member, in front of it."""
    assert sse.type_of(raw) == kind


def test_what_is_written_can_be_read() -> None:
    """Half a pair of surrogates stays an escape, so that the bytes are always UTF-8."""
    data = {"type": "x", "text": "\ud800 é\n"}
    raw = sse.write("x", data)
    assert sse.SseEvent(raw).data() == data and raw.decode("utf-8")
    assert json.loads(raw.split(b"data: ")[1]) == data


def test_a_number_beyond_all_others_is_written_as_one() -> None:
    """Infinity is a word of ours alone; in a text it stays."""
    raw = sse.write("x", {"a": [float("inf"), -float("inf"), float("nan")], "b": 'Infinity, \\" NaN'})
    text = raw.split(b"data: ")[1]
    assert text == b'{"a":[1e999,-1e999,null],"b":"Infinity, \\\\\\" NaN"}\n\n'
    assert json.loads(text)["a"][0] == float("inf")


def test_an_endless_event_is_given_up() -> None:
    """Memory is bounded; the bytes that were held are still there to be passed on."""
    parser = sse.Parser()
    piece = b"x" * (sse.MAX_EVENT_BYTES // 4)
    with pytest.raises(sse.EventTooLong):
        for _ in range(5):
            assert list(parser.feed(piece)) == []
    assert len(parser.rest()) == 5 * len(piece)
