"""The response: every document once, its lexical score beside its place, nothing claimed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import data, lists, sampled_from

from cg.bm25 import BM25Index
from cg.hints.catalog import Catalog, Document, Merge
from cg.hints.combine import interleave, merge
from cg.hints.ordering import respond
from cg.hints.request import Hints, Request, read_request

WORDS = ["card", "payment", "cache", "검색", "결제", ""]


def test_the_response_has_the_contracts_form(valid: dict[str, Any]) -> None:
    response = respond(read_request(json.dumps(valid).encode()))
    assert list(response) == ["snapshot_id", "query", "candidates"]
    assert (response["snapshot_id"], response["query"]) == ("s1", "card payment")
    score = BM25Index([d["text"] for d in valid["documents"]], analyzer="text").rank("card payment")
    best = list(score)[0]
    assert best[1] > 0
    assert response["candidates"] == [
        {"id": "cache", "rank": 1, "source": "hint", "bm25_rank": 3, "bm25_score": 0.0, "status": "unverified"},
        {"id": "payments", "rank": 2, "source": "bm25", "bm25_rank": 1, "bm25_score": best[1], "status": "unverified"},
        {"id": "search", "rank": 3, "source": "bm25", "bm25_rank": 2, "bm25_score": 0.0, "status": "unverified"},
    ]


@pytest.mark.parametrize(("first", "ids"), [("hints", ["cache", "payments"]), ("baseline", ["payments", "cache"])])
def test_first_says_which_list_opens_each_round(valid: dict[str, Any], first: Any, ids: list[str]) -> None:
    response = respond(read_request(json.dumps(valid).encode()), Merge(None, first))
    assert [candidate["id"] for candidate in response["candidates"]][:2] == ids


@given(data(), lists(lists(sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=12))
def test_every_document_is_out_once_whatever_the_hints(draw: Any, texts: list[str]) -> None:
    ids = [f"d{i}" for i in range(len(texts))]
    hints = draw.draw(lists(sampled_from(ids), unique=True))
    documents = tuple(map(Document, ids, texts))
    mix = draw.draw(
        sampled_from([Merge(2.0, "hints"), Merge(1.5, "hints"), Merge(None, "hints"), Merge(None, "baseline")])
    )
    limit = draw.draw(sampled_from([None, 1, 3, 50]))
    request = Request("s", "card 결제", documents, Hints("s", "card 결제", tuple(hints)))
    response = respond(request, mix)
    page = respond(request._replace(limit=limit), mix, Catalog(documents))
    assert page["candidates"] == response["candidates"][:limit]
    candidates = response["candidates"]
    assert sorted(candidate["id"] for candidate in candidates) == sorted(ids)
    assert [candidate["rank"] for candidate in candidates] == list(range(1, len(ids) + 1))
    lexical = sorted(candidates, key=lambda candidate: candidate["bm25_rank"])
    assert [(-c["bm25_score"], ids.index(c["id"])) for c in lexical] == sorted(
        (-c["bm25_score"], ids.index(c["id"])) for c in lexical
    )
    baseline = [c["id"] for c in lexical]
    want = interleave(hints, baseline, mix.first) if mix.bound is None else merge(hints, baseline, mix.bound)
    assert [c["id"] for c in candidates] == want
    assert json.loads(json.dumps(response)) == response
