"""The compiled reader of bodies, held to json over recorded, generated and damaged bodies."""

import gc
import hashlib
import json
import os
import random
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
import transcript_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from cg.bodies import Scan, Stopped, TextToken, is_string_token, is_value
from cg.sweep.body.transcript import ToolText, Unreadable, read

WIRE = Path(__file__).parents[1] / "data" / "wire"
WAYS = (0, 1, 2)  # the best instructions, none, those of every such processor
TURNS = sorted(WIRE.glob("*/turn_*.json"))


def body_of(path: Path) -> bytes:
    body = json.loads(path.read_text("utf-8"))["body"]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def agree(body: bytes) -> bool:
    """True if reader and oracle both take the body and found the same, False if both refuse it; else it fails."""
    try:
        expected = oracle.read(body)
    except oracle.Refused:
        expected = None
    for ways in WAYS:
        try:
            scan = Scan(body, ToolText, ways)
            uses = scan.tool_uses()
            read(body)
        except (Stopped, Unreadable):
            # Stricter than json is allowed where a value is not read (max_tokens: "x"); more lenient never.
            if expected is not None:
                assert _refused_beyond_json(body)
            return False
        assert expected is not None, "the reader took what json or the rules refuse"
        found = [(t.message, t.block, t.tool_use_id, t.text, t.is_error) for t in scan.texts]
        assert found == expected.texts
        assert [body[t.start : t.end] for t in scan.texts] == [t.body[t.start : t.end] for t in scan.texts]
        assert [json.loads(body[t.start : t.end]) for t in scan.texts] == [row[3] for row in expected.texts]
        assert [t.content for t in scan.texts] == [row[3].encode("utf-8", "surrogatepass") for row in expected.texts]
        assert [t.sha256 for t in scan.texts] == [hashlib.sha256(t.content).hexdigest() for t in scan.texts]
        assert [t.has_marker for t in scan.texts] == ["<<cg:" in row[3] for row in expected.texts]
        assert [t.size_bytes for t in scan.texts] == [len(t.content) for t in scan.texts]
        calls = {k: (u.name, u.message, oracle.canonical(oracle.decode(u.arguments))) for k, u in uses.items()}
        assert calls == expected.uses
        assert list(scan.roles) == expected.roles
        assert sorted(scan.marks()) == sorted(expected.marks)
        pieces = [(kind, message, None if kind == "arguments" else text) for kind, message, text in scan.pieces()]
        assert pieces == expected.pieces
        assert scan.chain == expected.chain
        assert scan.head == expected.head
    return True


def _refused_beyond_json(body: bytes) -> bool:
    """True if a value at the top that Python reads beside the walk is another than these clients send."""
    top = dict(oracle.decode(body))
    limit = top.get("max_tokens")
    return not (isinstance(top.get("model"), str) and (limit is None or str(limit).isdigit()))


@pytest.mark.parametrize("path", TURNS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_recorded_body_reads_as_json_reads_it(path):
    """Texts, calls, marks, pieces and digests of real clients' bodies are those of the slow reader."""
    assert agree(body_of(path))


@pytest.mark.parametrize("path", TURNS[::9], ids=lambda p: f"{p.parent.name}-{p.stem}")
@pytest.mark.parametrize("indent,ascii_only", [(1, True), (None, True), (2, False)])
def test_spacing_and_escapes_change_no_digest(path, indent, ascii_only):
    """Digests are of what a body says, not of how its white space and escapes are written."""
    body = json.loads(path.read_text("utf-8"))["body"]
    other = json.dumps(body, ensure_ascii=ascii_only, indent=indent).encode()
    assert agree(other)
    one, two = read(body_of(path)), read(other)
    assert (one.chain, one.head) == (two.chain, two.head)
    assert [t.identity for t in one.tool_texts] == [t.identity for t in two.tool_texts]


def test_damaged_bodies_are_read_as_json_reads_them_or_refused():
    """Whatever single or double damage the reader accepts, json accepts with the same meaning; nothing crashes."""
    rng = random.Random(7)
    sources = [body_of(p) for p in TURNS if p.stat().st_size < 6000]
    snippets = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e5", b"-0", b"01", b"\\u0022", b"\\ud83d"]
    snippets += [
        b"\x00",
        b"\x1f",
        b"\x80",
        b"\xc3\xa9",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b" \n",
        b"NaN",
    ]
    taken = 0
    for _ in range(1500):
        body = bytearray(rng.choice(sources))
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(body))
            match rng.randrange(4):
                case 0:
                    body[at : at + rng.randrange(1, 4)] = b""
                case 1:
                    body[at:at] = rng.choice(snippets)
                case 2:
                    body[at] = rng.randrange(256)
                case _:
                    to = rng.randrange(len(body))
                    body[at:at] = body[to : to + rng.randrange(1, 40)]
        taken += agree(bytes(body))
    assert taken > 150


def test_a_body_cut_anywhere_is_refused():
    """No prefix of a body is a body."""
    body = body_of(WIRE / "langchain" / "turn_02.json")
    for end in range(len(body)):
        with pytest.raises(Stopped):
            Scan(body[:end], ToolText)


texts = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(["<<cg:", "\ud800x", '😀\n"\\/'])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
controls = st.sampled_from(
    [None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, {"ttl": "5m"}, {"type": "x"}]
)


def some(**optional):
    return st.fixed_dictionaries({}, optional=optional)


def merged(*parts):
    return st.tuples(*parts).map(lambda dicts: {k: v for d in dicts for k, v in d.items()})


def block(kind, **needed):
    fixed = st.fixed_dictionaries({"type": st.just(kind), **needed})
    return merged(fixed, some(cache_control=controls, extra=values)).flatmap(
        lambda d: st.permutations(list(d.items())).map(dict)
    )


text_blocks = block("text", text=texts)
images = block("image", source=values)
results = st.uuids().flatmap(
    lambda i: merged(
        block(
            "tool_result",
            tool_use_id=st.just(str(i)),
            content=texts | st.lists(text_blocks | images, max_size=3),
        ),
        some(is_error=st.booleans()),
    )
)
calls = st.uuids().flatmap(
    lambda i: block("tool_use", id=st.just(str(i)), name=texts, input=st.dictionaries(texts, values, max_size=3))
)
message = st.one_of(
    st.fixed_dictionaries(
        {"role": st.just("user"), "content": texts | st.lists(results | text_blocks | images, max_size=3)}
    ),
    st.fixed_dictionaries({"content": texts | st.lists(calls | text_blocks, max_size=3), "role": st.just("assistant")}),
    st.fixed_dictionaries({"role": st.just("system"), "content": texts, "cache_control": controls}),
)
bodies = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(message, max_size=4), "max_tokens": st.just(10)},
    optional={
        "system": texts | st.lists(text_blocks, max_size=3),
        "tools": st.lists(block("custom", name=texts), max_size=3),
        "cache_control": controls,
        "stop": values,
    },
)


@settings(max_examples=150, deadline=None)
@given(bodies, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r ")]), st.booleans())
def test_generated_bodies_read_as_json_reads_them(body, separators, ascii_only):
    """Any strings, numbers, key order, spacing and escapes."""
    text = json.dumps(body, ensure_ascii=ascii_only, separators=separators)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = json.dumps(body, separators=separators).encode()
    assert agree(raw)


@settings(max_examples=150, deadline=None)
@given(values)
def test_a_value_is_one_json_value(value):
    """is_value and is_string_token take exactly what json writes, and not with a byte more or less."""
    token = json.dumps(value).encode()
    assert is_value(token)
    assert is_string_token(token) == isinstance(value, str)
    assert not is_value(token + b",")
    assert not is_value(b" " + token)
    assert not is_string_token(token[:-1])


ONE = b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":%s}]}]}'


@pytest.mark.parametrize(
    "token,text",
    [
        (rb'"\u0041"', "A"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d"', "\ud83d"),
        (rb'"\ude00\ud83d"', "\ude00\ud83d"),
        (rb'"\ud83d\ud83d\ude00"', "\ud83d😀"),
        (rb'"\ud83d\n"', "\ud83d\n"),
        (rb'"\/\b\f\n\r\t\"\\"', '/\b\f\n\r\t"\\'),
        (rb'"\u0000\u001f\u007f"', "\0\x1f\x7f"),
        (b'""', ""),
        ('"é漢😀"'.encode(), "é漢😀"),
    ],
)
def test_escapes_decode_as_json_decodes_them(token, text):
    """A tool text is the decoded string, lone surrogates and all."""
    (found,) = Scan(ONE % token, ToolText).texts
    assert found.text == text
    assert agree(ONE % token)


@pytest.mark.parametrize(
    "opening", [b"<<cg:", rb"\u003c\u003ccg:", rb"\u003C<cg\u003a", rb"<\u003c\u0063g:", rb"<<<cg:"]
)
def test_a_marker_is_seen_in_every_spelling(opening):
    """Content that holds `<<cg:` in any JSON escape is known as such."""
    assert Scan(ONE % (b'"xx' + opening + b'12"'), ToolText).texts[0].has_marker
    assert not Scan(ONE % b'"<cg: < <cg:"', ToolText).texts[0].has_marker


@pytest.mark.parametrize("place", range(40))
@pytest.mark.parametrize("bad", [b"\x1f", b"\xff", b"\xed\xa0\x80", b"\\x", b"\\u12g4", b"\xe2\x82"])
def test_a_bad_byte_is_seen_wherever_it_stands(bad, place):
    """Vector steps miss no position: the bad byte is refused at each offset of a string."""
    token = b'"' + b"a" * place + bad + b"b" * (40 - place) + b'"'
    for ways in WAYS:
        with pytest.raises(Stopped):
            Scan(ONE % token, ToolText, ways)
        with pytest.raises(Stopped):
            Scan(b'{"x":%s,"messages":[]}' % token, ToolText, ways)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[]",
        b"null",
        b'{"messages":[]} x',
        b'\xef\xbb\xbf{"messages":[]}',
        '{"messages":[]}'.encode("utf-16"),
        b'{"messages":{}}',
        b'{"messages":null}',
        b'{"model":"m"}',
        b'{"messages":[],"messages":[]}',
        rb'{"messages":[],"message\u0073":[]}',
        b'{"messages":[],"a":1,"a":2}',
        b'{"messages":[],}',
        b'{"messages":[,]}',
        b'{"messages":["x"]}',
        b'{"messages":[{"role":"user"}]}',
        b'{"messages":[{"content":"x"}]}',
        b'{"messages":[{"role":"robot","content":"x"}]}',
        b'{"messages":[{"role":"user","content":null}]}',
        b'{"messages":[{"role":"user","content":[{}]}]}',
        b'{"messages":[{"role":"user","role":"user","content":"x"}]}',
        b'{"messages":[{"role":"user","content":[{"type":"text"}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":1,"content":"x"}]}]}',
        ONE % b"7",
        ONE % b'["x"]',
        b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":"x"}]}]}',
        b'{"messages":[],"x":' + b"[" * 193 + b"]" * 193 + b"}",
        b'{"messages":[],"x":' + b"1" * 4001 + b"}",
        b'{"messages":[],"tools":{}}',
        b'{"messages":[],"cache_control":"x"}',
        b'{"messages":[],"max_tokens":"x"}',
        b'{"messages":[],"model":1}',
        b'{"messages":[],"thinking":{"type":"enabled","budget_tokens":1.5}}',
        b'{"messages":[],"thinking":{"type":"enabled","type":"x"}}',
    ],
)
def test_what_cannot_be_understood_is_refused(body):
    """Junk, duplicates, wrong types, depth and overlong numbers are Unreadable."""
    with pytest.raises(Unreadable):
        read(body)


def test_depth_bombs_cost_nothing():
    """A megabyte of brackets is refused at the limit, whether it closes or not."""
    for bomb in (b"[" * 10**6, b'{"a":' * 200_000, b"[" * 192 + b"]" * 192):
        body = b'{"x":' + bomb
        with pytest.raises(Unreadable, match="byte"):
            read(body)
    assert read(b'{"messages":[],"x":' + b"[" * 192 + b"]" * 192 + b"}").n_messages == 0


def test_rows_are_bounded():
    """More messages than the API takes are refused before they fill the memory."""
    many = b",".join([b'{"role":"user","content":""}'] * 200_001)
    with pytest.raises(Unreadable, match="more parts"):
        read(b'{"messages":[' + many + b"]}")
    with pytest.raises(Unreadable, match="more parts"):
        read(b'{"messages":[],' + b",".join(b'"%d":1' % i for i in range(300)) + b"}")


def test_messages_hold_no_content():
    """What a refusal says holds nothing of the body."""
    with pytest.raises(Unreadable) as refused:
        read(b'{"messages":[{"role":"user","content":"SECRET\x01"}]}')
    assert "SECRET" not in str(refused.value)
    assert "control character" in str(refused.value)


def test_a_scan_wants_bytes_and_its_own_kind_of_text():
    """Types are checked before anything is read."""
    for wrong in ("{}", None, bytearray(b"{}")):
        with pytest.raises(TypeError):
            Scan(wrong, ToolText)
    with pytest.raises(TypeError):
        Scan(b'{"messages":[]}', str)
    with pytest.raises(IndexError):
        Scan(b'{"messages":[]}', TextToken).span(0)


def conversation(texts, said=lambda i: "Reading."):
    """A body of one call and one result a text."""
    messages = [{"role": "user", "content": "Go."}]
    for i, text in enumerate(texts):
        call = {"type": "tool_use", "id": f"toolu_{i}", "name": "Read", "input": {"n": i}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": said(i)}, call]})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{i}", "content": text}
        messages.append({"role": "user", "content": [result]})
    return {"messages": messages, "tools": [{"name": "Read"}], "system": "s"}


@pytest.mark.parametrize("unit", ["x", "\n", "é", '\\"'], ids=["plain", "escape", "two bytes", "escapes in a row"])
def test_digests_are_right_at_every_size_around_a_block(unit):
    """Each size from nothing to four blocks, in one body, so that long and short ones are hashed side by side."""
    body = conversation([unit * size for size in random.Random(3).sample(range(260), 260)])
    assert agree(json.dumps(body, ensure_ascii=False).encode())


def test_escapes_are_decoded_wherever_they_stand_in_a_step():
    """Runs of backslashes, quotes and letters of all lengths at all places, long and short texts, by all ways."""
    rng = random.Random(11)
    pieces = ["\\", "\\\\", '"', "\n", "\t", "\r", "n", "t", "/", "\b", "\f", "\x01", "é", "漢", "\ud800", "😀"]
    for _ in range(400):
        few = rng.sample(pieces, rng.randrange(1, 5))
        text = "".join(rng.choice([*few, "a" * rng.randrange(70)]) for _ in range(rng.randrange(200)))
        for ascii_only in (True, False):
            token = json.dumps(text, ensure_ascii=ascii_only).replace("/", rng.choice(["/", "\\/"]))
            raw = token.encode("utf-8", "surrogatepass")
            if b"\xed\xa0\x80" in raw:
                continue  # a lone surrogate stands only in an escape
            for ways in WAYS:
                (found,) = Scan(ONE % raw, ToolText, ways).texts
                assert found.text == text
                assert found.sha256 == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.parametrize("order", [("tools", "system", "messages"), ("messages", "system", "tools")])
def test_a_body_of_many_batches_reads_like_a_small_one(order):
    """Text is let go of as it is hashed: whatever stands where, and however large a message is."""
    rng = random.Random(5)
    sizes = [rng.choice((0, 10, 3_000, 70_000, 400_000)) for _ in range(24)]
    texts = ["".join(rng.choices(["word ", "\n", '"', "漢", "😀"], k=size // 3)) for size in sizes]
    body = conversation(texts, lambda i: "it is so\n" * rng.choice((1, 40_000)))
    assert agree(json.dumps({key: body[key] for key in order}, ensure_ascii=False).encode())


def test_text_in_another_script_is_read_like_ascii_up_to_its_first_fault():
    """All kinds of characters at all places of a vector, whole and with a bad byte: refused exactly if Python refuses."""
    rng = random.Random(9)
    kinds = ["a", "é", "߿", "ࠀ", "漢", "\uffff", "😀", "\U0010ffff", "\u0080", "\ud7ff", "\ue000"]
    bad = [b"\x80", b"\xbf", b"\xc0", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xf0\x8f\xbf\xbf"]
    bad += [b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xe6\xbc", b"\xf0\x9f\x98", b"\xc3"]
    seen = [0, 0]
    for _ in range(3000):
        raw = "".join(rng.choices(kinds, k=rng.randrange(1, 60))).encode()
        if rng.random() < 0.6:
            at = rng.randrange(len(raw) + 1)
            raw = raw[:at] + rng.choice([*bad, bytes([rng.randrange(128, 256)])]) + raw[at:]
        try:
            raw.decode()
        except UnicodeDecodeError:
            is_right = False
        else:
            is_right = True
        seen[is_right] += 1
        assert is_string_token(b'"' + raw + b'"') == is_right, raw
        for ways in WAYS:
            try:
                (text,) = Scan(ONE % (b'"\\n' + raw + b'"'), ToolText, ways).texts
            except Stopped as stopped:
                assert not is_right and "is not UTF-8" in str(stopped)
            else:
                assert is_right and text.content == b"\n" + raw
    assert min(seen) > 500


def test_a_fingerprint_is_of_all_that_is_asked():
    """Spacing and escapes do not count; a mark, another member, a word or a tool do."""
    body = {"model": "m", "max_tokens": 10, "stream": True, **conversation(["one", "two"])}
    same = [json.dumps(body), json.dumps(body, indent=2), json.dumps(body, separators=(",", ":"))]
    assert len({Scan(text.encode(), ToolText).fingerprint for text in same}) == 1
    marked = json.loads(json.dumps(body))
    marked["messages"][-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    earlier = json.loads(json.dumps(body))
    earlier["messages"][-2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    others = [
        body,
        marked,
        earlier,
        {**body, "stream": False},
        {**body, "max_tokens": 11},
        {**body, "system": "t"},
        {**body, "tools": [{"name": "Write"}]},
        {**body, "top_k": 3},
        {**body, "messages": body["messages"][:-1]},
        {**body, **conversation(["one", "2"])},
    ]
    assert len({Scan(json.dumps(other).encode(), ToolText).fingerprint for other in others}) == len(others)


@pytest.mark.parametrize("style", ["tool texts", "one tool text", "prose", "one prose", "escapes", "another script"])
def test_reading_takes_less_memory_than_the_body(style):
    """Whatever the body is made of: nothing is reserved for the worst case."""
    size = 3_000_000
    texts, said = {
        "tool texts": (["x = 1\n" * (size // 600)] * 100, lambda i: "-"),
        "one tool text": (["x = 1\n" * (size // 6)], lambda i: "-"),
        "prose": ([""] * 100, lambda i: "It is so. " * (size // 1000)),
        "one prose": ([""], lambda i: "It is so. " * (size // 10)),
        "escapes": (["\n" * (size // 200)] * 100, lambda i: "-"),
        "another script": (["漢字\n" * (size // 800)] * 100, lambda i: "-"),
    }[style]
    body = json.dumps(conversation(texts, said), ensure_ascii=False).encode()
    tracemalloc.start()
    try:
        read(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (1.6 if style.startswith("one ") else 0.4) * len(body)


def test_nothing_leaks():
    """Reading and refusing leave no object and no row behind."""
    body = body_of(WIRE / "litellm" / "turn_06.json")
    bad = body[:-1]

    def traced(times):
        for _ in range(times):
            Scan(body, ToolText).tool_uses()
            try:
                Scan(bad, ToolText)
            except Stopped:
                continue
            raise AssertionError("a cut body was read")
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = traced(20)
        assert traced(100) - before < 4096
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") == "sanitize", reason="a sanitizer holds freed memory back")
def test_rows_are_freed():
    """The rows of the walk are the C library's, so the process is asked: two thousand readings, no growth."""
    resource = pytest.importorskip("resource", reason="the size of a process is read through it")
    body = body_of(WIRE / "litellm" / "turn_16.json")

    def largest(times):
        for _ in range(times):
            Scan(body, ToolText)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = largest(50)  # kilobytes on Linux, bytes on macOS; the rows of one reading are some 10 kB
    assert largest(2000) - before < 4096 * (1024 if sys.platform == "darwin" else 1)


def test_threads_read_one_body_alike():
    """Eight threads over one body find the same; nothing is shared but the bytes."""
    body = body_of(WIRE / "claude_code" / "turn_18.json")
    found = []

    def work():
        for _ in range(10):
            found.append((read(body).chain, tuple(t.sha256 for t in read(body).tool_texts)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert len(set(found)) == 1
