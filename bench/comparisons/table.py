"""Print a pytest-benchmark file as Markdown: median, ratio to the fastest other library that is right, correctness.

python bench/comparisons/table.py bm25.json
"""

import json
import sys
from itertools import groupby
from typing import Any

RIGHT = 1.0  # the share of queries that a peer must answer exactly to be the one that others are compared with


def rows(benchmarks: list[dict[str, Any]]) -> list[str]:
    """The lines of one table; `benchmarks` belong to one group."""
    by_time = sorted(benchmarks, key=lambda row: row["stats"]["median"])
    exact = [row for row in by_time if row["extra_info"]["correct"] >= RIGHT and row["extra_info"]["peer"] != "cg"]
    unit = exact[0]["stats"]["median"] if exact else None
    lines = ["| library | median µs | ratio | exact rankings | ties in order |", "| --- | --- | --- | --- | --- |"]
    for row in by_time:
        median, info = row["stats"]["median"], row["extra_info"]
        ratio = f"{median / unit:.2f}" if unit else "-"
        lines.append(
            f"| {info['peer']} | {median * 1e6:,.1f} | {ratio} | {info['correct']:.0%} | {info['ties_in_order']:.0%} |"
        )
    return lines


def main(path: str) -> None:
    """One table a group."""
    with open(path, encoding="utf-8") as file:
        benchmarks = [row for row in json.load(file)["benchmarks"] if "correct" in row["extra_info"]]
    for group, found in groupby(sorted(benchmarks, key=lambda row: row["group"]), key=lambda row: row["group"]):
        print(f"\n### {group}\n", *rows(list(found)), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
