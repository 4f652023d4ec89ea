"""The development requests have the promised make-up, and interleaving keeps its bound on every one of them."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "bench/hints/evaluate.py"


@pytest.fixture(scope="module")
def evaluation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hints_evaluation", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_there_are_52_requests_of_16_candidates(evaluation: ModuleType) -> None:
    cases = evaluation.cases()
    assert Counter(case.kind for case in cases) == {"direct": 16, "paraphrase": 16, "contrast": 16, "absent": 4}
    assert all(len(set(case.ids)) == 16 for case in cases)
    assert all((case.target is None) == (case.kind == "absent") for case in cases)
    assert all(case.target in case.ids for case in cases if case.target is not None)


def test_interleaving_never_costs_more_than_twice_the_baseline(evaluation: ModuleType) -> None:
    """The bound, on the same lists that push rank fusion past it."""
    rows = {name: evaluation.evaluate(method) for name, method in evaluation.methods().items()}
    assert all(row.largest_ratio <= 2 for name, row in rows.items() if "fusion" not in name)
    assert rows["fixed shuffle, rank fusion"].largest_ratio > 2
    assert rows["BM25"].largest_ratio == 1 and rows["BM25"].recall_at_1 > 0.4
