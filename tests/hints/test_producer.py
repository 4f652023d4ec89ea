"""Hints from a word table: an order by meaning where no word is shared, from a file that is checked before use."""

import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import word_table_oracle as oracle

from cg.bm25 import BM25Index, tokenize
from cg.hints import producer
from cg.hints.cache import CatalogCache
from cg.hints.catalog import Document
from cg.hints.ordering import order
from cg.hints.producer import TABLE, TableHints, word_table
from cg.word_table import WordTable

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]

# Of the table that the figures of bench/hints/README.md belong to; a new one has new figures.
SHA256 = "3f18a14ddea5d60cdc6d2ca0c9ca7fceb62a0a31736490c727d45bb10574da68"

TOOLS = {
    "mail": "send_email: deliver a message to a recipient's inbox",
    "weather": "get_weather_forecast: temperature and precipitation for a city",
    "stocks": "getStockPrice: latest trading price of a share on an exchange",
    "music": "play_song: start a track of an artist on a speaker",
    "translate": "translate_text: turn a sentence into another language",
    "flights": "searchFlights: find airplane tickets between two airports",
}


def first(query: str) -> str:
    """The tool that the package's table puts first."""
    texts = list(TOOLS.values())
    return list(TOOLS)[TableHints(texts).order(query, BM25Index(texts, analyzer="text").rank(query))[0]]


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("will it rain tomorrow", "weather"),
        ("how much is Apple worth on Nasdaq", "stocks"),
        ("listen to Beethoven", "music"),
        ("I need to travel from Paris to Rome by plane", "flights"),
        ("how do you say hello in Spanish", "translate"),
    ],
)
def test_a_paraphrase_finds_its_tool(query: str, tool: str) -> None:
    assert first(query) == tool


def test_the_tables_file_is_the_one_that_was_measured() -> None:
    assert hashlib.sha256(TABLE.read_bytes()).hexdigest() == SHA256
    assert len(word_table()) > 30_000
    assert all(word in word_table() for word in ("weather", "retrieve", "banking"))


def test_the_order_is_that_of_the_lexical_score_and_the_words_and_parts_of_identifiers() -> None:
    rng = random.Random(1)
    rows = {word: (1.0, rng.choices((-1, 0, 1), k=128)) for word in ("get", "weather", "forecast", "price", "날씨")}
    texts = ["getWeather now", "price_of: forecast", "날씨 forecast", "", "the unknown"]
    query = "get_weather forecast the"
    ranked = BM25Index(texts, analyzer="text").rank(query)
    hints = TableHints(texts, WordTable(oracle.image(rows)))
    cut = [tokenize(text, analyzer="code") for text in (query, *texts)]
    score = [dict(ranked.tolist())[i] for i in range(len(texts))]
    assert max(score) > 0
    assert hints.order(query, ranked) == oracle.order(oracle.cosines(rows, cut[0], cut[1:]), score)


def request_of(query: str, **more: object) -> dict[str, object]:
    documents = [{"id": id, "text": text} for id, text in TOOLS.items()]
    return {"snapshot_id": "s1", "query": query, "documents": documents, **more}


def test_the_command_makes_hints_for_a_request_without_any(cg_hints: Run) -> None:
    request = request_of("will it rain tomorrow")
    candidates = json.loads(cg_hints("--producer", "table", stdin=request).stdout)["candidates"]
    assert (candidates[0]["id"], candidates[0]["source"]) == ("weather", "hint")
    assert sorted(candidate["id"] for candidate in candidates) == sorted(TOOLS)
    assert all(c["rank"] <= 2 * c["bm25_rank"] for c in candidates)
    assert (
        json.loads(cg_hints("--producer", "table", stdin=request | {"hints": None}).stdout)["candidates"] == candidates
    )


def test_a_request_with_hints_keeps_its_own(cg_hints: Run) -> None:
    request = request_of(
        "will it rain tomorrow", hints={"snapshot_id": "s1", "query": "will it rain tomorrow", "ids": []}
    )
    assert cg_hints("--producer", "table", stdin=request).stdout == cg_hints(stdin=request).stdout
    request["hints"]["ids"] = ["music"]  # type: ignore[index]
    assert cg_hints("--producer", "table", stdin=request).stdout == cg_hints(stdin=request).stdout


def test_the_producer_goes_with_lines_and_with_verify(cg_hints: Run) -> None:
    lines = b"".join(
        json.dumps(request_of(query)).encode() + b"\n" for query in ("will it rain tomorrow", "listen to Beethoven")
    )
    answers = cg_hints("--producer", "table", "--lines", stdin=lines).stdout.splitlines()
    assert [json.loads(answer)["candidates"][0]["id"] for answer in answers] == ["weather", "music"]
    check = f"{sys.executable} -c \"import json, sys; sys.exit(json.load(sys.stdin)['id'] != 'weather')\""
    found = cg_hints("--producer", "table", "--verify", check, stdin=request_of("will it rain tomorrow"))
    assert json.loads(found.stdout) == {"result": "found", "id": "weather", "checks": 1}


def test_the_vectors_of_a_remembered_catalog_are_made_once() -> None:
    made = []

    def produce(texts: list[str]) -> TableHints:
        made.append(len(texts))
        return TableHints(texts)

    cache = CatalogCache(producer=produce)
    documents = tuple(Document(id, text) for id, text in TOOLS.items())
    assert cache.get("s1", documents) is cache.get("s1", documents)
    assert made == [len(TOOLS)]


def test_a_program_may_ask_for_hints_from_the_table() -> None:
    query = "will it rain tomorrow"
    assert order(TOOLS, query, producer=TableHints)[0]["id"] == "weather"
    assert order(TOOLS, query, ["music"], producer=TableHints) == order(TOOLS, query, ["music"])
    assert order(TOOLS, query, producer=TableHints, limit=2) == order(TOOLS, query, producer=TableHints)[:2]


def test_a_damaged_table_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(TABLE.read_bytes())
    data[len(data) // 2] ^= 1
    damaged = tmp_path / "word_table.bin"
    damaged.write_bytes(data)
    monkeypatch.setattr(producer, "TABLE", damaged)
    word_table.cache_clear()
    with pytest.raises(ValueError, match="checksum"):
        word_table()


def test_the_table_is_loaded_only_when_asked_for_and_needs_no_numpy() -> None:
    program = (
        "import sys, cg, cg.bm25, cg.hints.cli; print(any('word_table' in name for name in sys.modules));"
        "from cg.hints.producer import TableHints; TableHints(['a']); print('numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
