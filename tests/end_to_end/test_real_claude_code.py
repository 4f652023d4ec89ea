"""Claude Code itself through the gateway: each session ends as it does without, and its transcript is the same.

Runs where `CG_CLAUDE_BIN` names the binary; needs no login and no network. The upstream is scripted, its clock moves
only when the script says so, and the gateway reads the same clock.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import scripts
import workspace
from clients import Ended, claude_binary, main_requests, run_claude
from fake_upstream import FakeUpstream
from relay import relay
from served import Gateway, address, gateway

from cg.sweep.body.transcript import read
from cg.sweep.config import Config, load
from cg.sweep.prices import PriceTable, cost_usd
from cg.sweep.values import usage_of

pytestmark = pytest.mark.skipif(
    not os.environ.get("CG_CLAUDE_BIN") or claude_binary() is None, reason="CG_CLAUDE_BIN names no Claude Code binary"
)

START = 1_800_000_000
ALL_OLD = load(preset="cold", flags={"keep_newest": 0, "pings": 0})  # at a cold request every large output goes
Runs = Callable[[str], Ended]


@dataclass
class Place:
    """Folders whose names are the same in each run, since the client tells them to the model."""

    root: Path

    @property
    def repo(self) -> Path:
        return self.root / "place" / "repo"  # a parent of its own: `ls -la` shows when that was changed

    @property
    def home(self) -> Path:
        return self.root / "home"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    workspace.make(found.repo)
    return found


def prompt(place: Place, *more: str, **options: Any) -> Runs:
    """One prompt in one process."""
    return lambda url: run_claude(place.home, place.repo, url, "-p", "Read every module.", *more, **options)


@dataclass
class Seen:
    """A run with what the upstream saw of it."""

    ended: Ended
    requests: list[dict[str, Any]]  # of the conversation itself
    everything: list[dict[str, Any]]
    stats: dict[str, Any]

    @property
    def statuses(self) -> list[int]:
        return [r["status"] for r in self.requests]

    @property
    def usd(self) -> float:
        """What all of it cost, by the upstream's own usage."""
        found = [(json.loads(r["body"])["model"], usage_of(r["usage"])) for r in self.everything if r.get("reply")]
        costs = [cost_usd(u, PriceTable.default().price(model)) for model, u in found if u is not None]
        return sum(c for c in costs if c is not None)


def upstream(script: Any) -> FakeUpstream:
    return FakeUpstream(script, clock="manual", clock_start=START)


def unaided(
    place: Place, script: Any, run: Runs, between: Callable[[str], AbstractContextManager[str]] = nullcontext
) -> Seen:
    """Without a gateway: straight to the upstream, or through something else that stands `between`."""
    shutil.rmtree(place.home, ignore_errors=True)
    with upstream(script) as up, between(up.base_url) as url:
        ended = run(url)
        return Seen(ended, main_requests(up), list(up.requests), {})


def aided(
    place: Place, script: Any, run: Runs, config: Config = ALL_OLD, check: Callable[[Gateway], None] | None = None
) -> Seen:
    """Through the gateway."""
    shutil.rmtree(place.home, ignore_errors=True)
    with upstream(script) as up, gateway(up, config, state=place.root / "state.db") as live:
        ended = run(live.url)
        if check:
            check(live)
        return Seen(ended, main_requests(up), list(up.requests), live.stats())


def ends_alike(one: Seen, other: Seen) -> None:
    """Both ended alike, as the client tells it."""
    a, b = one.ended, other.ended
    assert (a.exit_code, a.said, a.is_error) == (b.exit_code, b.said, b.is_error), b.stderr


def same(one: Seen, other: Seen) -> None:
    """Both ended alike, as the client tells it and as it keeps it."""
    ends_alike(one, other)
    a, b = one.ended, other.ended
    assert len(a.transcript) == len(b.transcript)
    for row, twin in zip(a.transcript, b.transcript, strict=True):
        assert row == twin


def is_booked_whole(seen: Seen) -> None:
    """The gateway's figures hold every token that the upstream billed, each once: turns, asks and inner calls."""
    billed: Counter[str] = Counter()
    for record in seen.everything:
        if record.get("reply"):
            usage = usage_of(record["usage"])
            assert usage is not None
            billed.update(asdict(usage))
    booked: Counter[str] = Counter()
    for tiers in seen.stats["tokens"].values():
        booked.update(tiers)
    assert booked == +billed


def replaced(seen: Seen) -> list[dict[tuple[str, int], str]]:
    """Of each request what stands in the place of removed outputs."""
    return [
        {(t.tool_use_id, t.block): t.text for t in read(r["body"].encode()).tool_texts if t.has_marker}
        for r in seen.requests
    ]


def test_a_relay_that_does_nothing_changes_nothing(place: Place) -> None:
    """What is compared below can be compared: two runs of which none had a gateway are the same."""
    script = scripts.routes(scripts.reads(place.repo))
    same(unaided(place, script, prompt(place)), unaided(place, script, prompt(place), relay))


def test_a_session_of_18_requests_is_the_same_and_costs_less(place: Place) -> None:
    """Two long waits: at each cold request that follows, old outputs go, and what was removed stays as written."""
    script = scripts.routes(scripts.reads(place.repo, gaps=(8, 14)))
    without, through = unaided(place, script, prompt(place)), aided(place, script, prompt(place))
    same(without, through)
    assert without.ended.said == scripts.FINAL
    assert through.statuses == [200] * 18 == without.statuses
    left = replaced(through)
    assert [len(markers) for markers in left[:8]] == [0] * 8
    assert len(left[8]) >= 4
    assert len(left[14]) > len(left[8])
    for before, after in zip(left, left[1:], strict=False):
        assert before.items() <= after.items(), "a removal changed or came back"
    assert through.stats["removed"]["outputs"] == len(left[-1])
    assert through.usd < without.usd
    is_booked_whole(through)


def test_marks_of_an_hour_carry_the_same_session_over_its_waits(place: Place) -> None:
    """The client asks for five minutes: after each long wait an hour's entries are read, and nothing else differs."""
    script = scripts.routes(scripts.reads(place.repo, gaps=(8, 14)))
    an_hour = load(flags={"lifetime": "1h", "judge": "model"})  # nobody is asked: only lifetimes are written
    without, through = unaided(place, script, prompt(place)), aided(place, script, prompt(place), an_hour)
    same(without, through)
    assert through.statuses == [200] * 18 == without.statuses
    usages = [[usage_of(request["usage"]) for request in seen.requests] for seen in (without, through)]
    for five_minutes, hour in zip(*usages, strict=True):
        assert five_minutes is not None and hour is not None
        prompts = [u.fresh + u.read + u.write_5m + u.write_1h for u in (five_minutes, hour)]
        assert prompts[0] == prompts[1] and hour.write_5m == five_minutes.write_1h == 0
    lost, kept = ([n for n, u in enumerate(seen) if n and u is not None and not u.read] for seen in usages)
    assert lost == [8, 14] and kept == []
    assert through.usd < without.usd
    assert through.stats["lifetime"]["events"]["sweep_lifetime_written"] == 18
    is_booked_whole(through)


def test_with_the_default_policy_the_model_is_asked_in_the_gap(place: Place) -> None:
    """The ask reads the cache and writes nothing; what it calls spent goes at the next cold request."""
    turns = scripts.reads(place.repo)
    turns[12] = {"tools": [scripts.bash("sleep 3")], "advance_s": 245}  # the ask falls due while the tool runs
    spent = {"labels": r"^\[(\d+)\] ", "item": {"i": "$label", "needed_by": "none", "verdict": "drop"}}
    ask = {"name": "ask", "match": {"tool_choice": "none"}, "then": "repeat"}
    ask["turns"] = [{"verdicts": spent, "advance_s": scripts.GAP_S}]
    config = load(preset="paid", flags={"min_tokens": 50, "min_inventory": 5, "ask_cap": 40})
    through = aided(place, scripts.routes(turns, ask), prompt(place), config)
    asks = [r for r in through.everything if r.get("route") == "ask"]
    assert len(asks) == 1
    assert asks[0]["usage"]["cache_read_input_tokens"] > 0
    assert asks[0]["usage"]["cache_creation_input_tokens"] == 0
    assert through.ended.said == scripts.FINAL
    assert through.statuses == [200] * 18
    assert len(replaced(through)[13]) > 0
    assert through.stats["asks"]["outcomes"] == {"dropped": 1}
    is_booked_whole(through)


def test_a_reply_that_only_expands_is_answered_inside(place: Place) -> None:
    """The client sees one message: the opening text, its thinking, and what the model said once it had the output."""
    through = aided(place, scripts.routes(scripts.hidden(place.repo)), prompt(place))
    same(unaided(place, scripts.routes(scripts.hidden_unaided(place.repo)), prompt(place)), through)
    assert through.stats["recoveries"]["hidden"] == {"original": 1}
    assert "cg_expand" not in json.dumps(through.ended.transcript)
    is_booked_whole(through)
    module = (place.repo / "src" / "mod_01.py").read_text("utf-8").splitlines()
    inner = through.requests[8]["json"]["messages"][-1]["content"]
    assert all(line in json.dumps(inner) for line in (json.dumps(text)[1:-1] for text in module[:104]))


def test_a_mixed_reply_passes_and_its_error_is_replaced_upstream(place: Place) -> None:
    """The client does not know the tool and says so; the model reads the output in the place of that error."""
    script = scripts.routes(scripts.shown(place.repo))
    without, through = unaided(place, script, prompt(place)), aided(place, script, prompt(place))
    same(without, through)
    assert "No such tool available: cg_expand" in json.dumps(through.ended.transcript)
    assert through.statuses == [200] * len(without.statuses)
    bodies = [r["body"] for r in through.requests[8:]]
    assert all("No such tool available" not in body for body in bodies)
    assert all("handler_01_39" in body for body in bodies)


def test_a_compaction_is_the_same_and_an_unchanged_read_is_restored(place: Place) -> None:
    """Three prompts in one process; a read that the client will not repeat brings the removed output back."""
    prompts = ["Read the large file.", "Now list.", "/compact", "Where are we?"]
    script = scripts.routes(scripts.compaction(place.repo))

    def run(url: str) -> Ended:
        return run_claude(place.home, place.repo, url, prompts=prompts)

    without, through = unaided(place, script, run), aided(place, script, run)
    same(without, through)
    assert through.ended.said == "Third answer."
    assert through.stats["components"]["sweep"]["events"]["sweep_restored"] == 1
    assert any(r.get("route") == "compact" for r in through.everything)
    assert all(r["status"] == 200 for r in through.everything)


def test_a_sub_agent_is_a_conversation_of_its_own(place: Place) -> None:
    """Its requests and its parent's are told apart, and both end as they would."""
    script = scripts.subagent(place.repo)
    without, through = unaided(place, script, prompt(place)), aided(place, script, prompt(place))
    same(without, through)
    assert through.ended.said == "Main done."
    assert sum(r.get("route") == "sub" for r in through.everything) == 3
    assert all(r["status"] == 200 for r in through.everything)


def test_a_session_that_is_resumed_in_a_new_process_keeps_its_removals(place: Place) -> None:
    """Client and gateway are both started anew; what was removed before is replayed byte for byte."""
    first = [*scripts.six_reads(place.repo), scripts.turn(scripts.bash("pwd")), {"text": "Part one."}]
    second = [scripts.turn(scripts.bash("ls")), {"text": "Part two."}]
    script = scripts.routes([*first, *second])

    def two_processes(url: Callable[[], AbstractContextManager[str]]) -> Ended:
        with url() as first_address:
            run_claude(place.home, place.repo, first_address, "-p", "One.")
        with url() as second_address:
            return run_claude(place.home, place.repo, second_address, "--continue", "-p", "Two.")

    seen = []
    for is_aided in (False, True):
        shutil.rmtree(place.home, ignore_errors=True)
        with upstream(script) as up:
            state = place.root / "state.db"
            url = partial(address, up, ALL_OLD, state) if is_aided else partial(nullcontext, up.base_url)
            seen.append(Seen(two_processes(url), main_requests(up), list(up.requests), {}))
    without, through = seen
    same(without, through)
    assert through.ended.said == "Part two."
    left = replaced(through)
    assert len(left[7]) == 5  # of six: the last has yet to be read
    assert left[7].items() <= left[8].items()
    assert left[7].items() <= left[9].items()


FAULTS: dict[str, Any] = {  # 400 and 413 stay: a changed body is refused, and so is the original after it
    "529": {"kind": "http_error", "status": 529},
    "500": {"kind": "http_error", "status": 500},
    "429": {"kind": "http_error", "status": 429, "retry_after": 1},
    "400": {"kind": "http_error", "status": 400, "times": 99},
    "413": {"kind": "http_error", "status": 413, "times": 99},
    "502 page": {"kind": "gateway"},
    "cut": {"kind": "cut", "after_events": 6},
    # A reset overtakes bytes that are under way: what the client has seen of the reply by then, and so whether it starts
    # anew or goes on from there, differs from run to run without a gateway too.
    "reset": {"kind": "cut", "after_events": 6, "how": "rst"},
    "error in stream": {"kind": "sse_error", "after_events": 6},
    "max_tokens": {"kind": "max_tokens", "tokens": 5},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_as_it_does_without_the_gateway(place: Place, name: str) -> None:
    """Retries, ends and messages are the client's own; nothing is removed or asked twice for a retry."""
    script = scripts.routes(scripts.faulty(place.repo, FAULTS[name]))
    without, through = unaided(place, script, prompt(place)), aided(place, script, prompt(place))
    ends_alike(without, through)
    if name != "reset":
        same(without, through)
    assert through.stats["removed"]["outputs"] == 5  # of six: the last has yet to be read


@pytest.mark.parametrize("status", [400, 413])
def test_a_refusal_of_a_changed_body_is_not_the_clients_to_bear(place: Place, status: int) -> None:
    """The original is sent once; the run goes on, and what was refused is not removed again."""
    fault = {"kind": "http_error", "status": status}
    through = aided(place, scripts.routes(scripts.faulty(place.repo, fault)), prompt(place))
    assert (through.ended.exit_code, through.ended.said) == (0, scripts.FINAL)
    assert through.stats["resent"] == {str(status): 1}
    left = replaced(through)
    assert len(left[6]) == 5
    assert all(markers == {} for markers in left[7:])
