"""Orders of public catalogs by kind: python bench/hints/measure.py DATA [--forms FOLDER]

DATA is a folder with catalogs.jsonl and cases.jsonl, or one file of requests (see catalogs.py); --forms what train.py
wrote, to set FP32 and INT8 beside the table of the package. A *check* inspects one candidate, in order, until one that
answers; the ratio divides a case's checks by those of its baseline alone. All figures are means over the sources of a
kind, each source with equal weight. Intervals: 95 %, paired, cases drawn anew within each source. Needs numpy.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from catalogs import Case, Catalog, read_folder, read_requests
from forms import read

from cg.bm25 import BM25Index
from cg.hints.catalog import Document, searched
from cg.hints.combine import merge
from cg.hints.producer import TABLE, TableHints, words

BOUND = 2
RESAMPLES = 2000
SEED = 1
Order = list[int]  # positions in the catalog, best first
Hinter = Callable[[str, object], Order]  # of a query and its ranking
Columns = dict[str, list[tuple[int, int]]]  # a method's checks and its baseline's, a pair a case


def rows_hinter(number: dict[str, int], rows: np.ndarray, catalog: Catalog) -> Hinter:
    """As TableHints, in numpy, from the vectors of any table."""

    def unit(text: str) -> np.ndarray:
        total = rows[[number[word] for word in words(text) if word in number]].sum(0)
        return total / max(float(np.linalg.norm(total)), 1e-12)

    documents = np.array([unit(text) for text in catalog.texts])

    def order(query: str, ranked: object) -> Order:
        score = np.zeros(len(documents))
        score[np.asarray(ranked.docs)] = ranked.scores
        best = score.max()
        return np.argsort(-(score / (best or 1) + documents @ unit(query)), kind="stable").tolist()

    return order


def random_rows(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """A vector in a direction of chance for each word, of the given length."""
    drawn = np.random.default_rng(SEED).standard_normal(rows.shape).astype(np.float32)
    return drawn * (lengths / np.linalg.norm(drawn, axis=1))[:, None]


def makers(forms: Path | None) -> dict[str, Callable[[Catalog], Hinter]]:
    """Who makes hints, by name: a function of a catalog."""
    names, rows = read(TABLE)
    number = {word: i for i, word in enumerate(names)}
    found = {"ternary": lambda catalog: TableHints(catalog.texts).order}
    if forms is not None:
        for form in ("fp32", "int8"):
            names, vectors = read(forms / f"words.{form}.npz")
            found[form] = partial(rows_hinter, {word: i for i, word in enumerate(names)}, vectors)
    found["random table"] = partial(rows_hinter, number, random_rows(rows, np.ones(len(rows))))
    # Harder to beat: it still knows which words matter.
    found["trained weights, random directions"] = partial(
        rows_hinter, number, random_rows(rows, np.linalg.norm(rows, axis=1))
    )
    return found


def columns(
    catalog: Catalog, cases: list[Case], hinting: dict[str, Callable[[Catalog], Hinter]], analyzer: str
) -> Columns:
    """Checks by method for every case of a catalog; the baseline is that of `analyzer`."""
    index = {name: BM25Index(catalog.texts, analyzer=name) for name in ("plain", "text", "code")}
    named = [searched(Document("", *parts), "code") for parts in zip(catalog.texts, catalog.names, strict=True)]
    index["code, names too"] = BM25Index(named, analyzer="code")
    hinters = {name: make(catalog) for name, make in hinting.items()}
    shuffle = np.random.default_rng(SEED).permutation(len(catalog.ids)).tolist()
    found: Columns = {}
    for case in cases:
        right = {i for i, id in enumerate(catalog.ids) if id in case.gold}
        ranked = index[analyzer].rank(case.query)
        baseline = ranked.docs.tolist()
        orders = {name: index[name].rank(case.query).docs.tolist() for name in index} | {"baseline": baseline}
        hints = {name: hinter(case.query, ranked) for name, hinter in hinters.items()}
        orders |= {f"{name}, alone": order for name, order in hints.items()}
        hints |= {"shuffled": shuffle, "reversed": hints["ternary"][::-1]}
        orders |= {f"{name}, lazy": merge(order, baseline, BOUND) for name, order in hints.items()}
        checks = {name: next(n for n, i in enumerate(order, 1) if i in right) for name, order in orders.items()}
        for name, own in checks.items():
            found.setdefault(name, []).append((own, checks["baseline"]))
    return found


def figures(checks: np.ndarray) -> np.ndarray:
    """Recall@1, @4 and @10 in percent, and mean checks, over the last axis."""
    return np.array([*(100 * (checks <= k).mean(-1) for k in (1, 4, 10)), checks.mean(-1)])


def interval(one: list[np.ndarray], other: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """[figure, (difference, low, high)] of one less other, a list of checks a source each."""
    drawn = []
    for a, b in zip(one, other, strict=True):
        pick = rng.integers(0, len(a), (RESAMPLES, len(a)))
        drawn.append(figures(a[pick]) - figures(b[pick]))
    exact = np.mean([figures(a) - figures(b) for a, b in zip(one, other, strict=True)], axis=0)
    return np.column_stack([exact, *np.percentile(np.mean(drawn, axis=0), [2.5, 97.5], axis=1)])


def report(kind: str, sources: list[Columns]) -> Iterator[str]:
    checks = {name: [np.array(source[name]) for source in sources] for name in sources[0]}
    yield f"\n| {kind} ({len(sources)} sources) | recall@1 | @4 | @10 | checks | worst ratio |\n|---|---:|---:|---:|---:|---:|"
    for name, parts in checks.items():
        one, four, ten, mean = np.mean([figures(part[:, 0]) for part in parts], axis=0)
        worst = max((part[:, 0] / part[:, 1]).max() for part in parts)
        yield f"| {name} | {one:.1f} | {four:.1f} | {ten:.1f} | {mean:.1f} | {worst:.2f} |"
    for other in ("baseline", "random table, lazy", "trained weights, random directions, lazy"):
        rng = np.random.default_rng(SEED)
        rows = interval(*([part[:, 0] for part in checks[name]] for name in ("ternary, lazy", other)), rng)
        named = zip(("recall@1", "@4", "@10", "checks"), rows, strict=True)
        shown = ", ".join(f"{name} {d:+.1f} ({low:+.1f} to {high:+.1f})" for name, (d, low, high) in named)
        yield f"\nternary, lazy less {other}: {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall, checks and worst ratios by kind of catalog.")
    parser.add_argument("data", type=Path, help="a folder with catalogs.jsonl and cases.jsonl, or a file of requests")
    parser.add_argument("--forms", type=Path, help="the folder that train.py wrote to")
    parser.add_argument("--analyzer", default="text", help="of the baseline: plain, text (default) or code")
    flags = parser.parse_args()
    hinting = makers(flags.forms)
    kinds: dict[str, dict[str, Columns]] = {}
    for catalog, cases in read_folder(flags.data) if flags.data.is_dir() else read_requests(flags.data):
        source = kinds.setdefault(catalog.kind, {}).setdefault(catalog.source, {})
        for name, pairs in columns(catalog, cases, hinting, flags.analyzer).items():
            source.setdefault(name, []).extend(pairs)
    for kind, sources in kinds.items():
        print("\n".join(report(kind, [source for source in sources.values() if source])))


if __name__ == "__main__":
    main()
