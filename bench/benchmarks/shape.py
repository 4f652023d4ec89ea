"""Shape: descriptions of texts of several kinds and sizes, and content keys."""

import json
import random

from cg._shape import facts
from cg.shape import content_key, describe

SIZES = [1_000, 20_000, 1 << 20]


def text_of(kind: str, size: int) -> str:
    """About `size` characters of one kind, the same on every run."""
    rng = random.Random(3)
    makers = {
        "source_code": lambda i: f"def f{i}(a, b):\n    return a * {rng.randrange(999)} + b\n",
        "json_lines": lambda i: json.dumps({"id": i, "score": rng.random(), "tags": ["a", "b"]}) + "\n",
        "grep_hits": lambda i: f"src/m{rng.randrange(99)}.py:{i}:    value = {rng.random()}\n",
        "prose": lambda i: f"The cache was cold for the {i} th time, and the prefix had to be written again.\n",
        "not_ascii": lambda i: f"\u7b2c{i}\u6b21\u7684\u7f13\u5b58\u662f\u51b7\u7684\u3002\n",
    }
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(makers[kind](len(parts)))
        length += len(parts[-1])
    return "".join(parts)


class Describe:
    params = (["source_code", "json_lines", "grep_hits", "prose", "not_ascii"], SIZES)
    param_names = ("kind", "characters")

    def setup(self, kind: str, size: int) -> None:
        self.text = text_of(kind, size)

    def time_describe(self, kind: str, size: int) -> None:
        describe(self.text)

    def time_facts_without_vectors(self, kind: str, size: int) -> None:
        facts(self.text, False)


class JsonArray:
    params = (["records", "deep"],)
    param_names = ("form",)

    def setup(self, form: str) -> None:
        rows = text_of("json_lines", 1 << 20).strip().replace("\n", ",")
        self.text = f"[{rows}]" if form == "records" else "[" * (1 << 19) + "]" * (1 << 19)

    def time_describe(self, form: str) -> None:
        describe(self.text)


class Key:
    params = (SIZES,)
    param_names = ("characters",)

    def setup(self, size: int) -> None:
        self.text = text_of("source_code", size)

    def time_content_key(self, size: int) -> None:
        content_key(self.text)


class Memory:
    def setup(self) -> None:
        self.text = text_of("source_code", 1 << 24)

    def peakmem_baseline(self) -> None:
        """The text alone."""

    def peakmem_describe(self) -> None:
        describe(self.text)
