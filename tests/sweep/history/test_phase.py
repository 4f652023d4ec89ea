"""Phases: the boundaries to the second, and doubt that never fires."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from presets import paid

from cg.sweep.history.phase import phase, phase_of
from cg.sweep.values import Branch, Phase

CLOCK = 1_800_000_000.0


def at(idle: float, ttl: int | None = 300, *, before: int | None = 300, window: float = 60, margin: float = 60, **more):
    branch = Branch("b", b"", b"", b"", CLOCK, before)
    flags = {"broken": False, "uncached": False, **more}
    return phase(now=CLOCK + idle, branch=branch, ttl_s=ttl, window_s=window, cold_margin_s=margin, **flags)


@pytest.mark.parametrize(
    ("ttl", "idle", "expected"),
    [
        (300, 0, Phase.WARM),
        (300, 15, Phase.WARM),
        (300, 239, Phase.WARM),
        (300, 239.999, Phase.WARM),
        (300, 240, Phase.PRE_EXPIRY),
        (300, 250, Phase.PRE_EXPIRY),
        (300, 295, Phase.PRE_EXPIRY),
        (300, 299.999, Phase.PRE_EXPIRY),
        (300, 300, Phase.UNKNOWN),
        (300, 359.999, Phase.UNKNOWN),
        (300, 360, Phase.COLD),
        (300, 1e9, Phase.COLD),
        (3600, 300, Phase.WARM),
        (3600, 3539, Phase.WARM),
        (3600, 3540, Phase.PRE_EXPIRY),
        (3600, 3570, Phase.PRE_EXPIRY),
        (3600, 3600, Phase.UNKNOWN),
        (3600, 3660, Phase.COLD),
    ],
)
def test_the_boundaries_are_exact(ttl: int, idle: float, expected: Phase) -> None:
    """Known answers at window 60 and margin 60, each boundary from both sides."""
    assert at(idle, ttl, before=ttl) is expected


def test_u36_two_requests_in_one_instant_are_warm() -> None:
    """Idle zero is a time, not a missing one."""
    assert at(0.0) is Phase.WARM


def test_a_clock_that_runs_backwards_is_unknown() -> None:
    """Negative idle says nothing about the entry."""
    assert at(-0.001) is Phase.UNKNOWN


def test_u37_the_longest_lifetime_that_was_asked_for_holds() -> None:
    """An entry written for an hour is not taken for dead because the next request asks for five minutes."""
    assert at(600, 300, before=3600) is Phase.WARM
    assert at(600, 3600, before=300) is Phase.WARM
    assert at(600, 300, before=None) is Phase.COLD


def test_without_a_mark_the_lifetime_is_unknown_and_never_fires() -> None:
    """However long the wait, and even if the client broke its prefix."""
    assert at(1e6, None) is Phase.UNKNOWN
    assert at(1e6, None, broken=True) is Phase.UNKNOWN


def test_where_the_provider_caches_nothing_there_is_no_prefix_to_lose() -> None:
    """Only without a mark: with one, the provider may have just begun to cache."""
    assert at(0, None, uncached=True) is Phase.UNCACHED
    assert at(0, 300, uncached=True) is Phase.WARM


def test_a_prefix_that_the_client_broke_is_broken_at_any_time() -> None:
    """Also for a history that has no branch of its own yet."""
    assert at(5, broken=True) is Phase.BROKEN
    none = phase(now=CLOCK, branch=None, ttl_s=300, broken=True, uncached=False, window_s=60, cold_margin_s=60)
    assert none is Phase.BROKEN


def test_a_first_request_is_unknown() -> None:
    """Nothing is known of what the provider holds: never "idle for ever"."""
    found = phase(now=CLOCK, branch=None, ttl_s=300, broken=False, uncached=False, window_s=60, cold_margin_s=60)
    assert found is Phase.UNKNOWN


def test_the_margins_are_the_configuration_s() -> None:
    """`phase_of` hands them on."""
    branch = Branch("b", b"", b"", b"", CLOCK, 300)
    config = paid(window_s=100.0, cold_margin_s=5.0)
    found = [
        phase_of(now=CLOCK + idle, branch=branch, ttl_s=300, broken=False, uncached=False, config=config)
        for idle in (199, 200, 304, 305)
    ]
    assert found == [Phase.WARM, Phase.PRE_EXPIRY, Phase.UNKNOWN, Phase.COLD]


@given(
    st.floats(-1e4, 1e5),
    st.sampled_from([300, 3600]),
    st.sampled_from([None, 300, 3600]),
    st.floats(1, 299),
    st.floats(0, 3600),
)
def test_phases_follow_one_another_in_time(
    idle: float, ttl: int, before: int | None, window: float, margin: float
) -> None:
    """Warm, about to expire, unknown, cold: later is never earlier in this order."""
    order = [Phase.WARM, Phase.PRE_EXPIRY, Phase.UNKNOWN, Phase.COLD]
    now, later = (at(i, ttl, before=before, window=window, margin=margin) for i in (abs(idle), abs(idle) + 7))
    assert order.index(now) <= order.index(later)


def test_a_time_that_is_no_number_is_not_cold() -> None:
    """NaN compares false everywhere; it must not fall through into a phase at which something is removed."""
    assert at(math.nan) not in (Phase.COLD, Phase.BROKEN, Phase.UNCACHED)
