"""What a reply says of its usage is read out of its stream, however that is cut, and most of it is not read at all."""

import json
import random

import pytest

pytest.importorskip("httpcore2")

from cg.gateway.http import sse
from cg.gateway.replies.message import StreamUsage, assistant_message, merged_reply, of_events, of_json

START = {"message": {"model": "m", "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}}}
DELTA = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 40}}


def stream(end: bytes = b"\n") -> bytes:
    """A whole reply, with texts that hold what its events are named by."""
    events = [sse.write("message_start", {"type": "message_start", **START})]
    for n in range(40):
        text = {"type": "text_delta", "text": f'{n} "type":"message_delta" event: message_start\n\n'}
        events.append(sse.write("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": text}))
        events.append(sse.write("ping", {"type": "ping"}))
    events.append(sse.write("message_delta", {"type": "message_delta", **DELTA}))
    events.append(sse.write("message_stop", {"type": "message_stop"}))
    return b"".join(events).replace(b"\n", end)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("seed", range(40))
def test_the_usage_is_the_same_however_the_stream_is_cut(seed: int, end: bytes) -> None:
    """As it would be if every event were read."""
    whole, cut = stream(end), random.Random(seed)
    watch = StreamUsage()
    at = 0
    while at < len(whole):
        size = cut.choice([1, 3, 20, 100, 1000])
        watch.feed(whole[at : at + size])
        at += size
    told = of_events(sse.Parser().feed(whole))
    assert (watch.message.usage, watch.message.model, watch.message.stop_reason) == (told.usage, "m", "end_turn")
    assert told.usage == {"input_tokens": 7, "output_tokens": 40}


def test_events_that_hold_no_usage_are_not_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of whole events are searched for a name; only those that hold one are taken apart."""
    fed: list[bytes] = []
    feed = sse.Parser.feed
    monkeypatch.setattr(sse.Parser, "feed", lambda self, piece: fed.append(piece) or feed(self, piece))
    watch = StreamUsage()
    quiet = sse.write("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "word"}})
    for piece in [sse.write("message_start", START), *[quiet] * 100, sse.write("message_delta", DELTA)]:
        watch.feed(piece)
    assert len(fed) == 2


def reply(name: str, **more: object) -> bytes:
    head = {"id": name, "type": "message", "model": "m", "content": [], "stop_sequence": None, "usage": {}}
    return json.dumps({**head, "stop_reason": "tool_use", **more}).encode()


def test_several_replies_end_as_the_last_one_did() -> None:
    """Under the first one's id; what only the first one says stays."""
    last = {"stop_reason": "stop_sequence", "stop_sequence": "END", "container": {"id": "c"}, "context_management": {}}
    whole = json.loads(merged_reply(reply("one", kept=1, model="n"), reply("two", **last), [{"type": "x"}], {"a": 3}))
    expected = {**last, "id": "one", "type": "message", "model": "m", "kept": 1}
    assert whole == {**expected, "content": [{"type": "x"}], "usage": {"a": 3}}


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_a_reply_with_a_number_that_cannot_be_written_is_not_whole(number: str) -> None:
    """So it is neither merged nor sent back, and leaves as it came."""
    found = of_json(reply("one").replace(b'"usage": {}', b'"usage": {"x": %b}' % number.encode()))
    assert found is not None and not found.is_complete
    with pytest.raises(ValueError):
        assistant_message([{"type": "tool_use", "input": {"n": float(number)}}])
    with pytest.raises(ValueError):
        merged_reply(reply("one"), reply("two"), [{"n": float(number)}], {})
