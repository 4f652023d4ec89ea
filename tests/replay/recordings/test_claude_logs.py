"""The reader of Claude Code's logs: a tree of lines becomes the requests that were made."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_log import NOON, Log, call, said, usage
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import checked, decoded, whole_histories
from studies.synthetic import as_claude_log, made_session

from cg.replay.batch import replay_session
from cg.replay.policies import parse
from cg.replay.recordings.conversation import SPACING_S
from cg.replay.sessions import Damaged, Session, open_sessions
from cg.replay.settings import Settings
from cg.replay.simulation.bodies import body, frame_for

VALIDATOR = checked()


def sessions(log: Log, tmp_path: Path, name: str = "log.jsonl", tail: str = "") -> list[Session | Damaged]:
    return list(open_sessions(log.write(tmp_path / name, tail)))


def steps(log: Log, tmp_path: Path, **how: Any) -> list[Any]:
    [session] = sessions(log, tmp_path, **how)
    assert isinstance(session, Session), session
    return list(session.steps())


def texts(messages: list[bytes]) -> list[str]:
    """All that is said in some messages, in order: texts, calls by id, results by content."""
    found = []
    for message in decoded(list(messages)):
        for block in message["content"]:
            found.append(block.get("text") or block.get("id") or block.get("content"))
    return found


def history(log: Log, tmp_path: Path) -> list[list[str]]:
    """What each request of the log carries."""
    [session] = sessions(log, tmp_path)
    return [texts(messages) for _, messages in whole_histories(session.steps())]


def test_one_answer_over_several_lines_is_one_request(tmp_path: Path) -> None:
    """The lines share the API's message id; the usage is that of the fullest."""
    log = Log()
    log.user("go")
    log.answer("m1", {"type": "thinking", "thinking": "hm", "signature": "s"}, usage=usage(output=1))
    log.answer("m1", said("I look"), call("c1"), usage=usage(output=90))
    log.result("c1", "text")
    log.answer("m2", said("done"))
    first, second = steps(log, tmp_path)
    assert first.usage is not None and first.usage.output == 90 and first.usage.write_1h == 1000
    assert texts([first.reply]) == ["I look", "c1"]
    assert texts(second.messages) == ["I look", "c1", "text"]


def test_results_of_parallel_calls_are_found_beside_the_way(tmp_path: Path) -> None:
    """Each hangs at the line of its own call, and the next answer at one of them only; they come in the order of the log."""
    log = Log()
    log.user("go")
    one = log.answer("m1", call("c1"))
    two = log.answer("m1", call("c2"))
    three = log.answer("m1", call("c3"))
    log.result("c3", "third", parent=three)
    log.result("c1", "first", parent=one)
    log.result("c2", "second", parent=two)
    log.answer("m2", said("done"))
    assert history(log, tmp_path)[1] == ["go", "c1", "c2", "c3", "third", "first", "second"]


def test_a_result_that_comes_between_the_lines_of_its_answer_is_no_new_request(tmp_path: Path) -> None:
    """Tools start while the answer still streams."""
    log = Log()
    log.user("go")
    one = log.answer("m1", call("c1"))
    log.result("c1", "first", parent=one)
    two = log.answer("m1", call("c2"), parent=one)
    log.result("c2", "second", parent=two)
    log.answer("m2", said("done"))
    assert history(log, tmp_path) == [["go"], ["go", "c1", "c2", "first", "second"]]


def test_a_compaction_opens_with_its_summary(tmp_path: Path) -> None:
    """Nothing before the boundary is sent again."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.compact("all that was")
    log.user("on")
    log.answer("m2", said("b"))
    first, second = steps(log, tmp_path)
    assert second.opens and texts(second.messages) == ["all that was", "on"]


def test_a_summary_without_a_boundary_opens_too(tmp_path: Path) -> None:
    """Older versions write none."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.user("all that was", isCompactSummary=True)
    log.answer("m2", said("b"))
    assert history(log, tmp_path) == [["go"], ["all that was"]]


def keeping(log: Log, first: str, last: str, summary: str = "all that was") -> None:
    """A compaction that keeps some of the newest lines behind its summary."""
    log.add("system", parent=None, subtype="compact_boundary", content="Compacted")
    anchor = log.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    entry = json.loads(log.lines[-2])
    entry["compactMetadata"] = {"preservedSegment": {"headUuid": first, "anchorUuid": anchor, "tailUuid": last}}
    log.lines[-2] = json.dumps(entry)


def test_what_a_compaction_kept_stands_behind_its_summary(tmp_path: Path) -> None:
    """Newer clients keep the newest messages; what follows hangs at the last of them."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    first = log.user("look")
    one = log.answer("m2", call("c1"))
    two = log.answer("m2", call("c2"))
    log.result("c1", "x", parent=one)
    log.result("c2", "y", parent=two)
    last = log.answer("m3", said("seen"))
    keeping(log, first, last)
    log.user("on", parent=last)
    log.answer("m4", said("b"))
    log.user("more")
    log.answer("m5", said("c"))
    assert history(log, tmp_path)[3:] == [
        ["all that was", "look", "c1", "c2", "x", "y", "seen", "on"],
        ["all that was", "look", "c1", "c2", "x", "y", "seen", "on", "b", "more"],
    ]
    assert [s.opens for s in steps(log, tmp_path)] == [True, False, False, True, False]


def test_a_compaction_may_keep_from_an_answer_on_and_up_to_what_was_said(tmp_path: Path) -> None:
    """Either end of what was kept may be any line."""
    log = Log()
    log.user("go")
    first = log.answer("m1", said("a"))
    last = log.user("look")
    keeping(log, first, last)
    log.answer("m2", said("b"), parent=last)
    assert history(log, tmp_path) == [["go"], ["all that was", "a", "look"]]


def test_a_compaction_that_keeps_lines_which_are_not_there_opens_with_its_summary(tmp_path: Path) -> None:
    """The line may have been cut off."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    keeping(log, "absent", "gone")
    log.user("on", parent="gone")
    log.answer("m2", said("b"))
    assert history(log, tmp_path) == [["go"], ["all that was", "on"]]


def test_what_only_the_person_sees_is_not_sent(tmp_path: Path) -> None:
    """But for a compaction's summary, which bears the same flag."""
    log = Log()
    log.user("for the screen", isVisibleInTranscriptOnly=True)
    log.user("go")
    log.answer("m1", said("a"))
    log.user("summary", isVisibleInTranscriptOnly=True, isCompactSummary=True)
    log.answer("m2", said("b"))
    assert history(log, tmp_path) == [["go"], ["summary"]]


def test_a_rewind_goes_on_from_the_older_answer(tmp_path: Path) -> None:
    """Both branches are requests, in the order in which they were made; neither holds what the other said."""
    log = Log()
    log.user("go")
    fork = log.answer("m1", said("a"))
    log.user("wrong way")
    log.answer("m2", said("b"))
    log.user("right way", parent=fork)
    log.answer("m3", said("c"))
    log.user("on")
    log.answer("m4", said("d"))
    assert history(log, tmp_path) == [
        ["go"],
        ["go", "a", "wrong way"],
        ["go", "a", "right way"],
        ["go", "a", "right way", "c", "on"],
    ]
    assert [s.opens for s in steps(log, tmp_path)] == [True, False, True, False]


def test_the_same_request_sent_again_brings_nothing(tmp_path: Path) -> None:
    """Two answers hang at one line; the history goes on from the second alone."""
    log = Log()
    asked = log.user("go")
    log.answer("m1", said("a"))
    log.answer("m2", said("b"), parent=asked)
    log.user("on")
    log.answer("m3", said("c"))
    first, second, third = steps(log, tmp_path)
    assert second.messages == () and not second.opens and second.at > first.at
    assert texts(third.messages) == ["b", "on"] and not third.opens


def test_sub_agents_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Their requests have a cache of their own; the conversation holds their report only."""
    log = Log()
    log.user("go")
    main = log.answer("m1", call("c1", "Task"))
    log.user("find it", parent=None, isSidechain=True)
    log.answer("s1", said("found"), isSidechain=True)
    log.result("c1", "report", parent=main)
    log.answer("m2", said("done"))
    log.user("look there", parent=None, isSidechain=True, agentId="abcdef0123")
    log.answer("s2", said("seen"), isSidechain=True, agentId="abcdef0123")
    found = sessions(log, tmp_path)
    assert [s.name for s in found] == ["log", "log#00000000", "log#abcdef01"]
    said_in = [[texts(m) for _, m in whole_histories(s.steps())] for s in found]
    assert said_in == [[["go"], ["go", "c1", "report"]], [["find it"]], [["look there"]]]


def test_a_log_of_one_sub_agent_bears_the_name_of_its_file(tmp_path: Path) -> None:
    """Newer clients write a file for each."""
    log = Log()
    log.user("find it", parent=None, isSidechain=True, agentId="a1")
    log.answer("s1", said("found"), isSidechain=True, agentId="a1")
    [session] = sessions(log, tmp_path, name="agent-a1.jsonl")
    assert session.name == "agent-a1" and session.requests == 1


def test_a_cut_last_line_is_passed_over(tmp_path: Path) -> None:
    """A log may be read while it is written."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    whole = steps(log, tmp_path)
    log.user("next")
    cut = log.lines.pop()[:50]
    assert steps(log, tmp_path, tail=cut) == whole


def test_a_damaged_line_in_the_middle_is_passed_over(tmp_path: Path) -> None:
    """What hangs at it goes on from what was logged before, with a word in the place of what is lost; it is counted."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.user("on")
    log.lines[-1] = log.lines[-1][:40] + '{"type":'
    log.answer("m2", said("b"))
    assert history(log, tmp_path) == [["go"], ["go", "a", "(what stood here was not recorded)"]]
    [session] = sessions(log, tmp_path)
    assert session.damaged == 1


def test_a_packed_log_reads_like_the_plain_one(tmp_path: Path) -> None:
    """By its first bytes, whatever its name."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    plain, packed = steps(log, tmp_path), steps(log, tmp_path, name="log.jsonl.gz")
    disguised = tmp_path / "disguised.jsonl"
    disguised.write_bytes((tmp_path / "log.jsonl.gz").read_bytes())
    [session] = open_sessions(disguised)
    assert plain == packed == list(session.steps())


def test_a_packed_log_that_is_cut_ends_there(tmp_path: Path) -> None:
    """What was packed before is whole."""
    log = Log()
    for n in range(400):
        log.user(f"go {n}" * 50)
        log.answer(f"m{n}", said(f"a {n}"))
    path = log.write(tmp_path / "log.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-200])
    [session] = open_sessions(path)
    assert isinstance(session, Session) and 0 < session.requests < 400


def test_a_call_that_was_never_answered_gets_an_error(tmp_path: Path) -> None:
    """The person interrupted it and said something else."""
    log = Log()
    log.user("go")
    log.answer("m1", call("c1"))
    log.user("stop")
    log.answer("m2", said("ok"))
    assert history(log, tmp_path)[1] == ["go", "c1", "[no result was recorded]", "stop"]


def test_messages_that_the_client_made_up_are_neither_requests_nor_history(tmp_path: Path) -> None:
    """What hangs at them goes on from before."""
    log = Log()
    log.user("go")
    log.answer("e1", said("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    log.user("again")
    log.answer("m1", said("a"))
    assert history(log, tmp_path) == [["go", "again"]]


def test_lines_that_say_nothing_link_all_the_same(tmp_path: Path) -> None:
    """Progress, notices and hooks stand between question and answer; attachments and local commands are told."""
    log = Log()
    log.add("file-history-snapshot")
    log.user("go")
    log.add("progress", data={"type": "hook_progress", "hookEvent": "x"})
    log.add("attachment", attachment={"type": "edited_text_file", "filename": "a.py", "snippet": "1 x"})
    log.add("system", subtype="local_command", content="<command>ls</command>")
    log.add("system", subtype="stop_hook_summary", content="nobody reads this")
    log.answer("m1", said("a"))
    [[asked, reminder, command]] = history(log, tmp_path)
    assert asked == "go" and command == "<command>ls</command>"
    assert "a.py\n1 x" in reminder and "edited_text_file" not in reminder


def test_a_line_that_was_copied_counts_once(tmp_path: Path) -> None:
    """Resumed sessions hold their lines again."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    whole = steps(log, tmp_path)
    log.lines += log.lines
    assert steps(log, tmp_path) == whole


def test_times_are_those_of_the_last_part(tmp_path: Path) -> None:
    """Sent when the last result was in, answered with the answer's last line."""
    log = Log()
    log.user("go")
    one = log.answer("m1", call("c1"))
    two = log.answer("m1", call("c2"))
    log.result("c1", "x", parent=one)
    log.now += 100
    log.result("c2", "y", parent=two)
    log.now += 10
    log.answer("m2", said("b"), said("c"))
    first, second = steps(log, tmp_path)
    assert [first.at - NOON, first.answered_at - NOON] == [1, 3]
    assert [second.at - NOON, second.answered_at - NOON] == [105, 117]


def test_the_lifetime_and_the_client_are_those_of_the_log(tmp_path: Path) -> None:
    """Most written tokens decide."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"), usage=usage(written=10))
    log.user("on")
    five = {"ephemeral_5m_input_tokens": 5000, "ephemeral_1h_input_tokens": 0}
    log.answer("m2", said("b"), usage=usage(written=5000, split=five))
    [session] = sessions(log, tmp_path)
    assert (session.ttl_s, session.client, session.timed) == (300, "claude-code 2.1.50", True)


def test_a_made_session_reads_the_same_from_either_format(tmp_path: Path) -> None:
    """Two readers, one session."""
    made = made_session(3, turns=30)
    log = Log()
    log.lines = [json.dumps(entry) for entry in as_claude_log(made)]
    for step, read in zip(made.steps(), steps(log, tmp_path), strict=True):
        assert read.at == pytest.approx(step.at, abs=1e-3)
        assert (read.messages, read.reply, read.usage, read.opens) == (
            step.messages,
            step.reply,
            step.usage,
            step.opens,
        )


def test_a_log_without_a_request_is_named(tmp_path: Path) -> None:
    """Clients leave such files behind."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n', "utf-8")
    [damaged] = open_sessions(path)
    assert isinstance(damaged, Damaged) and damaged.reason == "a log without a request"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**18) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def sample() -> Log:
    log = Log()
    log.user("go")
    one = log.answer("m1", said("I look"), call("c1"))
    two = log.answer("m1", call("c2"))
    log.result("c1", [{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "base64"}}], parent=one)
    log.result("c2", "b", parent=two)
    fork = log.answer("m2", said("done"))
    log.add("attachment", attachment={"type": "x", "content": ["y"]})
    log.user("on")
    log.answer("m3", said("ok"), call("c3"))
    log.user("back", parent=fork)
    log.answer("m4", said("fine"))
    last = log.last
    log.compact("summary")
    keeping(log, one, str(last))
    log.answer("m5", call("c4"), parent=last)
    log.result("c4", "z")
    log.answer("m6", said("end"))
    return log


def places(value: Any, at: tuple = ()) -> list[tuple]:
    """The way to every part of a JSON value."""
    found = [at]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*at, key))
    return found


SAMPLE = [json.loads(line) for line in sample().lines]
PLACES = [(i, *place) for i, entry in enumerate(SAMPLE) for place in places(entry)]


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=4))
def test_whatever_a_log_holds_the_bodies_pass_the_api(tmp_path_factory: Any, changes: Any) -> None:
    """Any part of any line may be anything: a session's every body is valid, or the log has none."""
    entries = json.loads(json.dumps(SAMPLE))
    for (line, *way), value in changes:
        holder = entries
        for key in [line, *way][:-1]:
            if isinstance(holder, list) and not (isinstance(key, int) and key < len(holder)):
                break  # an earlier change took it away
            if not isinstance(holder, dict | list):
                break
            holder = holder[key] if isinstance(holder, list) or key in holder else {}
        else:
            key = [line, *way][-1]
            if isinstance(holder, dict) or (isinstance(holder, list) and isinstance(key, int) and key < len(holder)):
                holder[key] = value
    path = tmp_path_factory.getbasetemp() / "changed.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries), "utf-8")
    found = list(open_sessions(path))
    assert found, "a log is read or named as damaged, never passed over"
    for session in found:
        if isinstance(session, Session):
            frame = None
            for step, messages in whole_histories(session.steps()):
                frame = frame or frame_for(step, tokens=1500)
                VALIDATOR.body(json.loads(body(frame, messages, ttl_s=300)), {})


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_session_or_a_reason(tmp_path_factory: Any, raw: bytes) -> None:
    """Nothing else escapes."""
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(raw)
    assert all(isinstance(found, Session | Damaged) for found in open_sessions(path))


@pytest.mark.parametrize(
    "stamp", ["1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+14:00", "3000-01-01T00:00:01Z"]
)
def test_a_time_out_of_range_is_no_time(tmp_path: Path, stamp: str) -> None:
    """A log of such times has a fixed pace, as one without times, and can be priced."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.user("on")
    log.answer("m2", said("b"))
    log.lines = [json.dumps(json.loads(entry) | {"timestamp": stamp}) for entry in log.lines]
    first, second = steps(log, tmp_path)
    assert second.at - first.at == SPACING_S and first.answered_at is None
    [session] = open_sessions(log.write(tmp_path / "again.jsonl"))
    result = replay_session(session, parse(["cold"]), Settings())
    assert result.error is None and result.requests == 2
