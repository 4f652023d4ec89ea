"""What free rules keep and drop along their thresholds, at many moments of every recording, apart from any price."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cg.replay.reporting.page.plots import line, words
from cg.replay.reporting.resampling import LEVEL, RESAMPLES, SEED
from studies.drawing import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, document, dot, key, stroke
from studies.measure import Results
from studies.moments import EVERY, FLOOR_TOKENS, LIVE, SPENT
from studies.study import bounds, markdown

KEPT = (0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 40)
LATER = (0, 2, 4, 8, 12, 16, 24, 32, 48)
NAMED_WITHIN = 16  # messages: the last eight turns

COLUMNS = np.dtype(
    [
        ("session", "i4"),
        ("is_cold", "?"),
        ("tokens", "f8"),
        ("newer", "i4"),
        ("later_turns", "i4"),
        ("has_names", "?"),
        ("references", "i4"),
        ("since", "i4"),
        ("label", "i4"),
    ]
)
Rows = npt.NDArray[np.void]  # of COLUMNS, one row for each output at each moment
Flags = npt.NDArray[np.bool_]
Rule = Callable[[Rows, float], Flags]  # (rows, threshold) -> which are dropped


def rows_of(results: Results) -> Rows:
    """All that the rules had before them."""
    found = [
        (n, m.is_cold, s.tokens, s.newer, s.later_turns, s.has_names, s.references, s.since, s.label)
        for n, session in enumerate(results.sessions)
        for m in session.moments
        for s in m.seen
    ]
    return np.array(found, dtype=COLUMNS)


def everything(rows: Rows, _: float) -> Flags:
    return np.ones(len(rows), bool)


def recency(rows: Rows, kept: float) -> Flags:
    """All but the newest `kept`."""
    return np.asarray(rows["newer"] >= kept)


def age(rows: Rows, turns: float) -> Flags:
    """All with at least so many turns after them."""
    return np.asarray(rows["later_turns"] >= turns)


def index(rows: Rows, turns: float) -> Flags:
    """Those that brought names nobody used, with at least so many turns after them."""
    return np.asarray(rows["has_names"] & (rows["references"] == 0) & age(rows, turns))


def rescued(rows: Rows, kept: float) -> Flags:
    """All but the newest `kept` and those that were named in the last eight turns."""
    lately = (rows["references"] > 0) & (rows["since"] < NAMED_WITHIN)
    return np.asarray(recency(rows, kept) & ~lately)


RULES: dict[str, tuple[Rule, tuple[float, ...]]] = {
    "recency, newest kept": (recency, KEPT),
    "age, turns after it": (age, LATER),
    "index, turns after it": (index, LATER),
    "recency with rescue, newest kept": (rescued, KEPT),
    "drop everything": (everything, (0,)),
}


@dataclass(frozen=True, slots=True)
class Kept:
    """What one threshold does: outputs as counts, and the spent ones' tokens as a share."""

    live_kept: int
    live: int
    spent_dropped: int
    spent: int
    spent_tokens: float
    dropped: int
    unsure_dropped: int

    @property
    def live_share(self) -> float:
        return self.live_kept / self.live if self.live else 1.0


def kept(rows: Rows, dropped: Flags) -> Kept:
    """The counts of a rule's choice."""
    live, spent = rows["label"] == LIVE, rows["label"] == SPENT
    tokens = float(rows["tokens"][spent].sum())
    return Kept(
        live_kept=int((live & ~dropped).sum()),
        live=int(live.sum()),
        spent_dropped=int((spent & dropped).sum()),
        spent=int(spent.sum()),
        spent_tokens=float(rows["tokens"][spent & dropped].sum()) / tokens if tokens else 0.0,
        dropped=int(dropped.sum()),
        unsure_dropped=int((~live & ~spent & dropped).sum()),
    )


def curves(rows: Rows) -> dict[str, list[tuple[float, Kept]]]:
    """(threshold, counts) of every rule."""
    return {
        name: [(threshold, kept(rows, rule(rows, threshold))) for threshold in thresholds]
        for name, (rule, thresholds) in RULES.items()
    }


# -- a rule that is learnt, held out by session --------------------------------------------------------------------------


def features(rows: Rows) -> npt.NDArray[np.float64]:
    """What is known of an output at the moment, as columns."""
    lately = (rows["references"] > 0) & (rows["since"] < NAMED_WITHIN)
    columns = [
        np.ones(len(rows)),
        np.log1p(rows["later_turns"]),
        np.log1p(rows["newer"]),
        np.log(rows["tokens"]),
        rows["has_names"],
        np.log1p(rows["references"]),
        lately,
    ]
    return np.stack(columns, axis=1).astype(float)


def fitted(rows: Rows, ridge: float = 1.0) -> npt.NDArray[np.float64]:
    """Weights of a logistic rule for live against spent, by Newton's method with a small ridge."""
    sure = rows[(rows["label"] == LIVE) | (rows["label"] == SPENT)]
    x, y = features(sure), (sure["label"] == LIVE).astype(float)
    w = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        slope = x.T @ (y - p) - ridge * w
        bend = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(len(w))
        step = np.linalg.solve(bend, slope)
        w = w + step
        if float(np.abs(step).max()) < 1e-9:
            break
    return w


def held_out(rows: Rows) -> npt.NDArray[np.float64]:
    """The learnt score of each row, from weights that never saw its session: the higher, the more likely live."""
    scores = np.zeros(len(rows))
    for session in np.unique(rows["session"]):
        own = rows["session"] == session
        scores[own] = features(rows[own]) @ fitted(rows[~own])
    return scores


def spent_at(rows: Rows, scores: npt.NDArray[np.float64], live_lost: float) -> float:
    """The share of spent tokens below the score under which this share of the live outputs lies."""
    live, spent = rows["label"] == LIVE, rows["label"] == SPENT
    if not live.any() or not spent.any():
        return 0.0
    limit = np.quantile(scores[live], live_lost)
    return float(rows["tokens"][spent & (scores < limit)].sum() / rows["tokens"][spent].sum())


LOST = (0.02, 0.05, 0.1, 0.2, 0.3)


def against_recency(rows: Rows) -> list[list[str]]:
    """At equal shares of live outputs lost: the spent tokens gone by each score, and the difference from recency.

    Recency is scored by how new an output is, with age in turns where that is equal, so that it is a curve without steps.
    """
    scores = {
        "recency": -(rows["newer"] + 1e-4 * rows["later_turns"]).astype(float),
        "index": index_score(rows),
        "learnt, held out": held_out(rows),
    }
    lines = []
    for lost in LOST:
        for name, score in scores.items():
            own = spent_at(rows, score, lost)
            line = [f"{lost:.0%}", name, f"{own:.1%}"]
            if name == "recency":
                lines.append([*line, "", ""])
                continue
            base = spent_at(rows, scores["recency"], lost)
            gained = resampled_gain(rows, score, scores["recency"], lost)
            lines.append([*line, f"{100 * (own - base):+.1f} points", bounds(gained)])
    return lines


def index_score(rows: Rows) -> npt.NDArray[np.float64]:
    """The index as an order: outputs that nobody used, oldest first, then the others by their last use."""
    unused = rows["has_names"] & (rows["references"] == 0)
    return np.where(unused, -1e6 - rows["later_turns"], -rows["since"].astype(float))


def resampled_gain(
    rows: Rows, own: npt.NDArray[np.float64], base: npt.NDArray[np.float64], lost: float, resamples: int = 400
) -> tuple[float, float] | None:
    """Bounds of the difference in `spent_at` under resampled sessions, 5 % and 95 %."""
    sessions = np.unique(rows["session"])
    if len(sessions) < 2:
        return None
    places = {s: np.flatnonzero(rows["session"] == s) for s in sessions}
    rng = np.random.default_rng(SEED)
    gains = []
    for _ in range(min(resamples, RESAMPLES)):
        at = np.concatenate([places[s] for s in rng.choice(sessions, len(sessions))])
        gains.append(spent_at(rows[at], own[at], lost) - spent_at(rows[at], base[at], lost))
    low, high = np.quantile(gains, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


# -- as a page shows them ------------------------------------------------------------------------------------------------


def text(results: Results) -> str:
    """The Markdown of the curves and of the comparison."""
    rows = rows_of(results)
    if not len(rows):
        return "No moment of these recordings has an output to judge."
    parts = []
    for name, some in panels(rows).items():
        found = curves(some)
        lines = [
            [rule, f"{threshold:g}", f"{k.live_kept} of {k.live}", f"{k.live_share:.1%}",
             f"{k.spent_dropped} of {k.spent}", f"{k.spent_tokens:.1%}", f"{k.unsure_dropped}", f"{k.dropped}"]
            for rule, each in found.items() for threshold, k in each
        ]  # fmt: skip
        heads = ["rule", "threshold", "live kept", "", "spent gone", "spent tokens gone", "unsure gone", "gone"]
        n = len(np.unique(some["session"]))
        parts += [f"**{name}** ({len(some):,} outputs times moments, {n} recordings)", markdown(heads, lines)]
    if len(np.unique(rows["session"])) > 1:
        heads = ["live outputs lost", "order", "spent tokens gone", "against recency", "90 % (points)"]
        parts += [
            "**At equal numbers of live outputs lost**, every tenth request and cold ones together; the learnt rule is a "
            "logistic one over age, newer outputs, size, and the index's counters, fitted without the recording it scores.",
            markdown(heads, against_recency(rows)),
        ]
    return "\n\n".join(parts)


def panels(rows: Rows) -> dict[str, Rows]:
    """All moments, and those at which a five-minute entry is gone."""
    cold = rows[rows["is_cold"]]
    found = {f"every {EVERY}th request and cold ones, outputs of {FLOOR_TOKENS}+ tokens": rows}
    return found | ({"cold requests (five minutes) alone": cold} if len(cold) else {})


def plot(results: Results) -> str:
    """Live outputs kept against spent tokens gone, one curve a rule."""
    found = panels(rows_of(results))
    width = (WIDTH - LEFT - RIGHT) / max(1, len(found))
    parts = key(list(RULES), 18)

    def y(share: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    for tick in range(0, 101, 20):
        parts.append(line(LEFT, y(tick / 100), WIDTH - RIGHT, y(tick / 100), "grid" if tick else "axis"))
        parts.append(words(LEFT - 6, y(tick / 100) + 4, f"{tick} %", "tick", "end"))
    for n, (name, rows) in enumerate(found.items()):
        left = LEFT + n * width
        parts += [words(left + 6, TOP - 10, name, "soft"), *_panel(rows, left + 14, width - 52, y)]
        parts.append(
            words(left + width / 2, HEIGHT - 12, "spent tokens gone; upwards: live outputs kept", "soft", "middle")
        )
    return document("Free judges: live outputs kept against spent tokens gone", HEIGHT, parts)


def _panel(rows: Rows, left: float, width: float, y: Callable[[float], float]) -> list[str]:
    parts: list[Any] = [
        words(left + width * tick / 100, HEIGHT - 32, f"{tick} %", "tick", "middle") for tick in range(0, 101, 20)
    ]
    for colour, (name, each) in zip(COLOURS, curves(rows).items(), strict=False):
        at = [(left + width * k.spent_tokens, y(k.live_share), threshold) for threshold, k in each]
        for (x1, y1, _), (x2, y2, _) in zip(at, at[1:], strict=False):
            parts.append(stroke(x1, y1, x2, y2, colour, 1.2))
        parts += [
            dot(x, height, colour, f"{name} {threshold:g}", 5 if len(at) == 1 else 3) for x, height, threshold in at
        ]
    return parts
