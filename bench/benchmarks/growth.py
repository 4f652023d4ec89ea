"""Cost that must grow with the size and no faster: time per unit at ten times the size over that at the size itself."""

import time

from cg.reuse import items
from cg.sweep.body.splice import splice

EDITS = 10_000
HOSTILE = {
    "letters": "a" * 19_999,
    "digits": "1" * 19_998 + "$",
    "dotted": "a." * 9_999,
    "dots": "." * 19_999,
    "blanks": " " * 19_999,
}


def cpu_s(work, repeats=5):
    """Seconds of processor time, the least of some repeats."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


class Splice:
    """Many small edits of one body: 1.0 is linear, 10 is a copy an edit."""

    def track_growth(self):
        def spent(n):
            body, edits = b"x" * (4 * n), [(4 * i, 4 * i + 2, b"y") for i in range(n)]
            return cpu_s(lambda: splice(body, edits)) / n

        return spent(10 * EDITS) / spent(EDITS)

    track_growth.unit = "ratio"


class Items:
    """Lines of 20,000 characters of a hostile kind, at ten times the lines."""

    params, param_names = [list(HOSTILE)], ["kind"]

    def track_growth(self, kind):
        def spent(n):
            text = "\n".join([HOSTILE[kind]] * n)
            return cpu_s(lambda: items(text)) / n

        return spent(100) / spent(10)

    track_growth.unit = "ratio"
