"""What a byte costs, kind by kind, of this build and of another one beside it:

python bench/fuzz/verdict_speed.py --beside OTHER/src/cg/_verdict_parser.*.so

Every kind of bench/benchmarks/verdicts.py and a list of hostile units, repeated to 100 KB and 4 MB, then an answer. The two
builds take turns; best of --repeats, nanoseconds of CPU a byte. The first line is the 28 KB reply of `verdicts.Feed`, in µs.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cg import _verdict_parser

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import verdicts

HOSTILE = (
    "[", "{", "[[],", '["', "['", "[\u201c", '{"', "{'", "[.", "[//", '[""//', '[""/*', "[“”//", '["",//', "{i:a", "{i:", '{"i":', '{":',
    "{':", '":\\{', '["[",', '["x",[', '{"a":[', '{"verdict":[', '{verdict:{', "[{i:0,verdict:drop},", "[[{i:0,verdict:drop}],",
    "{i:0,verdict:drop}", "{i:0,verdict:drop}[", "{i:0,verdict:keep} ", '["\\', "[\\", "\\", "\x00", "<", "</think", "<think>",
    "</think>", "< think ", "<think a", "\u25c1", "\uff1c", "[THINK", "[THINK]", "- [ ]", " [ ]", "\n\n[ ]", "[[[[]]]]", "[]", "{}", "[{}", "[{},",
    "{a:{}", "{a:[],b:", '{"":1,', '[{"a":"x\\"', "[1,", "[1", "[/**/", "[/*", "[#", "[ #", "[\n", "{i:1,i:2,", '{"needed\\_by":',
    "\u3000[", "\u200b", "]", "}", "'", '"', "[\u2026", "[...", "\ud800",
)  # fmt: skip
ONE_STRING = ("[“", "['", '["[', "[{a:'", "[“[[“")  # as many candidates as brackets, all of them cut in one string
Decoder = Callable[[str | bytes, Any], Any]


def module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("other._verdict_parser", path)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def best(decoders: list[Decoder], reply: str | bytes, repeats: int) -> list[float]:
    """Seconds of CPU, the decoders in turns."""
    found = [float("inf")] * len(decoders)
    for _ in range(repeats):
        for k, decode in enumerate(decoders):
            begin = time.process_time_ns()
            decode(reply, verdicts.LABELS)
            found[k] = min(found[k], (time.process_time_ns() - begin) / 1e9)
    return found


def hostile(unit: str, size_bytes: int) -> bytes:
    unit_bytes = unit.encode("utf-8", "surrogatepass")
    return unit_bytes * (size_bytes // len(unit_bytes)) + verdicts.ANSWER.encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", help="the compiled module of another build")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 4_000_000])
    options = parser.parse_args()
    decoders = [_verdict_parser.decode_codes]
    if options.beside:
        decoders.insert(0, module(options.beside).decode_codes)
    feed = verdicts.Feed()
    feed.setup()
    normal = "".join(feed.pieces)
    print(f"{'28 KB reply, µs':24}", *(f"{seconds * 1e6:9.1f}" for seconds in best(decoders, normal, 300)))
    kinds = {kind: lambda size, kind=kind: verdicts.reply(kind, size) for kind in ("clean_array", *verdicts.UNITS)}
    kinds |= {repr(unit): lambda size, unit=unit: hostile(unit, size) for unit in HOSTILE}
    kinds |= {f"{unit!r}, long": lambda size, unit=unit: (unit + " " * 900) * (size // 900) for unit in ONE_STRING}
    for kind, make in kinds.items():
        row: list[str] = []
        for size in options.sizes:
            reply = make(size)
            for decode, seconds in zip(decoders, best(decoders, reply, options.repeats), strict=True):
                reason = decode(reply, verdicts.LABELS)[1]
                row.append(f"{seconds * 1e9 / len(reply):9.2f}{'!' if reason == 7 else ' '}")
        print(f"{kind:24}", *row, flush=True)


if __name__ == "__main__":
    main()
