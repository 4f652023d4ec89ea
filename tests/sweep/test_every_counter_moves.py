"""Every reason, phase, ending, event and decline of the sweep is moved by a test that drives the sweep itself.

The tests named here are run once more, watched by `counted_names`: each has to move what the table says it moves.
"""

import json
import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest

from cg.sweep.counters import Decline, Event
from cg.sweep.ledger import Reason
from cg.sweep.values import Ending, Phase

ROOT = Path(__file__).parents[2]
FAMILIES: dict[str, type[StrEnum]] = {
    "reasons": Reason,
    "phases": Phase,
    "endings": Ending,
    "events": Event,
    "declines": Decline,
}

# The test that moves them: what it moves, "family name".
MOVED_BY: dict[str, list[str]] = {
    "tests/end_to_end/test_discrimination.py::test_a_damaged_reply_never_drops_what_is_owed": [
        "declines not_in_pre_expiry_window",
        "declines sweep_kept",
        "declines sweep_quote_fabricated",
        "declines sweep_reply_truncated",
        "declines sweep_unparseable",
        "declines sweep_verdict_duplicate_label",
        "declines sweep_verdict_missing",
        "declines sweep_verdict_unknown_label",
        "declines sweep_verdict_unusable",
        "events sweep_adjudicated",
        "events sweep_applied",
        "events sweep_dropped",
        "events sweep_offered",
        "events sweep_waited",
        "phases cold",
        "phases pre_expiry",
        "phases unknown",
        "phases warm",
        "reasons no_candidates",
        "reasons nothing_judged",
        "reasons nothing_spent",
        "reasons removed",
        "reasons warm",
    ],
    "tests/end_to_end/test_discrimination.py::test_a_pending_drop_that_the_new_prompt_refers_to_is_rescued": [
        "events sweep_rescued",
    ],
    "tests/end_to_end/test_discrimination.py::test_cold_never_asks_and_leaves_a_prefix_alone_that_may_still_be_there": [
        "reasons pre_expiry",
    ],
    "tests/end_to_end/test_hostile_contents.py::test_an_id_of_another_thread_brings_nothing_back": [
        "events expand_unresolved",
    ],
    "tests/end_to_end/test_hostile_contents.py::test_an_output_that_holds_the_opening_of_a_marker_is_never_a_candidate": [
        "declines empty_or_marker_present",
    ],
    "tests/sweep/accounting/test_ping_economics.py::test_a_session_that_cost_little_is_not_pinged_and_one_that_has_earned_it_is": [
        "declines econ_ping_not_repaid",
        "events sweep_billed_units",
        "events sweep_ping_gained_units",
        "events sweep_ping_units",
        "events sweep_pinged",
        "events sweep_waited_renewable",
        "reasons not_declared",
    ],
    "tests/sweep/core/test_expansion.py::test_an_answer_that_the_api_refused_is_not_given_again_by_a_full_store": [
        "declines sweep_store_refused",
        "endings revoked",
        "events sweep_expanded",
        "events sweep_revoked",
    ],
    "tests/sweep/core/test_failed_turns.py::test_d14_an_ask_rides_on_the_body_of_its_own_branch": [
        "declines sweep_candidate_unseen",
        "declines sweep_kept_everything",
        "reasons broken",
    ],
    "tests/sweep/core/test_failed_turns.py::test_u10_u15_a_missed_prefix_books_both_legs_in_one_row": [
        "declines sweep_fallback_blocked",
    ],
    "tests/sweep/core/test_failed_turns.py::test_u22_u23_a_refused_drop_leaves_no_record_and_no_saving": [
        "reasons refused",
    ],
    "tests/sweep/core/test_lifetimes.py::test_a_habit_near_the_price_leaves_the_clients_own": [
        "declines sweep_lifetime_unsure",
    ],
    "tests/sweep/core/test_lifetimes.py::test_a_provider_that_refuses_the_lifetimes_is_not_asked_again_in_that_thread": [
        "declines sweep_lifetime_left",
        "events sweep_lifetime_refused",
    ],
    "tests/sweep/core/test_lifetimes.py::test_the_lifetime_is_kept_while_the_prefix_holds_and_phases_go_by_it": [
        "events sweep_lifetime_cost_units",
        "events sweep_lifetime_gained_units",
        "events sweep_lifetime_written",
    ],
    "tests/sweep/core/test_lifetimes.py::test_what_a_choice_may_lose_is_covered_by_what_was_paid": [
        "declines sweep_lifetime_not_covered",
    ],
    "tests/sweep/core/test_pending.py::test_a_rule_removes_nothing_that_no_request_has_carried": [
        "declines recency_newest_kept",
    ],
    "tests/sweep/core/test_pending.py::test_a_warm_turn_tells_how_its_sums_went": [
        "declines drop_unaffordable_pruned",
        "declines prefix_rewrite_not_repaid",
        "events prefix_rewrite_repaid",
        "reasons not_repaid",
    ],
    "tests/sweep/core/test_quiet_turns.py::test_no_model_is_asked_about_what_a_person_protects": [
        "declines protected",
    ],
    "tests/sweep/core/test_quiet_turns.py::test_what_the_newest_user_text_names_stays_and_is_counted": [
        "declines quiet_named_by_user",
        "declines quiet_still_in_use",
    ],
    "tests/sweep/core/test_policy.py::test_a_clients_own_tool_of_our_name_is_left_alone": [
        "reasons tool_name_taken",
    ],
    "tests/sweep/core/test_policy.py::test_a_request_whose_prefix_may_still_be_there_is_left_alone_by_the_default": [
        "reasons waiting",
    ],
    "tests/sweep/core/test_policy.py::test_an_original_that_expired_is_put_back_by_the_request_that_carries_it": [
        "events sweep_put_back",
    ],
    "tests/sweep/core/test_paused.py::test_pausing_all_brings_every_original_back_for_good": [
        "endings paused",
        "events sweep_paused",
        "reasons paused",
    ],
    "tests/sweep/core/test_policy.py::test_rule_7_a_removal_ends_by_a_stored_and_counted_restoration_once": [
        "endings restored",
        "events sweep_restored",
    ],
    "tests/sweep/core/test_policy.py::test_rule_8_a_replacement_that_is_not_shorter_is_not_made": [
        "declines sweep_drop_would_not_shrink",
    ],
    "tests/sweep/core/test_selection.py::test_u35_a_branch_whose_last_body_is_not_kept_asks_nothing": [
        "reasons unswept_too_big",
    ],
    "tests/sweep/test_drivers.py::test_rule_10_an_asker_that_raises_is_a_fault_and_the_clients_bytes_leave": [
        "reasons fault",
    ],
    "tests/sweep/test_drivers.py::test_without_an_asker_and_with_one_that_fails_nothing_is_removed": [
        "declines sweep_ask_failed",
        "declines sweep_fallback_failed",
        "declines sweep_no_asker",
        "phases broken",
        "reasons ask_failed",
        "reasons no_asker",
        "reasons retry",
        "reasons side_call",
        "reasons unknown",
        "reasons unreadable",
    ],
    "tests/sweep/test_rare_counters.py::test_a_body_whose_history_lies_with_the_provider_is_left_alone": [
        "reasons server_thread",
    ],
    "tests/sweep/test_rare_counters.py::test_a_doubtful_reply_is_counted_by_what_is_wrong_with_it": [
        "declines sweep_criterion_missing",
        "declines sweep_drop_refused_obligation",
        "declines sweep_verdict_conflict",
        "declines sweep_verdict_label_shift",
        "declines sweep_verdict_no_label",
        "declines sweep_verdict_stray",
    ],
    "tests/sweep/test_rare_counters.py::test_a_gap_whose_body_is_not_kept_is_counted": [
        "declines sweep_no_prefix",
    ],
    "tests/sweep/test_rare_counters.py::test_a_provider_that_caches_nothing_is_not_asked_in_a_window": [
        "phases uncached",
        "reasons uncached",
    ],
    "tests/sweep/test_rare_counters.py::test_a_request_that_leaves_the_judged_history_says_that_the_gap_was_judged": [
        "declines sweep_judged_elsewhere",
        "reasons judged",
    ],
    "tests/sweep/test_rare_counters.py::test_a_thread_whose_declaration_was_refused_is_left_alone": [
        "reasons bypassed",
    ],
    "tests/sweep/test_rare_counters.py::test_after_its_lifetime_a_prefix_is_not_asked_about_in_a_window": [
        "reasons cold",
    ],
    "tests/sweep/test_rare_counters.py::test_an_ask_that_is_not_repaid_is_the_reason_of_the_next_request": [
        "declines econ_ask_not_repaid",
        "events sweep_inventory_of_one",
        "reasons ask_not_repaid",
    ],
    "tests/sweep/test_rare_counters.py::test_an_output_without_a_token_to_recognise_is_opaque_to_the_index": [
        "declines index_opaque",
    ],
    "tests/sweep/test_rare_counters.py::test_the_index_keeps_what_was_used_much_and_lately_open_and_the_rest_closed": [
        "declines index_closed",
        "declines index_open",
    ],
    "tests/sweep/test_rare_counters.py::test_two_asks_that_missed_the_prefix_latch_asking_off": [
        "declines sweep_fallback_kept_everything",
        "declines sweep_prefix_cache_read_ZERO",
        "declines sweep_prefix_cache_write",
        "events sweep_fallback_used",
        "reasons asking_latched",
    ],
    "tests/sweep/test_rare_counters.py::test_what_an_idle_ask_dropped_waits_and_is_not_offered_again": [
        "declines sweep_already_pending",
    ],
    "tests/sweep/test_rare_counters.py::test_what_is_expanded_or_pending_is_not_offered_again": [
        "declines below_output_floor",
        "declines kept_verbatim",
        "declines sweep_drop_all_kept_open",
        "declines sweep_inventory_below_min",
        "declines sweep_over_ask_cap",
        "events reapplied_same_session",
        "events sweep_prefix_cache_read_ok",
        "reasons below_inventory",
    ],
}

# Counted by the gateway, which drives no sweep where it only observes: (file, test that sees it).
ELSEWHERE = {
    "reasons observed": ("tests/gateway/messages/test_observer.py", "test_nothing_is_changed_and_all_is_reckoned"),
}

# Alarms: they count what the code around them rules out, so that a later fault shows.
ALARMS = {"events sweep_inventory_thinned"}


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tests that moved each name, of those in the table."""
    path = tmp_path_factory.mktemp("counted") / "names.json"
    paths = os.pathsep.join([str(ROOT / "tests" / "harness"), *sys.path])
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "counted_names", "-p", "no:cacheprovider", *MOVED_BY],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "CG_COUNTED_NAMES": str(path)},
        check=True,
        timeout=600,
    )
    found: dict[str, list[str]] = json.loads(path.read_text())
    return found


def test_the_table_holds_every_name_once() -> None:
    """And no other."""
    listed = [name for names in MOVED_BY.values() for name in names] + list(ELSEWHERE) + list(ALARMS)
    assert sorted(listed) == sorted(f"{family} {m.value}" for family, members in FAMILIES.items() for m in members)


@pytest.mark.parametrize("test", MOVED_BY)
def test_a_named_test_moves_what_the_table_says(test: str, moved: dict[str, list[str]]) -> None:
    """Through the sweep's own calls; a name that nobody moves any more is deleted or gets a test."""
    assert [name for name in MOVED_BY[test] if test not in moved.get(name, [])] == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_counted_elsewhere_is_asserted_there(name: str) -> None:
    """The test is there and names the reason."""
    file, test = ELSEWHERE[name]
    source = (ROOT / file).read_text("utf-8")
    body = source[source.index(f"def {test}(") :]
    assert f"Reason.{Reason(name.split()[1]).name}" in body.split("\n\n\n")[0]
