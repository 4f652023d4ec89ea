"""Two builds of the compiled modules in turns, in one process: what a compiler's flag costs.

python bench/builds.py OTHER/src/cg --repeats 120      (OTHER: a checkout whose modules were built the other way)

Milliseconds of CPU, best of the repeats, of the other build and of this one, and their ratio.
"""

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import cg

sys.path.insert(0, str(Path(__file__).resolve().parent / "benchmarks"))
import verdicts

Job = Callable[[], object]
THIS = Path(cg.__file__).parent


def module(folder: Path, name: str) -> ModuleType:
    """A compiled module under a name of its own, so that two of one name live side by side."""
    file = next(path for path in folder.glob(f"{name}.*") if path.suffix in (".so", ".pyd"))
    spec = importlib.util.spec_from_file_location(f"build{abs(hash(folder))}.{name}", file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    rng = Random(1)
    weights = [1 / (n + 1) for n in range(20_000)]
    texts = [" ".join(f"w{n}" for n in rng.choices(range(20_000), weights, k=60)) for _ in range(16_384)]
    queries = [text[:40] for text in texts[:50]]
    bm25, shape, parser, transcript = (module(folder, n) for n in ("_bm25", "_shape", "_verdict_parser", "_transcript"))
    large, small = bm25.BM25Index(texts), bm25.BM25Index(texts[:64])
    yield "BM25: index of 16,384 passages", lambda: bm25.BM25Index(texts)
    yield "BM25: 50 queries over 16,384", lambda: [large.search(query, 10) for query in queries]
    yield "BM25: 50 queries over 64", lambda: [small.search(query, 10) for query in queries]
    code = "\n".join(f"    def method_{n}(self, value): return self.table[{n}].find(value)" for n in range(15_000))
    rows = [{"id": n, "name": f"n{n}", "tags": ["a", "b"], "value": n / 7} for n in range(15_000)]
    yield "shape: 1 MB of code", lambda: shape.facts(code)
    lines, array = "\n".join(map(json.dumps, rows)), json.dumps(rows)
    yield "shape: 15,000 JSON lines", lambda: shape.facts(lines)
    yield "shape: JSON array", lambda: shape.facts(array)
    feed = verdicts.Feed()
    feed.setup()
    reply = "".join(feed.pieces)
    yield "verdicts: 30 replies of 28 KB", lambda: [parser.decode_codes(reply, verdicts.LABELS) for _ in range(30)]
    for kind in verdicts.UNITS:
        hostile = verdicts.reply(kind, 100_000)
        yield f"verdicts: {kind}, 100 KB", lambda hostile=hostile: parser.decode_codes(hostile, verdicts.LABELS)
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": code[n : n + 4000]} for n in range(300)]
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": results}]}).encode()
    yield "transcript: body of 1.3 MB", lambda: transcript.Scan(body, transcript.TextToken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    for (name, other), (_, this) in zip(jobs(options.other), jobs(THIS), strict=True):
        best = {other: 10**18, this: 10**18}
        for n in range(options.repeats):
            for job in (other, this)[:: -1 if n % 2 else 1]:
                start = time.process_time_ns()
                job()
                best[job] = min(best[job], time.process_time_ns() - start)
        print(f"{name:34} {best[other] / 1e6:9.3f} {best[this] / 1e6:9.3f}  {best[this] / best[other]:.3f}", flush=True)


if __name__ == "__main__":
    main()
