"""An ask over HTTP: what is taken for an answer, and that nothing the other side does is taken for one."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2")

from wired import ALL_SPENT, EXPAND_TOOL, WORK, Live, Talk, live

from cg.sweep.counters import Decline
from cg.sweep.ledger import Reason, TurnReport

DROPS = json.dumps([{"i": label, "needed_by": "none", "verdict": "drop"} for label in range(12)])


def asked(turn: dict[str, Any], **flags: Any) -> tuple[TurnReport, Mapping[str, float], int]:
    """(report of the request behind an ask that was answered so, all declines, how often the upstream was asked)."""

    async def session(gateway: Live) -> tuple[TurnReport, Mapping[str, float], int]:
        talk = Talk()
        await gateway.post(talk.body())
        await gateway.post(talk.calls(14).body())
        await gateway.wait(241)
        await gateway.post(talk.say("And now?").body())
        return gateway.recorder.turns[-1], gateway.store.totals()["declines"], len(gateway.bodies("ask"))

    async def run() -> tuple[TurnReport, Mapping[str, float], int]:
        async with live([{**ALL_SPENT, "turns": [turn]}, WORK], flags=flags) as gateway:
            return await session(gateway)

    return asyncio.run(run())


def test_u13_a_call_in_the_reply_is_discarded_and_judges_nothing() -> None:
    """A reply that only calls a tool brings no text, whatever the call's input or the thinking looks like."""
    call = {"tool": EXPAND_TOOL, "input": json.loads(DROPS)[0]}
    report, declines, _ = asked({"thinking": DROPS, **call})
    assert declines[Decline.UNPARSEABLE] == 1 and not report.removed


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "http_error", "status": 400},
        {"kind": "http_error", "status": 413},
        {"kind": "http_error", "status": 429},
        {"kind": "http_error", "status": 529},
        {"kind": "gateway"},
        {"kind": "cut", "after_bytes": 40, "how": "fin"},
        {"kind": "cut", "after_bytes": 40, "how": "rst"},
    ],
    ids=lambda fault: " ".join(map(str, fault.values())),
)
def test_a_failed_ask_is_not_tried_again_and_judges_nothing(fault: dict[str, Any]) -> None:
    """The provider has seen the request: another try could be charged. Only the ask over samples follows."""
    report, declines, asks = asked({"text": DROPS, "fault": {**fault, "times": 9}})
    assert report.reason is Reason.ASK_FAILED and declines[Decline.ASK_FAILED] == 1
    assert asks == 2 and declines[Decline.FALLBACK_FAILED] == 1


def test_the_deadline_holds_whatever_the_other_side_does() -> None:
    """Each leg ends at its own time."""
    silent = {"kind": "slow_first_byte", "seconds": 30, "times": 9}
    began = time.monotonic()
    report, declines, _ = asked({"text": DROPS, "fault": silent}, ask_timeout_s=1, fallback_timeout_s=1)
    assert report.reason is Reason.ASK_FAILED and declines[Decline.FALLBACK_FAILED] == 1
    assert time.monotonic() - began < 25
