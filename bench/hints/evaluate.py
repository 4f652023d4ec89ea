"""What hints cost and bring on 52 development requests, beside a fusion that has no bound.

    python bench/hints/evaluate.py [--json]

A *check* inspects one candidate. A request costs as many checks as its target's place, or all 16 if its answer is
absent. Recall is over the 48 requests that have an answer; mean checks over all 52; the ratio is a request's checks
divided by what BM25 alone needs for it, its largest value over all requests.
"""

import argparse
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cg.bm25 import BM25Index, tokenize
from cg.hints.combine import interleave

DATA = Path(__file__).with_name("requests.json")
RRF_K = 60  # the constant of the paper that proposed the fusion; almost every implementation keeps it
SHUFFLE_SEED = 1


class Case(NamedTuple):
    """One request: its catalog in order, its query, the id that answers it or None."""

    ids: list[str]
    texts: list[str]
    query: str
    target: str | None
    kind: str


class Row(NamedTuple):
    """The figures of one method; recalls are fractions."""

    recall_at_1: float
    recall_at_4: float
    mean_checks: float
    largest_ratio: float


Ordering = Callable[[Case], list[str]]


@cache
def cases() -> tuple[Case, ...]:
    """The 52 requests, in the order of the file."""
    data = json.loads(DATA.read_text("utf-8"))

    def case(request: dict[str, Any]) -> Case:
        documents = data["catalogs"][request["catalog"]]
        ids, texts = [d["id"] for d in documents], [d["text"] for d in documents]
        return Case(ids, texts, request["query"], request["target"], request["kind"])

    return tuple(map(case, data["requests"]))


def bm25(case: Case) -> list[str]:
    """The baseline."""
    return [case.ids[doc] for doc, _ in BM25Index(case.texts).rank(case.query)]


def tokens(case: Case) -> list[str]:
    """By the share of the query's distinct tokens that a document has; ties by position."""
    wanted = set(tokenize(case.query))
    overlap = [len(wanted & set(tokenize(text))) for text in case.texts]
    return [case.ids[i] for i in sorted(range(len(case.ids)), key=lambda i: (-overlap[i], i))]


def shuffled(case: Case) -> list[str]:
    """One fixed shuffle of the positions, the same for every request."""
    order = list(range(len(case.ids)))
    random.Random(SHUFFLE_SEED).shuffle(order)
    return [case.ids[i] for i in order]


def reversed_bm25(case: Case) -> list[str]:
    """The worst that a hint list can say about the baseline."""
    return bm25(case)[::-1]


def fuse(hints: list[str], baseline: list[str]) -> list[str]:
    """Reciprocal rank fusion of two complete lists; ties by the baseline."""
    score = {id: 1 / (RRF_K + rank) for rank, id in enumerate(baseline, 1)}
    for rank, id in enumerate(hints, 1):
        score[id] += 1 / (RRF_K + rank)
    return sorted(baseline, key=lambda id: -score[id])


def methods() -> dict[str, Ordering]:
    """Every method of the table by name."""
    table: dict[str, Ordering] = {"BM25": bm25}
    hinting = {"tokens": tokens, "fixed shuffle": shuffled, "reverse BM25": reversed_bm25}
    for name, hint in hinting.items():
        table[f"{name}, interleaved"] = lambda case, hint=hint: interleave(hint(case), bm25(case))
    for name, hint in hinting.items():
        table[f"{name}, baseline first"] = lambda case, hint=hint: interleave(hint(case), bm25(case), "baseline")
    for name, hint in hinting.items():
        table[f"{name}, rank fusion"] = lambda case, hint=hint: fuse(hint(case), bm25(case))
    return table


def checks(case: Case, order: list[str]) -> int:
    """How many candidates are inspected before the target is found, or found to be absent."""
    return len(order) if case.target is None else order.index(case.target) + 1


def evaluate(method: Ordering) -> Row:
    """The figures of one method over all requests."""
    spent = [(checks(case, method(case)), checks(case, bm25(case)), case.target is not None) for case in cases()]
    present = [own for own, _, has_answer in spent if has_answer]
    return Row(
        sum(own == 1 for own in present) / len(present),
        sum(own <= 4 for own in present) / len(present),
        sum(own for own, _, _ in spent) / len(spent),
        max(own / base for own, base, _ in spent),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Print recall, mean checks and the largest ratio of every method.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a Markdown table")
    flags = parser.parse_args()
    rows = {name: evaluate(method) for name, method in methods().items()}
    if flags.json:
        print(json.dumps({name: row._asdict() for name, row in rows.items()}, indent=1))
        return
    print("| method | recall@1 | recall@4 | mean checks | largest ratio |\n|---|---:|---:|---:|---:|")
    for name, row in rows.items():
        recalls = f"{row.recall_at_1:.2%} | {row.recall_at_4:.2%}"
        print(f"| {name} | {recalls} | {row.mean_checks:.3f} | {row.largest_ratio:.2f} |")


if __name__ == "__main__":
    main()
