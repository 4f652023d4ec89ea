"""The strict request: every refusal at and past its edge, with its code and path."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, text

from cg.hints import limits
from cg.hints.refusal import Code, Refusal, field_path
from cg.hints.request import read_request


def refused(body: bytes | dict[str, Any]) -> tuple[str, str]:
    """(code, path) of the refusal."""
    with pytest.raises(Refusal) as caught:
        read_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert caught.value.message and len(caught.value.message) < 300
    return caught.value.code.value, caught.value.path


def accepted(body: dict[str, Any]) -> bool:
    read_request(json.dumps(body, ensure_ascii=False).encode())
    return True


def request_of(count: int, text: str = "") -> dict[str, Any]:
    return {"snapshot_id": "s", "query": "q", "documents": [{"id": str(i), "text": text} for i in range(count)]}


def test_a_request_is_read_whole(valid: dict[str, Any]) -> None:
    request = read_request(json.dumps(valid, indent=2).encode())
    assert request.snapshot_id == "s1" and request.query == "card payment"
    assert [document._asdict() for document in request.documents] == [d | {"name": ""} for d in valid["documents"]]
    assert request.hints is not None and request.hints.ids == ("cache",)


@pytest.mark.parametrize("hints", [None, "absent"])
def test_hints_may_be_absent_or_null(valid: dict[str, Any], hints: str | None) -> None:
    del valid["hints"]
    if hints is None:
        valid["hints"] = None
    assert read_request(json.dumps(valid).encode()).hints is None


BODY = b'{"snapshot_id":"s","query":"q","documents":[{"id":"a","text":"t"}]%s}'


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        (b"", "invalid_json", ""),
        (b"  \n", "invalid_json", ""),
        (b"{", "invalid_json", ""),
        (b"\xef\xbb\xbf" + BODY % b"", "invalid_json", ""),
        (BODY % b"" + b"x", "invalid_json", ""),
        (BODY % b"" + BODY % b"", "invalid_json", ""),
        (BODY % b",", "invalid_json", ""),
        (BODY % b',"hints"', "invalid_json", ""),
        (BODY % b',"hints":nul', "invalid_json", "hints"),
        (BODY % b',"hints":nulls', "invalid_json", ""),
        (b'{"snapshot_id":"s" "query":"q"}', "invalid_json", ""),
        (b'{"snapshot_id":"s', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":"a\nb"}', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":"\\x41"}', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":"\\u12"}', "invalid_json", "snapshot_id"),
        (b"{'snapshot_id':'s'}", "invalid_json", ""),
        (b'{"snapshot_id":NaN}', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":Infinity}', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":-Infinity}', "wrong_type", "snapshot_id"),
        (b'{"snapshot_id":' + b"9" * 100_000 + b"}", "wrong_type", "snapshot_id"),
        (b'{"snapshot_id":true}', "wrong_type", "snapshot_id"),
        (b'{"snapshot_id":trup}', "invalid_json", "snapshot_id"),
        (b'{"snapshot_id":null}', "wrong_type", "snapshot_id"),
        (b'{"snapshot_id":["s"]}', "wrong_type", "snapshot_id"),
        (b"[" * 1_000_000, "wrong_type", ""),
        (b'{"documents":' + b"[" * 1_000_000, "wrong_type", "documents[0]"),
        (b'{"hints":' + b'{"ids":' * 1_000_000, "wrong_type", "hints.ids"),
        (b'{"documents":[{"id":"a","text":"t"},]}', "invalid_json", "documents[1]"),
        (b'{"documents":[{"id":"a","text":"t"} {"id":"b","text":"t"}]}', "invalid_json", "documents"),
        (b'{"documents":{}}', "wrong_type", "documents"),
        (b'{"documents":[]}', "no_documents", "documents"),
        (b'{"documents":["a"]}', "wrong_type", "documents[0]"),
        (b'{"documents":[{"id":"a"}]}', "missing_field", "documents[0].text"),
        (b'{"documents":[{"id":1,"text":"t"}]}', "wrong_type", "documents[0].id"),
        (b'{"query":"a","query":"a"}', "duplicate_key", "query"),
        (b'{"query":"a","qu\\u0065ry":"a"}', "duplicate_key", "query"),
        (b'{"documents":[{"id":"a","text":"t","id":"b"}]}', "duplicate_key", "documents[0].id"),
        (b'{"documents":[{"id":"a","text":"t"}],"documents":[]}', "duplicate_key", "documents"),
        (b'{"Query":"a"}', "unknown_field", "Query"),
        (b'{"":"a"}', "unknown_field", "['']"),
        (b'{"documents":[{"id":"a","text":"t","title":"x"}]}', "unknown_field", "documents[0].title"),
        (BODY % b',"hints":{"scores":[]}', "unknown_field", "hints.scores"),
        (BODY % b',"hints":[]', "wrong_type", "hints"),
        *[
            (BODY % (b',"limit":' + limit), "wrong_type", "limit")
            for limit in (b"0", b"-1", b"1.0", b"1e3", b'"1"', b"true", b"[]", b"01")
        ],
        (BODY % b',"limit":', "invalid_json", "limit"),
        (BODY % b',"limit":1x', "invalid_json", ""),
        (BODY % b',"limit":1,"limit":1', "duplicate_key", "limit"),
        (b'{"documents":[{"id":"a","text":"t","name":null}]}', "wrong_type", "documents[0].name"),
        (BODY % b',"hints":false', "wrong_type", "hints"),
        (BODY % b',"hints":{}', "missing_field", "hints.snapshot_id"),
        (BODY % b',"hints":{"snapshot_id":"s","query":"q"}', "missing_field", "hints.ids"),
        (BODY % b',"hints":{"snapshot_id":"s","query":"q","ids":[null]}', "wrong_type", "hints.ids[0]"),
        (BODY % b',"hints":{"snapshot_id":"s","query":"q","ids":["a","a"]}', "repeated_hint", "hints.ids[1]"),
        (BODY % b',"hints":{"snapshot_id":"s","query":"q","ids":["a","b"]}', "unknown_hint", "hints.ids[1]"),
        (BODY % b',"hints":{"snapshot_id":"s","query":"p","ids":[]}', "query_mismatch", "hints.query"),
        (BODY % b',"hints":{"snapshot_id":"r","query":"q","ids":[]}', "snapshot_mismatch", "hints.snapshot_id"),
        (b'{"documents":[{"id":"a","text":""},{"id":"a","text":""}]}', "repeated_id", "documents[1].id"),
        (b'{"query":"\\ud800"}', "lone_surrogate", "query"),
        (b'{"query":"\\udc00\\ud800"}', "lone_surrogate", "query"),
        (b'{"\\ud800":1}', "lone_surrogate", ""),
        (b'{"query":"\xed\xa0\x80"}', "invalid_utf8", ""),
        (b'{"query":"\xff"}', "invalid_utf8", ""),
        (b'{"query":"\xc0\xaf"}', "invalid_utf8", ""),
        ('{"query":"q"}'.encode("utf-16"), "invalid_utf8", ""),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_a_malformed_request_is_refused_with_its_code_and_path(body: bytes, code: str, path: str) -> None:
    assert refused(body) == (code, path)


@pytest.mark.parametrize("field", ["snapshot_id", "query", "documents"])
def test_every_field_but_hints_is_required(valid: dict[str, Any], field: str) -> None:
    del valid[field]
    assert refused(valid) == ("missing_field", field)


def test_4096_documents_are_accepted_and_4097_refused() -> None:
    assert accepted(request_of(limits.MAX_DOCUMENTS))
    assert limits.MAX_DOCUMENTS == 4096
    assert refused(request_of(4097)) == ("too_many_documents", "documents[4096]")


def test_2_mib_of_text_is_accepted_and_one_byte_more_refused() -> None:
    """The limit counts the UTF-8 of all texts together: a Korean syllable is three bytes of it."""
    edge = request_of(2, "가" * (1024 * 1024 // 3))  # two bytes below the edge
    edge["documents"].append({"id": "last", "text": "xx"})
    assert sum(len(d["text"].encode()) for d in edge["documents"]) == limits.MAX_TEXT_BYTES == 2 * 1024 * 1024
    assert accepted(edge)
    edge["documents"][-1]["name"] = "x"
    assert refused(edge) == ("text_too_large", "documents[2].text")
    del edge["documents"][-1]["name"]
    edge["documents"].append({"id": "more", "text": "x"})
    assert refused(edge) == ("text_too_large", "documents[3].text")


def test_a_query_of_8192_bytes_is_accepted_and_one_more_refused(valid: dict[str, Any]) -> None:
    del valid["hints"]
    assert accepted(valid | {"query": "가" * 2730 + "xx"})
    assert refused(valid | {"query": "가" * 2731}) == ("query_too_large", "query")


def test_16_mib_are_accepted_and_one_byte_more_refused(valid: dict[str, Any]) -> None:
    body = json.dumps(valid).encode()
    assert read_request(body.ljust(limits.MAX_REQUEST_BYTES)).query == "card payment"
    assert refused(body.ljust(limits.MAX_REQUEST_BYTES + 1)) == ("request_too_large", "")


def test_more_hints_than_any_catalog_has_are_refused_before_they_are_kept() -> None:
    """Distinct ids past 4,096 must name something unknown; reading stops there."""
    body = request_of(1) | {"hints": {"snapshot_id": "s", "query": "q", "ids": [str(i) for i in range(5000)]}}
    body = {"hints": body.pop("hints"), **body}
    assert refused(body) == ("unknown_hint", "hints.ids[4096]")


def test_fields_may_stand_in_any_order(valid: dict[str, Any]) -> None:
    assert accepted(dict(reversed(valid.items())))


def test_an_unknown_name_is_quoted_and_cut_in_the_path() -> None:
    """The path of a hostile name stays short, printable and on one line."""
    assert field_path("a", "b\n\x1b[31m") == "a['b\\n\\x1b[31m']"
    assert len(field_path("a", "\x00" * 10_000)) < 300


def test_no_content_reaches_a_message(valid: dict[str, Any]) -> None:
    """Ids, queries and texts are the caller's; a refusal names places and numbers."""
    valid["documents"].append({"id": "cache", "text": "secret-canary"})
    with pytest.raises(Refusal) as caught:
        read_request(json.dumps(valid | {"query": "secret-canary"}).encode())
    assert caught.value.code is Code.REPEATED_ID and "canary" not in str(caught.value)


STRINGS = text(max_size=20)


@given(STRINGS, STRINGS, dictionaries(STRINGS, STRINGS, min_size=1, max_size=5))
def test_any_text_survives_the_round_trip(snapshot: str, query: str, documents: dict[str, str]) -> None:
    """Whatever Unicode text stands in a field comes out as it went in, however it was escaped."""
    fields = {"snapshot_id": snapshot, "query": query}
    body = fields | {"documents": [{"id": id, "text": text} for id, text in documents.items()]}
    body |= {"hints": fields | {"ids": list(documents)}}
    for ascii_only in (True, False):
        request = read_request(json.dumps(body, ensure_ascii=ascii_only).encode())
        read = {document.id: document.text for document in request.documents}
        assert (request.snapshot_id, request.query, read) == (snapshot, query, documents)
        assert request.hints is not None and list(request.hints.ids) == list(documents)
