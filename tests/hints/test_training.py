"""The training of the word table and its evaluation, on data small enough to see through."""

import importlib.util
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cg.word_table import WordTable, WordVectors

FOLDER = Path(__file__).parents[2] / "bench/hints"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The scripts of bench/hints by name; they import each other, as scripts of one folder do."""
    sys.path.insert(0, str(FOLDER))
    loaded: dict[str, ModuleType] = {}
    for name in ("catalogs", "encoder", "forms", "train", "measure"):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec and spec.loader
        sys.modules[name] = loaded[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded[name])
    yield loaded
    sys.path.remove(str(FOLDER))
    for name in loaded:
        del sys.modules[name]


def test_a_written_table_is_read_by_the_compiled_loader_as_by_numpy(bench: Any, tmp_path: Path) -> None:
    words = sorted(["a", "get", "weather", "날씨"], key=str.encode)
    vectors = np.random.default_rng(1).standard_normal((4, 128)).astype(np.float32)
    paths = bench["forms"].write_all(tmp_path, words, vectors)
    for path in paths.values():
        names, rows = bench["forms"].read(path)
        assert names == words
        cosine = (rows * vectors).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(vectors, axis=1)
        assert (cosine > 0.85).all()  # the least that ternary digits keep of random numbers
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = WordVectors(WordTable(paths["ternary"].read_bytes()), [[word] for word in words]).cosines(["get"])
    assert found == pytest.approx(rows @ rows[words.index("get")], abs=1e-6)


def sources(bench: Any) -> list[Any]:
    """Queries in words 0 to 19, answered by documents in words 20 to 39, word for word; 40 to 49 mean nothing."""
    rng = random.Random(1)
    documents = [np.array([20 + i, *rng.sample(range(40, 50), 3)]) for i in range(20)]
    queries = [np.array([i % 20, *rng.sample(range(40, 50), 3)]) for i in range(200)]
    return [bench["train"].Source(documents, queries, [[i % 20] for i in range(200)])]


def first_places(table: np.ndarray, source: Any) -> int:
    """Queries whose right document has the highest cosine."""

    def units(lists: list[np.ndarray]) -> np.ndarray:
        sums = np.array([table[words].sum(0) for words in lists])
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)

    best = (units(source.queries) @ units(source.documents).T).argmax(1)
    return int((best == [gold[0] for gold in source.gold]).sum())


def test_training_learns_which_words_answer_which_and_gives_the_same_bytes_again(bench: Any, monkeypatch: Any) -> None:
    train = bench["train"]
    monkeypatch.setattr(train, "EPOCHS", 100)
    vectors = np.random.default_rng(2).standard_normal((50, 128)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = np.ones(50, np.float32)
    table = train.train(vectors, weights, sources(bench), seed=1)
    assert first_places(vectors, sources(bench)[0]) < 40
    assert first_places(table, sources(bench)[0]) == 200
    assert table.tobytes() == train.train(vectors, weights, sources(bench), seed=1).tobytes()
    assert table.tobytes() != train.train(vectors, weights, sources(bench), seed=2).tobytes()


def test_the_vocabulary_is_frequent_words_and_words_of_several_documents(bench: Any, monkeypatch: Any) -> None:
    """Parts of identifiers are words, whole identifiers are not."""
    monkeypatch.setattr(bench["train"], "FREQUENT_WORDS", 2)
    texts = ["getUserName get_user"] * 5 + ["seldom"] * 4 + ["x" * 40] * 9
    found = bench["train"].vocabulary(["the", "of", "and"], texts)
    assert found == ["get", "getusername", "name", "of", "the", "user"]


def test_wordpiece_takes_the_longest_piece_first(bench: Any) -> None:
    vocabulary = {"un": 1, "unw": 2, "##ant": 3, "##a": 4, "##nted": 5, "##ed": 6}
    assert bench["encoder"].pieces("unwanted", vocabulary) == [2, 3, 6]
    assert bench["encoder"].pieces("unwanteds", vocabulary) == [100]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight tools, six queries; one query has two right documents."""
    texts = [
        "weather forecast",
        "stock price",
        "send email",
        "play music",
        "find flights",
        "translate text",
        "set alarm",
        "add",
    ]
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    catalog = {"catalog": "c", "source": "s", "kind": "tools", "licence": "MIT", "documents": documents}
    asked = {
        "rain tomorrow": ["d0"],
        "share price": ["d1", "d4"],
        "write a mail": ["d2"],
        "song": ["d3"],
        "add": ["d7"],
        "": ["d7"],
    }
    cases = [{"case": str(i), "catalog": "c", "query": q, "gold": gold} for i, (q, gold) in enumerate(asked.items())]
    (tmp_path / "catalogs.jsonl").write_text(json.dumps(catalog) + "\n", "utf-8")
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), "utf-8")
    return tmp_path


def test_a_file_of_requests_is_a_catalog_each(bench: Any, tmp_path: Path) -> None:
    documents = [{"id": "a", "text": "one", "name": "first"}, {"id": "b", "text": "two"}]
    row = {"query": "two", "gold": ["b"], "source": "s", "kind": "tools", "licence": "MIT", "documents": documents}
    (tmp_path / "small.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"query": "one"}) + "\n", "utf-8")
    found = bench["catalogs"].read_requests(tmp_path / "small.jsonl")
    assert [catalog[4:] for catalog, _ in found] == [(["a", "b"], ["one", "two"], ["first", ""])] * 2
    assert [case.query for _, [case] in found] == ["two", "one"] and found[0][1][0].gold == {"b"}


def test_no_lazy_merge_of_any_hints_costs_more_than_twice_its_baseline(bench: Any, folder: Path) -> None:
    measure = bench["measure"]
    [(catalog, cases)] = bench["catalogs"].read_folder(folder)
    found = measure.columns(catalog, cases, measure.makers(None), "text")
    assert found["baseline"] == found["text"] and all(own == base for own, base in found["baseline"])
    lazy = {name: pairs for name, pairs in found.items() if name.endswith(", lazy")}
    assert {"ternary, lazy", "shuffled, lazy", "reversed, lazy", "random table, lazy"} < set(lazy)
    assert all(own <= 2 * base for pairs in lazy.values() for own, base in pairs)
    assert max(own / base for own, base in found["reversed, lazy"]) == 2
    # The queries without a common word are where the table can help, and here it does.
    assert sum(own for own, _ in found["ternary, lazy"]) < sum(base for _, base in found["ternary, lazy"])


def test_a_name_counts_for_code_as_in_the_product(bench: Any, folder: Path) -> None:
    """A file's path is not in these texts; with it a query for a word of the path is answered first."""
    [(catalog, _)] = bench["catalogs"].read_folder(folder)
    named = catalog._replace(names=["src/speak.py" if id == "d5" else "" for id in catalog.ids])
    measure, case = bench["measure"], bench["catalogs"].Case("speak", frozenset({"d5"}))
    found = measure.columns(named, [case], measure.makers(None), "text")
    assert found["code"] == [(6, 6)] and found["code, names too"] == [(1, 6)]


def test_an_interval_is_around_the_paired_difference(bench: Any) -> None:
    rng = np.random.default_rng(1)
    one, other = [np.arange(1, 101)], [np.arange(1, 101) + 1]
    difference, low, high = bench["measure"].interval(one, other, rng)[3]
    assert (difference, low, high) == (-1, -1, -1)  # every case one check less: no draw can say anything else
    recall = bench["measure"].interval(one, other, rng)[0]
    assert recall[0] == pytest.approx(1) and recall[1] == 0 < recall[2] <= 5


def test_the_report_has_a_row_a_method_and_both_kinds_of_interval(
    bench: Any, folder: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["measure.py", str(folder)])
    bench["measure"].main()
    out = capsys.readouterr().out
    assert "| tools (1 sources) | recall@1" in out and "| reversed, lazy |" in out
    assert "ternary, lazy less baseline: recall@1" in out and "ternary, lazy less random table, lazy: recall@1" in out
