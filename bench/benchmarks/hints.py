"""cg-hints: start-up, one order, and the quality figures of bench/hints."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[1] / "hints"


def _evaluation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hints_evaluation", FOLDER / "evaluate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Quality:
    """Recall, mean checks and the largest ratio to BM25 alone, over the 52 development requests."""

    params = [
        ["BM25"]
        + [
            f"{hint}, {mix}"
            for mix in ("interleaved", "baseline first", "rank fusion")
            for hint in ("tokens", "fixed shuffle", "reverse BM25")
        ]
    ]
    param_names = ["method"]

    def setup_cache(self) -> dict[str, tuple[float, ...]]:
        evaluation = _evaluation()
        return {name: tuple(evaluation.evaluate(method)) for name, method in evaluation.methods().items()}

    def track_recall_at_1(self, rows: dict[str, Any], method: str) -> float:
        return 100 * rows[method][0]

    def track_recall_at_4(self, rows: dict[str, Any], method: str) -> float:
        return 100 * rows[method][1]

    def track_mean_checks(self, rows: dict[str, Any], method: str) -> float:
        return rows[method][2]

    def track_largest_ratio(self, rows: dict[str, Any], method: str) -> float:
        return rows[method][3]

    track_recall_at_1.unit = track_recall_at_4.unit = "%"
    track_mean_checks.unit = "checks"
    track_largest_ratio.unit = "ratio"


def request_of(n_documents: int) -> bytes:
    """A request over the development catalogs' texts, repeated up to `n_documents`, with every third id hinted."""
    data = json.loads((FOLDER / "requests.json").read_text("utf-8"))
    texts = [document["text"] for catalog in data["catalogs"].values() for document in catalog]
    documents = [{"id": f"d{i}", "text": texts[i % len(texts)]} for i in range(n_documents)]
    fields = {"snapshot_id": "s", "query": "failed charge retried with idempotency key"}
    hints = fields | {"ids": [f"d{i}" for i in range(0, n_documents, 3)]}
    return json.dumps(fields | {"documents": documents, "hints": hints}).encode()


class Order:
    """Reading a request, and ordering it once read."""

    params, param_names = [16, 256, 4096], ["n_documents"]

    def setup(self, n_documents: int) -> None:
        from cg.hints.ordering import respond
        from cg.hints.request import read_request

        self.read, self.order = read_request, respond
        self.body = request_of(n_documents)
        self.request = read_request(self.body)

    def time_read_request(self, n_documents: int) -> None:
        self.read(self.body)

    def time_json_loads(self, n_documents: int) -> None:
        """The peer of time_read_request: the same bytes through json, nothing checked."""
        json.loads(self.body)

    def time_order(self, n_documents: int) -> None:
        self.order(self.request)


class WordTable:
    """Hints from the word table: making them once a catalog is indexed, and what loading the table costs."""

    params, param_names = [16, 1000, 4096], ["n_documents"]
    query = "failed charge retried with idempotency key"

    def setup(self, n_documents: int) -> None:
        from cg.bm25 import BM25Index
        from cg.hints.producer import TABLE, TableHints
        from cg.word_table import WordTable as Table

        self.texts = [document["text"] for document in json.loads(request_of(n_documents))["documents"]]
        self.make, self.load, self.file = TableHints, Table, TABLE
        self.index, self.hints = BM25Index(self.texts, analyzer="text"), TableHints(self.texts)

    def time_query(self, n_documents: int) -> None:
        self.hints.order(self.query, self.index.rank(self.query))

    def time_rank_alone(self, n_documents: int) -> None:
        """The peer of time_query: the lexical order that it adds to."""
        self.index.rank(self.query)

    def time_vectors(self, n_documents: int) -> None:
        self.make(self.texts)

    def time_load(self, n_documents: int) -> None:
        self.load(self.file.read_bytes())


class StartUp:
    """Whole processes; `bare` and `stdlib` are what the interpreter and its json and argparse cost without us."""

    number, rounds = 1, 4

    def timeraw_command(self) -> str:
        return "import cg.hints.cli"

    def timeraw_stdlib(self) -> str:
        return "import argparse, json"

    def timeraw_typing_too(self) -> str:
        return "import argparse, json, typing"
