"""The verdict decoder against its vectors, its slow twin, and hostile input."""

import base64
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import pytest
import verdict_oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from cg import _verdict_parser
from cg.verdicts import Action, Counter, Decoder, Reason, Status, decode

VECTORS = sorted((Path(__file__).parent / "data" / "verdicts").glob("*.json"))
# Ends tried a vector: the slow decoder takes a second for one of three thousand brackets.
CUTS = 60 if os.environ.get("CG_LONG") == "1" else 4 if os.environ.get("HYPOTHESIS_PROFILE") == "sanitize" else 15


def reply_of(spec: Any) -> bytes:
    if isinstance(spec, str):
        return spec.encode()
    if "base64" in spec:
        return base64.b64decode(spec["base64"])
    return "".join(part["text"] * part.get("repeat", 1) for part in spec["parts"]).encode()


def in_pieces(reply: bytes, labels: list[int], cuts: list[int]) -> dict[str, Any]:
    decoder = Decoder(labels)
    for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
        decoder.feed(reply[start:end])
    return decoder.finish().to_dict()


def drop(label: object, **more: object) -> str:
    return json.dumps({"i": label, "needed_by": "none", "quote": "", "verdict": "drop", **more})


def keep(label: object) -> str:
    return json.dumps({"i": label, "needed_by": "b", "quote": "still open", "verdict": "keep"})


def drops(reply: str | bytes, labels: Any = (0, 1, 2)) -> tuple[int, ...]:
    return decode(reply, labels).drops


class Text(str):
    """A str that encodes itself in its own way."""

    def encode(self, *_args: Any, **_named: Any) -> bytes:
        return b"[]"


@pytest.fixture(params=[0, 1, 2], ids=["plain", "vector", "wide"])
def scan(request: pytest.FixtureRequest) -> Any:
    """Every scan path that a processor may have."""
    _verdict_parser.force_scan(request.param)
    yield request.param
    _verdict_parser.force_scan(2)


def test_the_vectors_are_all_here() -> None:
    """An empty folder must not pass for a green one."""
    assert len(VECTORS) == 71


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_vector_reads_as_expected_however_it_is_cut(path: Path) -> None:
    """Whole, byte by byte and in random pieces the result is the vector's."""
    case = json.loads(path.read_text("utf-8"))
    reply, labels, expected = reply_of(case["reply"]), case["offered_labels"], case["expected"]
    got = decode(reply, labels).to_dict()
    rng = Random(path.stem)
    ways = [sorted(rng.choices(range(len(reply) + 1), k=k)) for k in (1, 3, 17)]
    if len(reply) < 10_000:
        ways.append(list(range(len(reply))))
    for cuts in ways:
        assert in_pieces(reply, labels, cuts) == got
    assert verdict_oracle.decode(reply, labels) == got
    if expected["reason"] is None:
        expected = {**expected, "reason": got["reason"]}
    assert got == expected


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_vector_cut_anywhere_reads_as_the_slow_decoder_does(path: Path) -> None:
    """A reply may end at any byte; CUTS of them, other ones for each vector."""
    case = json.loads(path.read_text("utf-8"))
    reply, labels = reply_of(case["reply"]), case["offered_labels"]
    ends = sorted(Random(path.stem).sample(range(min(len(reply), 4000)), min(len(reply), CUTS)))
    for end in ends:
        assert decode(reply[:end], labels).to_dict() == verdict_oracle.decode(reply[:end], labels), end


TOKENS = st.sampled_from(
    ["[", "]", "{", "}", ",", ":", '"', "'", "\u201c", "\u201d", "\\", "...", "\u2026", "<", "<think>", "</think>", "//", "/*", "*/"]
    + [" #", "\n", " ", '"i":', '"verdict":', '"needed_by":', '"quote":', '"drop"', '"keep"', '"none"', "null", "0", "1", "x"]
    + ["[]", "[ ]", "- [ ]", "[a]", "{x}", '["', "\u00e9", "\u3000", "\uff0c", "\ud800", "\\ud83d", "\x00", "Final:\n", "{'i':0,'verdict':'keep'}"]
    + ['{"i":0,"verdict":"drop"}', '{"i":1,"verdict":"drop","needed_by":"a"}', '[{"i":2,"verdict":"drop"}]', "[[[[" * 17]
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(TOKENS, max_size=25).map("".join), st.data())
def test_any_reply_reads_as_the_slow_decoder_reads_it(text: str, data: st.DataObject) -> None:
    """Whole and cut anywhere, in every detail."""
    labels, reply = [0, 1, 2], text.encode("utf-8", "surrogatepass")
    want = verdict_oracle.decode(text, labels)
    assert decode(text, labels).to_dict() == want
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    assert in_pieces(reply, labels, cuts) == want


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 2))
def test_any_bytes_read_as_the_slow_decoder_reads_them(noise: bytes, where: int) -> None:
    """Ill-formed UTF-8 in prose, in a string and between tokens."""
    reply = (
        b"%s[" + drop(0).encode() + b"]",
        b'[{"i":0,"quote":"%s","verdict":"keep"}]',
        b"[" + drop(0).encode() + b",%s]",
    )[where]
    reply = reply.replace(b"%s", noise)
    assert decode(reply, [0, 1]).to_dict() == verdict_oracle.decode(reply, [0, 1])


def test_scan_paths_agree(scan: int) -> None:
    """An opener or a quote is found at every offset of a vector, and past its end."""
    for lead in range(70):
        reply = "x" * lead + "[" + drop(0, note="y" * lead) + "]" + "z" * lead
        assert drops(reply) == (0,)


# The rules that stand between a reply and a wrong drop, one test each.


def test_the_last_array_answers() -> None:
    """A final array that leaves a label out takes back the draft's drop."""
    assert drops(f"[{drop(0)},{drop(1)}]\nNo:\n[{drop(0)}]") == (0,)


def test_a_keep_anywhere_vetoes_a_drop() -> None:
    """Lone objects, earlier arrays and objects behind a break can only object."""
    assert drops(f"[{keep(1)}]\n[{drop(0)},{drop(1)}]") == (0,)
    assert drops(f"{keep(1)} is sure.\n[{drop(0)},{drop(1)}]") == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] as {{"note":{keep(1)}}}') == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] as {{"note":{keep(1)} and so on') == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] then [{{"i":5,"quote":"a "b"}}] {keep(1)}') == (0,)


def test_a_refused_drop_vetoes_as_well() -> None:
    """A drop that names an obligation objects to the same label elsewhere."""
    refused = drop(1, needed_by="a")
    assert drops(f"[{refused}]\n[{drop(0)},{drop(1)}]") == (0,)


def test_labels_counted_from_one_drop_nothing() -> None:
    """max + 1 named and min not: every label is off by one."""
    found = decode(f"[{drop(1)},{drop(3)}]", [0, 1, 2])
    assert (found.drops, found.counters[Counter.LABEL_SHIFT]) == ((), 1)
    assert drops(f"[{drop(0)},{drop(3)}]") == (0,)


def test_a_template_neither_answers_nor_objects() -> None:
    """An array or a run that breaks off in an ellipsis shows the form only."""
    for dots in ("...", "\u2026", "<more>"):
        assert decode(f"[{drop(0)}, {dots}]", [0, 1]).status is Status.UNPARSEABLE
        assert drops(f"[{keep(0)}, {dots}]\n[{drop(0)}]") == (0,)


def test_nothing_inside_reasoning_is_read() -> None:
    """Closed, never opened or never closed: a draft in reasoning is no answer and no objection."""
    assert drops(f"<think>[{keep(0)}]</think>[{drop(0)}]") == (0,)
    assert drops(f"[{keep(0)}]</thinking>[{drop(0)}]") == (0,)
    assert drops(f"<THINK>[{drop(0)}]") == ()


def test_an_object_without_a_label_is_not_label_zero() -> None:
    """Absent, null or two different labels: counted, never acted on."""
    for label in ("", '"i":null,', '"i":0,"i":1,'):
        found = decode(f'[{{{label}"needed_by":"none","verdict":"drop"}}]', [0, 1])
        assert (found.drops, found.counters[Counter.NO_LABEL]) == ((), 1)


def test_a_drop_that_names_an_obligation_is_refused() -> None:
    """Whatever stands in needed_by except none, null and nothing."""
    for need in ("a", "nothing", "n/a", 0, False, [], {}):
        found = decode(f"[{drop(0, needed_by=need)}]", [0])
        assert (found.drops, found.verdicts[0].action) == ((), Action.REFUSED), need


def test_behind_a_break_a_clean_array_in_the_line_does_not_act() -> None:
    """It may come out of a string; one at the start of a line may answer."""
    broken = '[{"i":0,"verdict":"keep","quote":"it says "x'
    assert drops(f"{broken} [{drop(1)}]") == ()
    assert drops(f"{broken}\n  [{drop(1)}]") == (1,)


def test_an_array_inside_a_verdict_is_data() -> None:
    """Also when the verdict's own fields come after it."""
    assert drops(f'[{{"x":[{drop(1)}],"i":0,"verdict":"keep"}}]') == ()


def test_64_levels_are_read_and_65_give_up_the_outermost() -> None:
    """A limit of the candidate, not of the reply: what is inside is still found."""
    inner = f"[{drop(0)}]"
    for levels in (62, 63, 64, 65, 100, 1000):
        for lead in ("[", '{"a":[', "[[],"):
            reply = lead * levels + inner
            assert decode(reply, [0, 1]).to_dict() == verdict_oracle.decode(reply, [0, 1]), (lead, levels)


def test_a_bracket_behind_64_others_stands_where_it_is_written() -> None:
    """Behind a break it may answer if it is the first on its line, however many outer brackets were given up."""
    broken = '[{"i":0,"verdict":"keep","quote":"it says "x'
    for lead in ("[\n", '{"a":\n[', '["a",\n', "[\n "):
        reply = broken + "\n" + lead * 100 + f"[{drop(1)}]" + "]" * 40
        found = decode(reply, [0, 1]).to_dict()
        assert (
            found == verdict_oracle.decode(reply, [0, 1]) == in_pieces(reply.encode(), [0, 1], list(range(len(reply))))
        )
    assert decode(broken + "\n" + "[\n" * 100 + f"[{drop(1)}]" + "]" * 100, [0, 1]).drops == (1,)


LEADS = st.lists(
    st.sampled_from(['"[",', '"{",', "[],", "{},", "[", '{"a":', '"a"', "1,", "[1]", '"', "'", "//", "\n", "<", "</think>", ":", "]", "}"]
                    + [keep(1) + ",", drop(1) + ",", drop(0), f"[{drop(1)}],", '"{\'i\':1,\'verdict\':\'keep\'}",']),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(LEADS, st.sampled_from(["[", '{"a":', '{"verdict":', "[\n"]), st.integers(60, 70), st.data())
def test_what_stands_between_given_up_brackets_is_read_as_text(
    pieces: list[str], opener: str, times: int, data: st.DataObject
) -> None:
    """Whatever opens there, in strings and comments too, and however far it goes."""
    pieces.insert(data.draw(st.integers(0, len(pieces))), opener)
    tail = data.draw(st.sampled_from(["", "]" * 80, "]}" * 40, "x", '"', "...", f"\n[{drop(0)},{drop(1)}]"]))
    reply = f"[{drop(0)}]\n" + "".join(pieces) * times + tail
    want = verdict_oracle.decode(reply, [0, 1, 2])
    assert decode(reply, [0, 1, 2]).to_dict() == want
    assert in_pieces(reply.encode(), [0, 1, 2], sorted(data.draw(st.lists(st.integers(0, 600), max_size=9)))) == want


def test_rows_of_brackets_read_as_the_slow_decoder_reads_them() -> None:
    """Long rows have a short way; it must not show, wherever the row is cut."""
    for reply in (
        "[" * 300 + "]" * 40,
        '["a",' + "[" * 200 + drop(0) + "]",
        '[{"i":0,"x":' + "[" * 200 + f"{drop(0)}]]",
    ):
        want = verdict_oracle.decode(reply, [0, 1])
        assert decode(reply, [0, 1]).to_dict() == want
        assert in_pieces(reply.encode(), [0, 1], list(range(len(reply)))) == want


HOSTILE = [
    "[",
    "{",
    '["',
    '{"',
    '[{"a":',
    '[{"a":"x,',
    "</think",
    "<think>",
    "[//",
    '[""//',
    "['\\",
    "[\u201c",
    "\\",
    "\x00",
    "- [ ]",
]


@pytest.mark.parametrize("unit", [*HOSTILE, '{"verdict":[', drop(0) + "[", '["",//', "[[],"], ids=repr)
def test_a_hostile_reply_ends_in_a_result(unit: str) -> None:
    """Any size and shape: an answer or a reason, no exception, nothing dropped that is not said."""
    reply = unit * (200_000 // len(unit)) + f"\n[{keep(1)}]"
    assert 1 not in drops(reply)


def test_rereading_without_end_is_given_up() -> None:
    """A reply made to be read again and again is unparseable, not slow."""
    reply = '[""//' * 40_000 + "\n" + "1," * 400_000 + "x"
    assert decode(reply, [0]).reason is Reason.LIMIT


def test_lone_surrogates_in_text_read_as_damage() -> None:
    """A str that is no Unicode text is a reply like any other."""
    found = decode('[{"i":0,"quote":"a\ud800b","verdict":"drop"}]', [0])
    assert found.drops == (0,) and found.verdicts[0].quote == "a\ufffd\ufffd\ufffdb"


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


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.environ.get("HYPOTHESIS_PROFILE") == "sanitize",
    reason="bounds its address space, which sanitizers take whole",
)
def test_a_decoder_that_lost_a_piece_takes_nothing_more() -> None:
    """Without memory for a piece that holds a veto, what comes after it may not be read as if it had never been."""
    code = """if True:
        import resource
        from cg.verdicts import Decoder

        decoder = Decoder([0, 1])
        decoder.feed('[{"i": 0, "verdict": "drop"},')
        vetoes = b'{"i": 0, "verdict": "keep", "quote": "' + bytes(200 << 20) + b'"},'
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20),) * 2)
        for call in (lambda: decoder.feed(vetoes), lambda: decoder.feed('{"i": 1, "verdict": "keep"}]'), decoder.finish):
            try:
                print(call())
            except (MemoryError, ValueError) as error:
                print(type(error).__name__)
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["MemoryError", "ValueError", "ValueError"], ended.stderr


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


def test_a_decoder_holds_the_reply_and_little_more() -> None:
    """However large the reply is: the buffer has no room in proportion to it."""
    piece, pieces = b"plain words " * 5_000, 300
    tracemalloc.start()
    try:
        decoder = Decoder([0])
        for _ in range(pieces):
            decoder.feed(piece)
        size_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size_bytes < len(piece) * pieces + 32_768


def test_decoding_keeps_no_references() -> None:
    """Counts of the reply and of the allocated blocks return to where they were."""
    reply = "".join(["<think>x</think>", f"[{drop(0)},{keep(1)}]", "[[[" * 40, '["a"b', f"{drop(0)}{drop(1)}{{"])
    for _ in range(3):
        decode(reply, [0, 1])
    before, blocks = sys.getrefcount(reply), sys.getallocatedblocks()
    for _ in range(500):
        decode(reply, [0, 1])
        Decoder([0, 1]).feed(reply)
    assert sys.getrefcount(reply) == before
    assert sys.getallocatedblocks() - blocks < 100


def test_u32_one_object_a_line_is_an_answer_and_one_object_alone_is_none() -> None:
    """No bracket is needed where several lines are verdicts; a cut last line is left out; one bare object may be an
    example."""
    line = '{"i": %d, "needed_by": "none", "verdict": "drop"}'
    whole = decode("\n".join(line % i for i in range(3)), range(3))
    assert (whole.status, whole.drops) == ("ok", (0, 1, 2))
    cut = decode("\n".join(line % i for i in range(3))[:-10], range(3))
    assert (cut.status, cut.drops) == ("truncated", (0, 1))
    assert decode(line % 0, range(3)).status == "unparseable"


def test_d4_a_cut_reply_is_cut_whatever_brackets_stand_before_the_answer() -> None:
    """A closing bracket in the prose does not turn a lack of room into a reply in the wrong form."""
    cut = decode('By [a] and [b]: [{"i": 0, "needed_by": "none", "verdict": "drop"}, {"i": 1, "nee', range(2))
    assert (cut.status, cut.reason, cut.drops) == ("truncated", "cut", (0,))
