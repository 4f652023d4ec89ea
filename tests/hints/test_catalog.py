"""Catalogs: many queries over one index; the cache of --lines, bounded, with never two contents under one id."""

import json
import time
from typing import Any

import pytest

import cg.hints
from cg.hints import catalog
from cg.hints.cache import CatalogCache
from cg.hints.catalog import Document
from cg.hints.ordering import respond
from cg.hints.refusal import Code, Refusal
from cg.hints.request import read_request

DOCUMENTS = (Document("a", "one two"), Document("b", "three"))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The texts of every index that is built, in order."""
    seen: list[Any] = []
    real = catalog.BM25Index

    def build(texts: list[str], **keywords: Any) -> Any:
        seen.append(texts)
        return real(texts, **keywords)

    monkeypatch.setattr(catalog, "BM25Index", build)
    return seen


def test_a_catalog_that_was_seen_is_not_indexed_again(builds: list[Any]) -> None:
    cache = CatalogCache()
    first = cache.get("s", DOCUMENTS)
    assert cache.get("s", tuple(Document(d.id, d.text) for d in DOCUMENTS)) is first
    assert len(builds) == 1


@pytest.mark.parametrize(
    "other",
    [DOCUMENTS[::-1], DOCUMENTS[:1], (DOCUMENTS[0], Document("b", "thref")), (DOCUMENTS[0], Document("c", "three"))],
)
def test_the_same_id_with_other_bytes_is_refused_while_it_is_remembered(other: tuple[Document, ...]) -> None:
    cache = CatalogCache(max_catalogs=1)
    cache.get("s", DOCUMENTS)
    with pytest.raises(Refusal) as caught:
        cache.get("s", other)
    assert (caught.value.code, caught.value.path) == (Code.SNAPSHOT_CONFLICT, "snapshot_id")
    cache.get("t", DOCUMENTS)  # pushes s out
    assert cache.get("s", other).documents == other


def test_the_least_recently_used_catalog_goes_first(builds: list[Any]) -> None:
    cache = CatalogCache(max_catalogs=2)
    for snapshot in ("s", "t", "s", "u", "s", "t"):
        cache.get(snapshot, DOCUMENTS)
    assert len(cache) == 2 and len(builds) == 4  # s, t, u, and t again


def test_the_cache_is_bounded_by_bytes() -> None:
    """A catalog that fits alone pushes others out; one that never fits is answered and not kept."""
    cache = CatalogCache(max_catalogs=100, max_bytes=3000)
    big = (Document("a", "x" * 1000),)
    for snapshot in "stuvw":
        cache.get(snapshot, big)
    assert len(cache) == 2
    assert cache.get("huge", (Document("a", "x" * 5000),)).documents[0].id == "a"
    assert len(cache) == 2


def test_documents_come_in_any_form_that_programs_have() -> None:
    want = [("b", 1, 1), ("a", 2, 2)]
    for documents in (
        {"a": "one two", "b": "three threes"},
        [("a", "one two"), ("b", "three threes")],
        [{"id": "a", "text": "one two", "name": None}, {"id": "b", "text": "threes", "name": "three"}],
        (Document("a", "one two"), Document("b", "three threes")),
        iter([{"id": "a", "text": "one two"}, {"id": "b", "text": "three threes", "unused": 1}]),
    ):
        candidates = cg.hints.order(documents, "three")
        assert [(c["id"], c["rank"], c["bm25_rank"]) for c in candidates] == want


def test_a_catalog_answers_many_queries() -> None:
    catalog = cg.hints.Catalog({f"d{i}": f"word{i} getUserName{i}" for i in range(200)}, analyzer="code")
    assert len(catalog) == 200 and catalog.bm25.analyzer == "code"
    for limit in (None, 1, 3, 64, 65, 150, 1000):
        got = catalog.order("word7 user", hints=["d150", "d3"], limit=limit)
        assert got == catalog.order("word7 user", hints=["d150", "d3"])[:limit]
        assert [c["id"] for c in got][:3] == ["d150", "d7", "d3"][: limit or 3]
    assert [c["id"] for c in catalog.order("word7", ["d9", "d8"], 3, bound=3)] == ["d9", "d8", "d7"]


@pytest.mark.parametrize(
    ("hints", "code", "path"),
    [(["a", "x"], Code.UNKNOWN_HINT, "hints.ids[1]"), (["a", "b", "a"], Code.REPEATED_HINT, "hints.ids[2]")],
)
def test_hints_of_a_program_are_checked_as_those_of_a_request(hints: list[str], code: Code, path: str) -> None:
    with pytest.raises(Refusal) as caught:
        cg.hints.order({"a": "", "b": ""}, "q", hints)
    assert (caught.value.code, caught.value.path) == (code, path)


def test_wrong_documents_are_named() -> None:
    with pytest.raises(Refusal, match="repeated_id"):
        cg.hints.Catalog([("a", ""), ("a", "")])
    with pytest.raises(TypeError, match=r"documents\[1\].text must be a str, not int"):
        cg.hints.Catalog([("a", ""), ("b", 3)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="is not in 1..8"):
        cg.hints.order({"a": ""}, "q", bound=0.5)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        cg.hints.other  # noqa: B018


def line_of(snapshot_id: str, query: str, texts: list[str], **more: Any) -> bytes:
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    return json.dumps({"snapshot_id": snapshot_id, "documents": documents, "query": query} | more).encode()


def test_documents_that_were_read_before_are_not_read_again() -> None:
    """A request whose documents stand in the same bytes gets the same catalog, and all its other fields are read."""
    cache = CatalogCache()
    first = read_request(line_of("s", "one", ["one", "two"]), cache.read_before)
    catalog = cache.get("s", first.documents, first.written)
    fields = {"snapshot_id": "t", "query": "q"}
    again = read_request(line_of("t", "q", ["one", "two"], hints=fields | {"ids": ["d1"]}, limit=1), cache.read_before)
    assert again.documents is catalog.documents and (again.snapshot_id, again.limit) == ("t", 1)
    assert cache.get("s", again.documents, again.written) is catalog
    for texts in (["one", "twO"], ["one"], ["one", "two", "three"], ["one", "two]"]):
        other = read_request(line_of("u", "q", texts), cache.read_before)
        assert [document.text for document in other.documents] == texts
    with pytest.raises(Refusal, match="unknown_hint"):
        read_request(line_of("t", "q", ["one", "two"], hints=fields | {"ids": ["d2"]}), cache.read_before)
    cut = line_of("s", "one", ["one", "two"]).replace(b'}], "query"', b'}]], "query"')
    with pytest.raises(Refusal, match="invalid_json"):
        read_request(cut, cache.read_before)


def test_a_page_costs_what_its_size_says() -> None:
    """Ten candidates of 4,096 remembered documents take a tenth of the time that all of them take, or less."""
    texts = [f"word{i % 97} more{i % 31} text of a tool" for i in range(4096)]
    cache = CatalogCache()
    first = read_request(line_of("s", "word3 tool", texts), cache.read_before)
    catalog = cache.get("s", first.documents, first.written)

    def seconds(limit: int | None) -> float:
        line, best = line_of("s", "word3 tool", texts, limit=limit), 1e9
        for _ in range(7):
            start = time.perf_counter()
            request = read_request(line, cache.read_before)
            json.dumps(respond(request, catalog=cache.get("s", request.documents, request.written)))
            best = min(best, time.perf_counter() - start)
        return best

    assert respond(first._replace(limit=10), catalog=catalog)["candidates"] == respond(first)["candidates"][:10]
    assert seconds(10) < 0.1 * seconds(None)
