"""When removing and asking pay: known answers, and the cases where doubt or greed would fire wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.sweep.economics import (
    MAX_VERDICT_TOKENS,
    MIN_VERDICT_TOKENS,
    RELATIVE,
    VERDICT_TOKENS,
    Booking,
    ReplyLength,
    accepted_share,
    ask_cost,
    ask_worth,
    learn_ratio,
    net_worth,
    p_cold,
    repaid,
    saving_when_free,
    turns_left,
    turns_needed,
    verdict_tokens,
)
from cg.sweep.prices import Price
from cg.sweep.values import Usage

SONNET = Price(2, 10, 0.2, 2.5, 4)  # the older design's card, USD per million tokens


def test_d7_an_hour_s_rewrite_costs_nineteen_reads() -> None:
    """(w - r) / r is 11.5 at five minutes and 19 at one hour, never the one for the other."""
    assert turns_needed(1000, 10_000, 300) == 115
    assert turns_needed(1000, 10_000, 3600) == 190


@pytest.mark.parametrize(("ttl", "ratio"), [(300, 11.5), (3600, 19.0)])
def test_a_warm_removal_is_repaid_at_its_ratio_and_not_below(ttl: int, ratio: float) -> None:
    """S·T >= 11.5·W, 19·W at one hour; one token less does not pay."""
    behind, turns = 1000.0, 10.0
    assert repaid(ratio * behind / turns + 1e-6, turns, behind, ttl)
    assert not repaid(ratio * behind / turns - 1, turns, behind, ttl)


def test_d12_the_minute_before_expiry_is_as_dear_as_any_warm_minute() -> None:
    """A request then would read the prefix and renew it: 100k tokens, 30k of them spent, need 27 requests to repay."""
    assert turns_needed(30_000, 70_000, 300) == 27
    assert not repaid(30_000, 26, 70_000, 300)
    assert repaid(30_000, 27, 70_000, 300)


@pytest.mark.parametrize(
    ("span", "removed", "usd", "accepted", "need"),
    [
        (120_000, 60_000, 0, 1, 12),
        (70_000, 52_000, 0, 1, 4),
        (0, 2_318, 0, 1, 0),
        (0, 2_318, 0.0098, 1, 22),
        (0, 11_011, 0.0161, 1, 8),
        (30_000, 6_014, 0.0498, 0.05, 1746),
    ],
)
def test_requests_needed_are_the_older_trigger_s_known_answers(
    span: float, removed: float, usd: float, accepted: float, need: int
) -> None:
    """Its rows without a bonus factor: the ask's dollars are charged, only the accepted share gains."""
    behind = max(0, span - removed)
    ask = usd / (SONNET.fresh * 1e-6)
    assert turns_needed(removed, behind, 300, ask=ask, accepted=accepted) == need


@pytest.mark.parametrize(
    ("window", "request_", "turns", "removed", "have"),
    [
        (200_000, 150_000, 50, 0, 16),
        (200_000, 150_000, 50, 60_000, 36),
        (64_000, 90_000, 30, 0, 0),
        (64_000, 90_000, 30, 52_000, 8),
        (64_000, 2_621, 3, 0, 70),
        (64_000, 2_621, 3, 2_318, 72),
        (64_000, 19_000, 11, 0, 26),
        (64_000, 20_000, 40, 6_014 * 0.05, 88),
        (64_000, 64_000, 30, 0, 0),
    ],
)
def test_requests_left_are_the_older_trigger_s_known_answers(
    window: int, request_: float, turns: int, removed: float, have: int
) -> None:
    """Until the window is full, at the growth so far."""
    assert turns_left(window, request_, turns, removed) == have


def test_u29_the_horizon_is_measured_after_the_removal() -> None:
    """A request past its window has 8 requests left once 52,000 tokens are gone, and 4 are needed."""
    need, have = turns_needed(52_000, 18_000, 300), turns_left(64_000, 90_000, 30, 52_000)
    assert (need, have) == (4, 8)


def test_u30_no_bonus_makes_turns() -> None:
    """At a full window ten tokens leave ten tokens of room: no request fits, whatever a token might be worth."""
    assert turns_left(64_000, 64_000, 30, 10) == 0


def test_an_unknown_window_gives_no_horizon() -> None:
    """Unknown stays unknown."""
    assert turns_left(None, 1000, 3) is None


def test_rule8_nothing_removed_never_pays() -> None:
    """A removal that frees no token is not worth making, behind nothing either (U27: "nothing to rewrite" said yes)."""
    for removed in (0.0, -5.0):
        assert not repaid(removed, 100, 0, 300)
        assert net_worth(removed, 0, 300) <= 0
        assert turns_needed(removed, 0, 300) is None


def test_u27_an_ask_is_weighed_against_what_it_brings() -> None:
    """2,318 tokens that are all behind the cached part: removing is free, asking about them for $0.05 is not."""
    ask = ask_cost(prefix=240_000, fresh=1_000, reply=0)
    assert ask * SONNET.fresh * 1e-6 == pytest.approx(0.05)
    assert turns_needed(2_318, 0, 300) == 0
    assert ask_worth(2_318, 300, rescued_by_renewal=0.0) < ask
    assert ask_worth(60_000, 300, rescued_by_renewal=0.0) > ask


def test_a_free_removal_saves_the_write_and_then_the_reads() -> None:
    """w·S at once, r·S·T after; where nothing is cached, every request pays fresh."""
    assert saving_when_free(1000, 15, 300) == pytest.approx(1250 + 1500)
    assert saving_when_free(1000, 15, 3600) == pytest.approx(2000 + 1500)
    assert saving_when_free(1000, 15, None) == pytest.approx(15_000)


def test_an_ask_costs_a_read_a_question_and_a_reply() -> None:
    """r·prefix + f·fresh + o·reply, at the model's own rates where they are known."""
    assert ask_cost(100_000, 1_000, 240) == pytest.approx(10_000 + 1_000 + 1_200)
    assert ask_cost(449_304, 1_700, 74, SONNET) * 1e-6 == pytest.approx(0.0940, abs=5e-5)


def test_an_ask_is_worth_more_when_the_wait_will_end_cold() -> None:
    """And its renewal of the entry counts, but never in a wait whose removal would be free."""
    sure, unsure = (ask_worth(1000, 300, cold=c, rescued_by_renewal=0.0) for c in (1.0, 0.5))
    assert sure == pytest.approx(2 * unsure) == pytest.approx(2750)
    assert ask_worth(0, 300, prefix=1000, cold=1.0, rescued_by_renewal=0.25) == pytest.approx(0.25 * 1150)
    assert ask_worth(1000, 300, prefix=0, cold=0.3, rescued_by_renewal=0.9) == 0


def test_the_chance_of_a_cold_end_is_the_measured_one() -> None:
    """Until it is learnt from the user's own gaps."""
    assert (p_cold(300), p_cold(3600)) == (0.82, 0.99)


def test_u28_a_few_thin_asks_do_not_decide_for_good() -> None:
    """Groups by inventory, drawn to the pooled share, and that to one: the known answers."""
    assert accepted_share([], 12) == 1
    thin = [Booking(2318, 0, 3), Booking(2318, 0, 3), Booking(2323, 114, 3)]
    assert accepted_share(thin, 3) == pytest.approx(0.98645, abs=5e-6)
    assert accepted_share(thin, 12) == pytest.approx(0.99320, abs=5e-6)
    more = [*thin, Booking(1_000_000, 0, 12)]
    assert accepted_share(more, 12) == pytest.approx(0.2492, abs=5e-5)
    assert accepted_share(more, 3) == pytest.approx(0.4950, abs=5e-5)
    assert accepted_share([Booking(10_000_000, 0, 12)], 12) == 0.05
    assert accepted_share([Booking(0, 0, 3)] * 9, 3) == 1


def test_the_size_of_a_token_is_learnt() -> None:
    """The thread's own ratio, following a change in a few requests."""
    first = learn_ratio(None, 3000, Usage(fresh=10, read=900, write_5m=60, write_1h=30, output=5000))
    assert first == 3.0
    assert learn_ratio(first, 4000, Usage(fresh=1000)) == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("sent", "usage"),
    [(1000, Usage()), (0, Usage(fresh=5)), (1_000_000, Usage(fresh=3)), (10, Usage(read=100)), (1000, Usage(output=9))],
)
def test_a_usage_that_cannot_belong_to_the_body_teaches_nothing(sent: int, usage: Usage) -> None:
    """Empty, absurdly large or small: the ratio stays."""
    assert learn_ratio(None, sent, usage) is None
    assert learn_ratio(2.7, sent, usage) == 2.7


amounts = st.floats(0, 1e7)


@given(amounts, amounts, st.floats(0, 1e3), st.sampled_from([300, 3600]))
def test_what_is_repaid_is_worth_making(removed: float, behind: float, turns: float, ttl: int) -> None:
    """`repaid`, `net_worth` and `turns_needed` are one inequality seen three ways."""
    pays = repaid(removed, turns, behind, ttl)
    assert pays == (removed > 0 and net_worth(removed, behind, ttl, turns) >= 0)
    need = turns_needed(removed, behind, ttl)
    if removed > 1e-3 and need is not None and need < 1e6:
        assert repaid(removed, need + 1, behind, ttl)
        assert need == 0 or not repaid(removed, (need - 1) * (1 - 1e-9), behind + 1e-6 * (1 + behind), ttl)


@given(amounts, st.integers(1, 10**6), st.integers(1, 500), amounts)
def test_more_room_never_means_fewer_turns(window: float, request_: int, turns: int, removed: float) -> None:
    """Removing more leaves at least as many requests, and never a negative number."""
    without, with_ = (turns_left(int(window), request_, turns, r) for r in (0.0, removed))
    assert 0 <= without <= with_


def test_a_price_without_reads_never_repays_a_rewrite() -> None:
    """A free read saves nothing later."""
    free = Price(2, 10, 0, 2.5, 4)
    assert not repaid(1e6, 1e6, 1.0, 300, free)
    assert turns_needed(1e6, 1.0, 300, price=free) is None
    assert RELATIVE.output == 5


def test_a_verdict_is_taken_for_as_long_as_the_question_asks_until_a_reply_was_seen() -> None:
    """20 tokens; a reply whose usage is unknown, or that judged nothing, is not seen."""
    assert verdict_tokens([]) == VERDICT_TOKENS == 20
    assert verdict_tokens([ReplyLength(12, 0), ReplyLength(0, 900)]) == VERDICT_TOKENS


def test_one_long_reply_says_most_of_what_the_next_will_cost() -> None:
    """(12 x 600 + 4 x 20) / 16: the prior weighs four verdicts, so a full ask outweighs it at once."""
    assert verdict_tokens([ReplyLength(12, 7200)]) == 455
    assert verdict_tokens([ReplyLength(12, 7200)] * 8) == (8 * 7200 + 80) / 100


def test_only_the_newest_eight_replies_count() -> None:
    """A model that has learnt to be short is asked again, and one that has begun to think at length is not."""
    long, short = ReplyLength(12, 7200), ReplyLength(12, 240)
    assert verdict_tokens([long] * 50 + [short] * 8) == 20
    assert verdict_tokens([short] * 50 + [long] * 8) == verdict_tokens([long] * 8)


@given(st.lists(st.builds(ReplyLength, st.integers(0, 40), st.integers(0, 10**9))))
def test_a_learnt_verdict_stays_within_its_bounds(replies: list[ReplyLength]) -> None:
    """Whatever a provider reports, no verdict is free and none latches asking off by itself."""
    assert MIN_VERDICT_TOKENS <= verdict_tokens(replies) <= MAX_VERDICT_TOKENS
