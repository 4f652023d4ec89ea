"""The open questions of the sweep's defaults, each as a study."""

from collections.abc import Callable
from dataclasses import replace

from cg.replay.policies import KEEP, Mask, Oracle
from cg.sweep.config import load
from studies.study import Panel, Study
from studies.variants import FAIR, JUDGES, LIFETIMES, PERFECT, Variant, asked_in_request, cold, paid, pinged

WIDTHS_S = (15, 30, 60, 90, 120, 180, 240)
FLOORS = (250, 500, 1000, 2000, 3000)
INVENTORIES = (3, 5, 8, 10, 12, 15)
LENGTHS = (20, 60, 100, 300, 600)
CAP = 12
KEPT = (0, 2, 3, 5, 10, 20, 40)
LATER = (0, 4, 8, 16, 32)


def at_lifetimes(
    series: dict[str, dict[str, Variant]], base: Callable[[int], Variant] | None = None
) -> tuple[Panel, ...]:
    """The same series at both lifetimes."""
    return tuple(
        Panel(
            name,
            {key: {value: v.at(ttl) for value, v in values.items()} for key, values in series.items()},
            base(ttl) if base else None,
        )
        for name, ttl in LIFETIMES.items()
    )


def window() -> Study:
    timer = {f"{w} s": paid(window_s=float(w)) for w in WIDTHS_S}
    request = {f"{w} s": asked_in_request(window_s=float(w)) for w in WIDTHS_S}
    return Study(
        "window",
        "Width of the window before the entry expires",
        "How wide should the last part of a lifetime be in which an ask is due?",
        "`window_s` is varied. Timer: `paid` as shipped. Request: the same settings, but the ask waits for a request of "
        "the client that comes in the window, and its verdicts are applied in that request. The judge is perfect.",
        "window",
        at_lifetimes({"timer": timer, "request": request}, lambda ttl: paid().at(ttl)),
        base="timer at 60 s",
    )


def timing() -> Study:
    def ways(judge: Oracle) -> dict[str, Variant]:
        return {
            "timer, applied when free": paid(judge, apply="free"),
            "timer, applied when free or repaid": paid(judge),
            "timer, applied at once": paid(judge, apply="at-once"),
            "request, applied when repaid": asked_in_request(judge, apply="paid"),
            "request, applied at once": asked_in_request(judge),
        }

    return Study(
        "timing",
        "A timer in the gap, or a request in the window",
        "When should the model be asked, and when should its verdicts be applied?",
        "`ask` and `apply` are varied, all else is as in `paid`. A request in the window applies its own verdicts or "
        "forgets them; verdicts of a timer wait.",
        "when",
        at_lifetimes({judge: ways(who) for judge, who in JUDGES.items()}, lambda ttl: paid().at(ttl)),
        "dots",
        base="`paid`, perfect",
    )


def inventory() -> Study:
    series = {
        f"floor {floor:,}": {str(n): paid(min_tokens=floor, min_inventory=n, ask_cap=max(CAP, n)) for n in INVENTORIES}
        for floor in FLOORS
    }
    return Study(
        "inventory",
        "Smallest output and fewest candidates",
        "From which size on is an output a candidate, and how many of them make an ask?",
        f"`min_tokens` and `min_inventory` are varied, all else is as in `paid`; the cap is {CAP}, or the inventory where "
        "that is larger. The judge is perfect.",
        "inventory",
        at_lifetimes(series, lambda ttl: paid().at(ttl)),
        "grid",
        base="`paid` (500, 10)",
    )


def which() -> Study:
    def ways(judge: Oracle, floor: int) -> dict[str, Variant]:
        oldest = paid(judge, min_tokens=floor)
        return {
            "oldest 12": oldest,
            "largest 12": paid(judge, min_tokens=floor, select="largest"),
            "oldest 6, then largest": replace(oldest, way="mixed"),
            "oldest 40": paid(judge, min_tokens=floor, ask_cap=40),
        }

    series = {"perfect, floor 500": ways(PERFECT, 500)}
    series |= {f"{name}, floor 250": ways(who, 250) for name, who in JUDGES.items()}
    return Study(
        "which",
        "Which twelve candidates",
        "When there are more candidates than one ask takes, which of them should it take?",
        "`select` and `ask_cap` are varied, all else is as in `paid`. The mixed choice is no configuration: it takes six "
        "by age and fills up by size.",
        "asked about",
        at_lifetimes(series, lambda ttl: paid().at(ttl)),
        "dots",
        base="`paid`, perfect",
    )


def length() -> Study:
    series = {name: {str(n): replace(paid(who), verdict_tokens=n) for n in LENGTHS} for name, who in JUDGES.items()}
    return Study(
        "verdict-length",
        "What a verdict's length does to the ask's worth",
        "How many output tokens may a verdict have before the ask costs more than it brings?",
        "The output tokens of each verdict are varied, all else is as in `paid`. Whether to ask is decided as the sweep "
        "decides it, from its own estimate of the length, so the same asks are made at every length.",
        "tokens a verdict",
        at_lifetimes(series),
    )


def again() -> Study:
    def asks(judge: Oracle, **keys: int) -> dict[str, Variant]:
        one = paid(judge, **keys)
        return {"1": one, "2": replace(one, way="ask 2"), "3": replace(one, way="ask 3")}

    series = {name: asks(who) for name, who in JUDGES.items()}
    series["perfect, inventory 3"] = asks(PERFECT, min_inventory=3)
    return Study(
        "second-ask",
        "Whether a second ask pays",
        "In a long wait, should the model be asked again when the entry that the first ask renewed is about to expire?",
        "The most asks in one gap are varied; a later one is made a lifetime less window after the one before, about what "
        "it left undecided or kept, if the sweep's own sums call it worth its price. All else is as in `paid`.",
        "asks a gap",
        at_lifetimes(series, lambda ttl: paid().at(ttl)),
        base="`paid`, perfect",
    )


def keep_alive() -> Study:
    ttl = LIFETIMES["5 min"]
    asked = paid()
    series = {
        "pings alone": {str(n): pinged(n).at(ttl) for n in (1, 2, 3, 5, 12)},
        "`cold`, pings": {str(n): cold(pings=n).at(ttl) for n in (0, 1, 2)},
        "`cold`, by worth alone": {str(n): replace(cold(pings=n), way="ping by worth", ttl_s=ttl) for n in (1, 2)},
        "`cold`, always": {str(n): replace(cold(pings=n), way="ping always", ttl_s=ttl) for n in (1, 2, 3)},
        "`paid`, always": {str(n): replace(paid(pings=n), way="ping always", ttl_s=ttl) for n in (0, 1, 2, 3)},
        "`paid`, asks a gap": {
            "1": asked.at(ttl),
            "2": replace(asked, way="ask 2", ttl_s=ttl),
            "3": replace(asked, way="ask 3", ttl_s=ttl),
        },
    }
    return Study(
        "keep-alive",
        "Keeping the entry alive, by pings and by asks",
        "How often should an idle entry be renewed, and is an ask a good way to do it?",
        "`pings` is varied alone, under `cold` and under `paid`; the last series renews by asks. 'always': whenever one is due; "
        "'by worth alone': without the bound on what pings may lose. Five-minute entries only: "
        "at one hour the sweep sends none. 'after the end' is what the same policy would spend behind the last request of "
        "every recording if nobody came back.",
        "at most",
        (Panel("5 min", series, cold(pings=0).at(ttl)),),
        "dots",
        base="`cold` without pings",
    )


def spare() -> Study:
    def both(with_it: Variant) -> dict[str, Variant]:
        assert with_it.config is not None
        return {"on": with_it, "off": replace(with_it, config=replace(with_it.config, spare_breakpoint=False))}

    ways = {
        "`cold`": cold(),
        "`paid`, perfect": paid(),
        "`paid`, applied at once": paid(apply="at-once"),
        "request in the window": asked_in_request(),
    }
    panels = [
        Panel(f"{lifetime}, {name}", {"": both(way.at(ttl))}, both(way.at(ttl))["off"])
        for lifetime, ttl in LIFETIMES.items()
        for name, way in ways.items()
    ]
    return Study(
        "spare-breakpoint",
        "The extra breakpoint",
        "Does a cache breakpoint before the first removed output pay?",
        "`spare_breakpoint` is switched, all else stays.",
        "breakpoint",
        tuple(panels),
        "dots",
        base="off",
    )


def free_rules() -> Study:
    index = replace(load(preset="cold"), judge="index", pings=0, keep_newest=0)
    series = {
        "recency, newest kept": {str(k): cold(pings=0, keep_newest=k) for k in KEPT},
        "index, turns after it": {str(n): Variant(replace(index, min_later_turns=n)) for n in LATER},
    }
    return Study(
        "free-judges",
        "The judges that ask nobody",
        "How much that is still needed does each free rule remove, and how much that is spent?",
        "First each rule in the sweep, with its threshold varied: outputs of 250 tokens and more go at cold requests only, "
        "no pings. Newest kept 0 is drop-everything at cold requests.",
        "threshold",
        at_lifetimes(series, lambda ttl: cold(pings=0).at(ttl)),
        "dots",
        base="recency 10",
    )


def policies() -> Study:
    def series(ttl: int | None) -> dict[str, dict[str, Variant]]:
        rules = {
            "mask-all-but-k": Variant(mask=Mask(KEEP)),
            "drop-all": Variant(mask=Mask(None)),
            "cold": cold(),
            "cold, no ping": cold(pings=0),
            "paid/recency": Variant(replace(load(preset="paid"), judge="recency", keep_newest=KEEP)),
            "paid/index": Variant(replace(load(preset="paid"), judge="index")),
        }
        asks = {
            "classic/oracle": Variant(load(preset="classic"), PERFECT),
            "paid/oracle, 600 a verdict": replace(paid(), verdict_tokens=600),
            "paid/oracle, 60 a verdict": paid(),
            "paid/oracle, 20 a verdict": replace(paid(), verdict_tokens=20),
            "paid/oracle:80/10": paid(FAIR),
            "paid/oracle, 20, inventory 3, cap 40": replace(paid(min_inventory=3, ask_cap=40), verdict_tokens=20),
        }
        both = {"rules": rules, "asks": asks}
        return {key: {name: v.at(ttl) for name, v in found.items()} for key, found in both.items()}

    lifetimes: dict[str, int | None] = {"as recorded": None, **LIFETIMES}
    return Study(
        "policies",
        "Every policy on the recordings",
        "What would each policy have saved, and what would it have lost?",
        "The presets as shipped, judges by hindsight or by rule; verdicts of 60 tokens unless said.",
        "policy",
        tuple(Panel(name, series(ttl)) for name, ttl in lifetimes.items()),
        "dots",
    )


def every() -> tuple[Study, ...]:
    """All studies, in the order in which they are read."""
    return (
        policies(), window(), timing(), inventory(), which(), length(), again(), keep_alive(), spare(), free_rules(),
    )  # fmt: skip
