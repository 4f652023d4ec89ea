"""How the tool outputs of the recorded sessions are classified, and how often that is right where somebody looked.

python bench/shape_kinds.py            writes bench/shape_kinds.md
python bench/shape_kinds.py --sample N prints N outputs to label, stratified by kind, with the keys that labels go under

bench/data/shape_labels.json holds the labels: content key -> every kind that a careful reader would accept, judged from the
call and the front, middle and end of the output.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from cg.shape import Kind, content_key, describe

HERE = Path(__file__).parent
SESSIONS = HERE.parent / "tests" / "data" / "transcripts"
LABELS = HERE / "data" / "shape_labels.json"
SEED = 7


def tool_outputs() -> Iterator[tuple[str, str]]:
    """(the call that made it, the output) for every tool output of the recorded sessions."""
    for entry in json.loads((SESSIONS / "manifest.json").read_text("utf-8"))["transcripts"]:
        calls: dict[str, str] = {}
        for event in json.loads((SESSIONS / f"{entry['name']}.json").read_text("utf-8"))["events"]:
            for block in event["content"]:
                if block["type"] == "tool_use":
                    calls[block["id"]] = f"{block['name']} {json.dumps(block['input'])}"
                elif block["type"] == "tool_result":
                    yield calls.get(block["tool_use_id"], "?"), block["content"]


def stratified(size: int) -> list[tuple[str, str, str]]:
    """(kind, call, output): distinct outputs, all of a rare kind, and the same number of each frequent one."""
    groups: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for call, text in tool_outputs():
        groups[describe(text).kind.value].setdefault(text, (call, text))
    rng = random.Random(SEED)
    order = {kind: rng.sample(list(group.values()), len(group)) for kind, group in sorted(groups.items())}
    chosen: list[tuple[str, str, str]] = []
    rank = 0
    while len(chosen) < size and any(rank < len(group) for group in order.values()):
        chosen += [(kind, *group[rank]) for kind, group in order.items() if rank < len(group)]
        rank += 1
    return chosen[:size]


def table(labels: dict[str, list[str]]) -> str:
    """The Markdown table: outputs, their share of the bytes, and precision over the labelled ones."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    seen: set[str] = set()
    for _, text in tool_outputs():
        shape, key = describe(text), content_key(text)
        count[shape.kind.value] += 1
        size[shape.kind.value] += shape.size_bytes
        if key in labels and key not in seen:
            seen.add(key)
            looked[shape.kind.value] += 1
            right[shape.kind.value] += shape.kind.value in labels[key]
    total, total_bytes = count.total(), size.total()
    rows = [
        "# The kinds of recorded outputs",
        "",
        f"{total:,} tool outputs, {total_bytes:,} bytes; {looked.total()} distinct outputs read by hand, "
        f"{right.total()} of them rightly named.",
        "",
        "| kind | outputs | share | share of bytes | read by hand | right | precision |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in sorted(Kind, key=lambda kind: -count[kind.value]):
        k = kind.value
        precision = f"{right[k] / looked[k]:.2f}" if looked[k] else "-"
        rows.append(
            f"| {k} | {count[k]} | {count[k] / total:.1%} | {size[k] / total_bytes:.1%} "
            f"| {looked[k]} | {right[k]} | {precision} |"
        )
    return "\n".join([*rows, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, metavar="N")
    size = parser.parse_args().sample
    if size is None:
        text = table(json.loads(LABELS.read_text("utf-8")))
        (HERE / "shape_kinds.md").write_text(text, "utf-8")
        print(text)
        return
    for number, (kind, call, text) in enumerate(stratified(size)):
        print(f"### {number} {content_key(text)[:16]} {kind} <- {call[:150]}\n{text[:600]}\n")


if __name__ == "__main__":
    main()
