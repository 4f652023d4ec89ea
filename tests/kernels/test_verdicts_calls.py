"""What a decoder takes and what it refuses: labels, replies, a second call."""

import threading
import time
from typing import Any

import pytest
from verdict_replies import drop

from cg import _verdict_parser
from cg.verdicts import Action, Counter, Decoder, Reason, Status, decode


class Text(str):
    """A str that encodes itself in its own way."""

    def encode(self, *_args: Any, **_named: Any) -> bytes:
        return b"[]"


@pytest.mark.parametrize("make", [Text, str], ids=["subclass", "str"])
def test_a_subclass_of_str_is_text_whatever_it_holds(make: type[str]) -> None:
    """Lone surrogates included, and its own `encode` is not asked."""
    reply = make(f"\ud800[{drop(0)}]")
    decoder = Decoder([0])
    decoder.feed(reply)
    assert decode(reply, [0]).drops == decoder.finish().drops == (0,)


def test_labels_past_the_limit_are_not_listed_first() -> None:
    """Refused at the first one too many, however many more there are."""
    with pytest.raises(ValueError, match="65536"):
        decode("[]", range(10**12))


@pytest.mark.parametrize("labels", [[0, 0], [-1], [2**63], range(100_000)], ids=["twice", "negative", "huge", "many"])
def test_an_impossible_label_list_is_refused(labels: Any) -> None:
    """ValueError names the label and the limit."""
    with pytest.raises(ValueError, match=r"\d"):
        decode("[]", labels)


@pytest.mark.parametrize("labels", [[True], ["0"], [0.0], [None], 5], ids=repr)
def test_a_label_that_is_no_integer_is_refused(labels: Any) -> None:
    """TypeError, for a bool too."""
    with pytest.raises(TypeError):
        Decoder(labels)


@pytest.mark.parametrize("reply", [None, 5, ["[]"], bytearray(b"[]")], ids=repr)
def test_a_reply_is_text_or_bytes(reply: Any) -> None:
    """Anything else is a TypeError, whole and in pieces."""
    with pytest.raises(TypeError):
        decode(reply, [0])
    with pytest.raises(TypeError):
        Decoder([0]).feed(reply)


def test_many_labels_in_any_order() -> None:
    """Sparse, unsorted and more than a linear search likes."""
    labels = [7 * k + 1 for k in range(300)][::-1]
    found = decode("[" + ",".join(drop(k) for k in labels) + "]", labels)
    assert found.drops == tuple(sorted(labels)) and [v.i for v in found.verdicts] == labels
    assert decode(f"[{drop(2)},{drop(2**63 - 2)}]", [2**63 - 2]).drops == (2**63 - 2,)


def test_a_finished_decoder_takes_nothing_more() -> None:
    """ValueError, and the first result stands."""
    decoder = Decoder([0])
    decoder.feed(f"[{drop(0)}]")
    assert decoder.finish().drops == (0,)
    for call in (lambda: decoder.feed("x"), decoder.finish):
        with pytest.raises(ValueError, match="finished"):
            call()


def test_closed_sets_match_the_compiled_codes() -> None:
    """Every code has a name, in order."""
    assert tuple(Status) == _verdict_parser.STATUSES
    assert (None, *Reason) == _verdict_parser.REASONS
    assert ("", *Action) == _verdict_parser.ACTIONS
    assert tuple(Counter) == _verdict_parser.COUNTERS


def test_threads_feeding_one_decoder_are_told_apart() -> None:
    """Either a call is the only one, or it raises: never a torn state."""
    decoder, refused = Decoder([0]), []
    piece = "plain words " * 20_000

    def work() -> None:
        for _ in range(10):
            try:
                decoder.feed(piece)
            except RuntimeError:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decoder.feed(f"\n[{drop(0)}]")
    assert decoder.finish().drops == (0,)


def test_a_call_is_refused_while_another_is_at_work() -> None:
    """RuntimeError for whichever comes second; tried until two calls meet, which a busy machine may put off."""
    piece, refused, deadline = "[a, {b: 1} " * 300_000, [], time.monotonic() + 120

    def feed(decoder: Decoder, text: str) -> None:
        try:
            decoder.feed(text)
        except RuntimeError as error:
            refused.append(str(error))

    while not refused and time.monotonic() < deadline:
        decoder = Decoder([0])
        worker = threading.Thread(target=feed, args=(decoder, piece))
        worker.start()
        while worker.is_alive() and not refused:
            feed(decoder, "")
        worker.join()
    assert refused and "another thread" in refused[0]
