"""The cache of --lines: one index a snapshot, bounded, and never two contents under one id."""

from typing import Any

import pytest

from cg.hints import catalog
from cg.hints.catalog import CatalogCache
from cg.hints.refusal import Code, Refusal
from cg.hints.request import Document

DOCUMENTS = (Document("a", "one two"), Document("b", "three"))


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The texts of every index that is built, in order."""
    seen: list[Any] = []
    real = catalog.BM25Index

    def build(texts: list[str]) -> Any:
        seen.append(texts)
        return real(texts)

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
