"""How the free judges come out against hindsight labels, and what the index costs beside reading the same body.

    python bench/sweep/judges.py [--floor TOKENS] [--speed]

At each labelled cut of the recorded sessions every output of `--floor` tokens and more (bytes / 4) is a candidate.
`live kept`: of the candidates that the session uses later, the share that stays. `spent dropped`: of those it does not
use, the share that goes. Both by number and by tokens; candidates labelled unsure count only under `dropped`. Dropping
everything is the row `recency, keep 0`. Labels and index both credit the latest carrier of a text, which favours the
index; three sessions with nine cuts are a smoke test, not a ranking.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cg.sweep.body.transcript import Transcript, read
from cg.sweep.config import load
from cg.sweep.judging import coreference as index
from cg.sweep.judging import free_judges as judge
from cg.sweep.judging.coreference import Index, Standing
from cg.sweep.judging.inventory import Candidate, eligible
from cg.sweep.values import Thread

SESSIONS = Path(__file__).parents[2] / "tests" / "data" / "transcripts"
BYTES_PER_TOKEN = 4.0  # the label files' own estimate
SPEED_BYTES = 2**20
KEPT_BLOCKS = ("text", "tool_use", "tool_result")

Judge = Callable[[Sequence[Candidate], Index], Iterable[Candidate]]
JUDGES: dict[str, Judge] = {
    **{f"recency, keep {k}": lambda found, _, k=k: judge.recency(found, k).drops for k in (0, 5, 10, 20)},
    "index": lambda found, built: judge.by_index(found, built).drops,
    "index, 20 turns": lambda found, built: [
        one for one in judge.by_index(found, built).drops if one.later_turns >= 20
    ],
    "recency, keep 10, open rescued": lambda found, built: [
        one for one in judge.recency(found, 10).drops if not built.is_open(one.text.identity)
    ],
}


def body_before(session: dict[str, Any], event: int) -> bytes:
    """The request that the assistant's event answers, as a body."""
    messages: list[dict[str, Any]] = []
    for e in session["events"][:event]:
        if e["role"] == "system":
            messages = []  # the client compacted: nothing before is sent again
            continue
        blocks = [{k: v for k, v in b.items() if k != "ts"} for b in e["content"] if b["type"] in KEPT_BLOCKS]
        if blocks:
            messages.append({"role": e["role"], "content": blocks})
    return json.dumps({"model": "m", "max_tokens": 1, "messages": messages}).encode()


def labelled_cuts() -> Iterable[tuple[Transcript, dict[str, str]]]:
    for path in sorted(SESSIONS.glob("*.labels.json")):
        labels = json.loads(path.read_text("utf-8"))
        session = json.loads((SESSIONS / labels["transcript"]).read_text("utf-8"))
        for cut in labels["cuts"]:
            names = {key: value["label"] for key, value in cut["labels"].items()}
            yield read(body_before(session, cut["cut_event"])), names


def share(part: float, whole: float) -> str:
    return f"{part / whole:5.0%}" if whole else "    -"


def quality(floor: int) -> None:
    """Print the classes by label, then each judge's row."""
    classes: dict[Standing, Counter[str]] = defaultdict(Counter)
    rows: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for transcript, labels in labelled_cuts():
        found, _ = eligible(transcript, Thread(), replace(load(preset="paid"), min_tokens=floor), BYTES_PER_TOKEN)
        found = tuple(one for one in found if one.text.tool_use_id in labels)
        built = index.build(transcript)
        for one in found:
            record = built.record(one.text.identity)
            assert record is not None
            classes[record.standing][labels[one.text.tool_use_id]] += 1
        for name, decide in JUDGES.items():
            dropped = {one.text.identity for one in decide(found, built)}
            for one in found:
                label, fate = labels[one.text.tool_use_id], "out" if one.text.identity in dropped else "in"
                rows[name][label, fate] += 1
                rows[name][label + " tokens", fate] += round(one.tokens)
    print(f"class ({floor} tokens and more)   live  unsure  spent")
    for standing, counts in sorted(classes.items()):
        print(f"{standing:28s} {counts['live']:6d} {counts['unsure']:7d} {counts['spent']:6d}")
    print(
        "\njudge                           dropped  live kept (tokens)  spent dropped (tokens)  dropped that were live"
    )
    for name, n in rows.items():
        out = sum(n[label, "out"] for label in ("live", "unsure", "spent"))

        def part(label: str, fate: str, n: Counter[tuple[str, str]] = n) -> str:
            return share(n[label, fate], n[label, "in"] + n[label, "out"])

        print(
            f"{name:32s} {out:6d}   {part('live', 'in')}    {part('live tokens', 'in')}"
            f"        {part('spent', 'out')}    {part('spent tokens', 'out')}             {share(n['live', 'out'], out)}"
        )


def best_ms(work: Callable[[], object], repeats: int = 15) -> float:
    """Least CPU milliseconds of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def megabyte() -> bytes:
    """Recorded messages up to 1 MiB of body, ids made distinct."""
    messages: list[dict[str, Any]] = []
    size = 0
    for n, path in enumerate(sorted(SESSIONS.glob("*-long-*[0-9].json"))):
        session = json.loads(path.read_text("utf-8"))
        for message in json.loads(body_before(session, len(session["events"])))["messages"]:
            for block in message["content"]:
                for key in ("id", "tool_use_id"):
                    if key in block:
                        block[key] = f"{n}_{block[key]}"
            size += len(json.dumps(message))
            if size > SPEED_BYTES:
                return json.dumps({"model": "m", "messages": messages}).encode()
            messages.append(message)
    return json.dumps({"model": "m", "messages": messages}).encode()


def speed() -> None:
    """Print the index's time beside json.loads of the same body."""
    body = megabyte()
    transcript = read(body)
    parse, build = best_ms(lambda: json.loads(body)), best_ms(lambda: index.build(transcript))
    n = len(transcript.tool_texts)
    print(
        f"\n{len(body):,} bytes, {n} outputs: index {build:.1f} ms, json.loads {parse:.1f} ms, ratio {build / parse:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--floor", type=int, default=250)
    parser.add_argument("--speed", action="store_true")
    chosen = parser.parse_args()
    quality(chosen.floor)
    if chosen.speed:
        speed()


if __name__ == "__main__":
    main()
