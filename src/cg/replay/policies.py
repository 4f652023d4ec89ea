"""The closed list of policies that a replay can price, and how they are named."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from cg.errors import CgError
from cg.sweep.config import Config, Lifetime, load

ASKING = ("paid", "classic")
# Another lifetime of the client's marks and nothing else: no judge is there, so that nothing is removed.
LIFETIMES = {
    f"lifetime-{value}": Config(judge="model", lifetime=value) for value in get_args(Lifetime) if value != "client"
}
NAMES = ("none", "quiet", "cold", "paid", "classic", "mask-all-but-k", "drop-all", *LIFETIMES)
DEFAULT = ("none", "quiet", "cold", "paid")
JUDGES = "recency, index, oracle, oracle:SPENT/LIVE (shares dropped, percent), replies"
KEEP = 10  # newest outputs that a mask or recency keeps
MASK_FLOOR_TOKENS = 500  # outputs below are not worth a marker
RATES = re.compile(r"oracle:(\d{1,3})/(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Oracle:
    """A judge that knows the rest of the session, and errs at given rates."""

    drops_spent: float = 1.0  # share of the spent outputs that it drops
    drops_needed: float = 0.0  # share of the live and unsure ones that it drops


@dataclass(frozen=True, slots=True)
class Replies:
    """A judge whose answers were recorded: DIR/SESSION/NNN.txt or .json, one an ask, from 001."""

    folder: Path


@dataclass(frozen=True, slots=True)
class Mask:
    """A rule of old: at every request all outputs but the newest `keep` go; None keeps the newest message's alone."""

    keep: int | None
    min_tokens: int = MASK_FLOOR_TOKENS


@dataclass(frozen=True, slots=True)
class Policy:
    """One column of the comparison; neither `config` nor `mask`: nothing is touched."""

    name: str
    config: Config | None = None
    judge: Oracle | Replies | None = None  # who answers the asks of `config`
    mask: Mask | None = None


NONE = Policy("none")


def parse(
    names: Iterable[str] = (),
    judges: Sequence[str] = (),
    *,
    keep: int = KEEP,
    replies: Path | None = None,
) -> tuple[Policy, ...]:
    """The policies of these names, `none` first, none twice.

    `paid` and `classic` are taken with each of `judges` (default: oracle), or name their own behind a slash. Raises
    CgError for a name or a judge that is none.
    """
    if not 0 <= keep <= 10_000:
        raise CgError(f"keep is {keep}; it must be 0 to 10000 outputs")
    found = {NONE.name: NONE}
    for name in names or DEFAULT:
        base, slash, judge = name.partition("/")
        if base not in NAMES or (slash and base not in ASKING):
            raise CgError(f"policy is {name!r}; it must be one of {', '.join(NAMES)}; paid and classic take /JUDGE")
        for each in [judge] if slash else (judges or ["oracle"]) if base in ASKING else [""]:
            policy = _policy(base, each, keep, replies)
            found.setdefault(policy.name, policy)
    return tuple(found.values())


def _policy(base: str, judge: str, keep: int, replies: Path | None) -> Policy:
    if base == "none":
        return NONE
    if base in ("quiet", "cold"):
        return Policy(base, load(preset=base))
    if base in LIFETIMES:
        return Policy(base, LIFETIMES[base])
    if base == "mask-all-but-k":
        return Policy(base, mask=Mask(keep))
    if base == "drop-all":
        return Policy(base, mask=Mask(None))
    config, name = load(preset=base), f"{base}/{judge}"
    if judge == "recency":
        return Policy(name, replace(config, judge="recency", keep_newest=keep))
    if judge == "index":
        return Policy(name, replace(config, judge="index"))
    if judge == "replies":
        if replies is None:
            raise CgError("judge is 'replies' but no folder of replies was named (--replies DIR)")
        return Policy(name, config, Replies(replies))
    return Policy(name, config, _oracle(judge))


def _oracle(judge: str) -> Oracle:
    if judge == "oracle":
        return Oracle()
    match = RATES.fullmatch(judge)
    if match is None or max(int(match[1]), int(match[2])) > 100:
        raise CgError(f"judge is {judge!r}; it must be one of {JUDGES}")
    return Oracle(int(match[1]) / 100, int(match[2]) / 100)
