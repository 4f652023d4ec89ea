"""Which lines are one answer, and where lines stand that were written out of order, again, or behind what is not there."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_log import Log, call, said, usage
from recordings import whole_histories

from cg.replay.sessions import Damaged, Session, open_all, open_sessions

REQUESTS = 5
Entries = list[dict[str, Any]]


def five(name: str = "", **answer: Any) -> Entries:
    """A session of five requests: a prompt, four calls with their results, a last word. Each bills another prompt."""
    log = Log()
    log.user(f"{name} go")
    for n in range(REQUESTS - 1):
        log.answer(f"m{n}", said(f"step {n}"), call(f"{name}c{n}"), usage=usage(read=1000 * n), **answer)
        log.result(f"{name}c{n}", f"{name} {n}")
    log.answer("m4", said("done"), usage=usage(read=9000), **answer)
    return renamed([json.loads(line) for line in log.lines], name)


def renamed(entries: Entries, name: str) -> Entries:
    """The same under other uuids."""
    for entry in entries:
        for key in ("uuid", "parentUuid"):
            if entry[key] is not None:
                entry[key] = name + entry[key]
    return entries


def opened(entries: Entries, tmp_path: Path, name: str = "log") -> list[Session | Damaged]:
    return list(open_sessions(written(entries, tmp_path, name)))


def written(entries: Entries, tmp_path: Path, name: str = "log") -> Path:
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return path


def histories(entries: Entries, tmp_path: Path) -> list[list[bytes]]:
    [session] = opened(entries, tmp_path)
    assert isinstance(session, Session), session
    return [messages for _, messages in whole_histories(session.steps())]


def answers(entries: Entries) -> Entries:
    return [entry for entry in entries if entry["type"] == "assistant"]


def named(entries: Entries, **members: Any) -> Entries:
    """All answers with these members in their message; None takes one away."""
    for entry in answers(entries):
        entry["message"] |= members
        entry["message"] = {key: value for key, value in entry["message"].items() if value is not ...}
    return entries


def of_one_request(entries: Entries) -> Entries:
    """With the request's id beside the lines of each answer."""
    for entry in answers(entries):
        entry["requestId"] = "req_" + str(entry["message"]["usage"]["cache_read_input_tokens"])
    return entries


@pytest.mark.parametrize(
    "entries",
    [
        named(five(), id="chatcmpl-1"),
        named(five(), id=""),
        named(five(), id=None),
        named(five(), id=...),
        named(five(), id=7),
        of_one_request(named(five(), id="chatcmpl-1")),
        of_one_request(named(five(), id=None)),
        [entry | {"requestId": "req_1"} for entry in named(five(), id="x")],
        named(five(), id="x", usage={"input_tokens": 0, "output_tokens": 0}),
        named(five(), id="x", usage=...),
        named(five(), id=None, usage=...),
    ],
    ids=[
        "one id",
        "empty",
        "null",
        "none",
        "number",
        "requests",
        "requests alone",
        "one request id",
        "zero",
        "no usage",
        "bare",
    ],
)
def test_answers_are_told_apart_whatever_their_ids(entries: Entries, tmp_path: Path) -> None:
    """Relays give every answer the same id, or none: what a user's line stands between is two answers."""
    assert histories(entries, tmp_path) == histories(five(), tmp_path)


def test_an_answer_goes_on_behind_the_result_of_its_own_first_call(tmp_path: Path) -> None:
    """Tools start while it streams: the same id, the same request, the same bill."""
    log = Log()
    log.user("go")
    log.answer("m1", call("c1"), requestId="r1")
    log.result("c1", "first")
    log.answer("m1", call("c2"), requestId="r1")
    log.result("c2", "second")
    log.answer("m2", said("done"), requestId="r2", usage=usage(read=5))
    entries = [json.loads(line) for line in log.lines]
    assert len(histories(entries, tmp_path)) == 2
    entries[3]["requestId"] = "r3"
    assert len(histories(entries, tmp_path)) == 3


def test_sessions_that_share_ids_are_both_priced(tmp_path: Path) -> None:
    """A copy has the same uuid, or says the same."""
    for name in ("one", "two"):
        written(named(five(name), id="chatcmpl-1"), tmp_path, name)
    assert [s.requests for s in open_all([tmp_path]) if isinstance(s, Session)] == [REQUESTS] * 2
    for name in ("one", "two"):
        written(five(name), tmp_path, name)
    assert [s.requests for s in open_all([tmp_path]) if isinstance(s, Session)] == [REQUESTS] * 2


def test_two_agents_of_one_relay_are_both_priced(tmp_path: Path) -> None:
    """One answer each, under the one id, in one session."""
    for name in ("one", "two"):
        entries = named(five(name)[:2], id="x", content=[said(f"I am {name}")])
        written([entry | {"isSidechain": True, "agentId": name} for entry in entries], tmp_path, name)
    assert [s.requests for s in open_all([tmp_path]) if isinstance(s, Session)] == [1, 1]


def test_an_answer_that_lost_a_line_in_its_middle_is_one_request(tmp_path: Path) -> None:
    """What is left of it has one bill."""
    log = Log()
    log.user("go")
    log.answer("m1", said("I look"), said("at two"), call("c1"), usage=usage(read=1))
    log.result("c1", "text")
    log.answer("m2", said("done"), usage=usage(read=2))
    del log.lines[2]
    assert [len(h) for h in histories([json.loads(line) for line in log.lines], tmp_path)] == [1, 3]


# -- written again -------------------------------------------------------------------------------------------------------


def again(
    entries: Entries, *, chained: bool, change: Callable[[dict[str, Any]], object] = lambda entry: None
) -> Entries:
    """Each line of an answer once more behind itself, at the same parent or at the first copy."""
    found: Entries = []
    renames: dict[str, str] = {}
    for entry in json.loads(json.dumps(entries)):
        entry["parentUuid"] = renames.get(entry["parentUuid"], entry["parentUuid"])
        found.append(entry)
        if entry["type"] == "assistant":
            copy = json.loads(json.dumps(entry)) | {"uuid": entry["uuid"] + "-again"}
            change(copy)
            if chained:
                copy["parentUuid"] = entry["uuid"]
                renames[entry["uuid"]] = copy["uuid"]
            found.append(copy)
    return found


def later(entry: dict[str, Any]) -> None:
    entry["timestamp"] = "2027-01-15T09:00:00Z"


def unbilled(entry: dict[str, Any]) -> None:
    entry["message"]["usage"] = {"input_tokens": 0, "output_tokens": 0}


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("change", [lambda entry: None, later, unbilled], ids=["plain", "later", "unbilled"])
def test_an_answer_that_is_written_again_says_it_once(chained: bool, change: Any, tmp_path: Path) -> None:
    """Under a new uuid and the same id, wherever the copy hangs."""
    assert histories(again(five(), chained=chained, change=change), tmp_path) == histories(five(), tmp_path)


def test_snapshots_that_grow_are_one_answer(tmp_path: Path) -> None:
    """The beginning of the text, all of it, the call without arguments, the call."""
    log = Log()
    log.user("go")
    start = log.answer("m1", said("I lo"), usage=usage(output=1))
    entry = json.loads(log.lines[-1])
    for n, content in enumerate(
        [[said("I look")], [said("I look"), call("c1")], [said("I look"), call("c1", path="a")]]
    ):
        entry = entry | {"uuid": f"snapshot{n}", "message": entry["message"] | {"content": content}}
        log.lines.append(json.dumps(entry))
    log.result("c1", "text", parent="snapshot2")
    log.answer("m2", said("done"))
    found = histories([json.loads(line) for line in log.lines], tmp_path)
    assert len(found) == 2 and start
    assert json.loads(found[1][1])["content"] == [
        said("I look"),
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a"}},
    ]


def test_a_whole_history_copied_into_the_same_file_counts_once(tmp_path: Path) -> None:
    """Under new uuids, before what goes on from the copy."""
    copy = renamed(five(), "copy")
    entries = five() + copy
    on = Log()
    on.user("on", parent=copy[-1]["uuid"])
    on.answer("m9", said("fine"))
    entries += renamed([json.loads(line) | {"uuid": f"on{n}"} for n, line in enumerate(on.lines)], "")
    entries[-1]["parentUuid"] = "on0"
    found = histories(entries, tmp_path)
    assert len(found) == REQUESTS + 1 and len(found[-1]) == 2 * REQUESTS + 1


def test_equal_answers_of_a_relay_are_not_one(tmp_path: Path) -> None:
    """The same word under the same id, at another time."""
    log = Log()
    for n in range(4):
        log.user(f"go {n}")
        log.answer("x", said("ok"), usage=usage(read=1000 * n))
    assert len(histories([json.loads(line) for line in log.lines], tmp_path)) == 4


def test_a_prompt_that_is_written_again_is_told_once(tmp_path: Path) -> None:
    """Chained to itself, at the same time."""
    entries = five()
    entries.insert(1, entries[0] | {"uuid": "again", "parentUuid": entries[0]["uuid"]})
    entries[2]["parentUuid"] = "again"
    assert histories(entries, tmp_path) == histories(five(), tmp_path)


def test_calls_whose_ids_are_used_again_get_their_own_results(tmp_path: Path) -> None:
    """Some models count their calls anew in every answer."""
    log = Log()
    log.user("go")
    for n in range(3):
        log.answer(f"m{n}", call("call_0"))
        log.result("call_0", f"result {n}")
    log.answer("m9", said("done"))
    last = histories([json.loads(line) for line in log.lines], tmp_path)[-1]
    assert [json.loads(message)["content"][0]["content"] for message in last[2::2]] == [f"result {n}" for n in range(3)]


# -- out of order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_lines_changes_no_history(seed: int, tmp_path: Path) -> None:
    """The tree is by uuid: children before parents, results behind the answers to them, all of it in any order."""
    entries = five()
    random.Random(seed).shuffle(entries)
    found = {tuple(history) for history in histories(entries, tmp_path)}
    assert found == {tuple(history) for history in histories(five(), tmp_path)}
    [session] = opened(entries, tmp_path)
    assert isinstance(session, Session)
    assert [step.opens for step in session.steps()] == [True] + [False] * (REQUESTS - 1)


def test_parents_in_rounds_end(tmp_path: Path) -> None:
    """Of two lines, of an answer and its question, of a line with itself."""
    for first, second in ((0, 1), (2, 4), (3, 3), (0, 8)):
        entries = five()
        entries[first]["parentUuid"] = entries[second]["uuid"]
        assert REQUESTS <= len(histories(entries, tmp_path)) <= REQUESTS + 1


@pytest.mark.parametrize("kind", ["progress", "system", "attachment", "user"])
def test_what_hangs_behind_a_line_that_is_not_there_goes_on(kind: str, tmp_path: Path) -> None:
    """A client that resumes in the same file writes lines whose parent it never wrote."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.add(kind, parent="never written", message={"role": "user", "content": "resumed"})
    log.user("on")
    log.answer("m2", said("b"))
    found = histories([json.loads(line) for line in log.lines], tmp_path)
    assert [len(history) for history in found] == [1, 3]


def test_a_chain_of_such_lines_goes_on_too(tmp_path: Path) -> None:
    """And from the compaction before them, where one was."""
    log = Log()
    log.user("go")
    log.answer("m1", said("a"))
    log.compact("all that was")
    for n in range(3):
        log.add("progress", parent=f"never written {n}")
    log.user("on")
    log.answer("m2", said("b"))
    found = histories([json.loads(line) for line in log.lines], tmp_path)
    assert [block["text"] for block in json.loads(found[1][0])["content"]] == ["all that was", "on"]


def test_a_log_that_begins_in_mid_history_opens_with_its_first_line(tmp_path: Path) -> None:
    """Its parent stands in another file; nothing was logged before."""
    entries = five()[3:]
    assert [len(history) for history in histories(entries, tmp_path)] == [1, 3, 5, 7][: REQUESTS - 1]


def test_a_sub_agents_lines_may_come_in_any_order(tmp_path: Path) -> None:
    """Older clients name no agent; the thread is the tree."""
    entries = five()
    entries += [entry | {"isSidechain": True} for entry in renamed(five("agent"), "side")]
    main, agent = opened(entries, tmp_path)
    backwards = opened(entries[::-1], tmp_path)
    assert [s.requests for s in backwards if isinstance(s, Session)] == [REQUESTS, REQUESTS]
    assert [s.name for s in backwards] == [main.name, agent.name]


# -- what a compaction kept ----------------------------------------------------------------------------------------------


def compacted(metadata: dict[str, Any], hang: str | None = None) -> Entries:
    """Five requests, a compaction, one more; `metadata` may name lines by their place in the log."""
    entries = five()
    uuids = [entry["uuid"] for entry in entries]
    text = json.dumps(metadata)
    for n in reversed(range(len(uuids))):
        text = text.replace(f'"@{n}"', json.dumps(uuids[n]))
    boundary = entries[0] | {"type": "system", "subtype": "compact_boundary", "uuid": "cut", "parentUuid": None}
    boundary |= json.loads(text)
    told = {"role": "user", "content": "all that was"}
    summary = entries[0] | {"uuid": "sum", "parentUuid": "cut", "message": told, "isCompactSummary": True}
    on = entries[0] | {"uuid": "on", "parentUuid": hang or uuids[-1], "message": {"role": "user", "content": "on"}}
    answer = entries[-1] | {"uuid": "last", "parentUuid": "on"}
    answer["message"] = answer["message"] | {"id": "m10", "content": [said("on it")]}
    return [*entries, boundary, summary, on, answer]


UUIDS = [f"@{n}" for n in range(10, 14)]
SEGMENT = {"headUuid": "@10", "tailUuid": "@13", "anchorUuid": "sum"}


@pytest.mark.parametrize(
    "metadata",
    [
        {"compactMetadata": {"preservedSegment": SEGMENT}},
        {"compactMetadata": {"preservedMessages": {"anchorUuid": "sum", "uuids": UUIDS, "allUuids": UUIDS}}},
        {"compactMetadata": {"preservedMessages": {"anchorUuid": "sum", "uuids": UUIDS}, "preservedSegment": SEGMENT}},
        {"compactMetadata": {"preservedMessages": {"anchorUuid": "sum", "allUuids": UUIDS}}},
        {"compactMetadata": {"preserved_messages": {"anchor_uuid": "sum", "all_uuids": UUIDS}}},
        {"compact_metadata": {"preserved_segment": {"head_uuid": "@10", "tail_uuid": "@13", "anchor_uuid": "sum"}}},
        {"compactMetadata": {"preservedMessages": {"anchorUuid": "gone", "uuids": UUIDS}}},
        {"compactMetadata": {"preservedMessages": {"uuids": UUIDS}}},
        {"compactMetadata": {"preservedMessages": {"anchorUuid": "sum", "uuids": []}, "preservedSegment": SEGMENT}},
    ],
)
def test_what_a_compaction_kept_may_be_named_in_several_ways(metadata: dict[str, Any], tmp_path: Path) -> None:
    """By its ends or one by one, in either spelling; without a summary's name it is the one below the boundary."""
    last = histories(compacted(metadata), tmp_path)[-1]
    assert len(last) == 5 and b"all that was" in last[0] and b"step 3" in last[1] and b'"on"' in last[-1]
    assert (
        histories(compacted(metadata, "sum"), tmp_path)[-1] == last
    )  # where clients hang it that link anew on reading


def test_a_compaction_may_keep_the_oldest_messages(tmp_path: Path) -> None:
    """They stand behind the boundary, the summary behind them."""
    segment = {"headUuid": "@0", "tailUuid": "@3", "anchorUuid": "cut"}
    last = histories(compacted({"compactMetadata": {"preservedSegment": segment}}, "sum"), tmp_path)[-1]
    assert len(last) == 3 and b'" go"' in last[0] and b"step 0" in last[1]
    assert b"all that was" in last[2] and b'"on"' in last[2]


@pytest.mark.parametrize(
    "segment",
    [
        SEGMENT | {"headUuid": "gone"},
        SEGMENT | {"headUuid": "on"},
        SEGMENT | {"headUuid": "@13", "tailUuid": "@10"},
        SEGMENT | {"headUuid": 5},
        SEGMENT | {"headUuid": "gone", "tailUuid": "gone"},
    ],
)
def test_a_segment_whose_head_is_not_found_keeps_nothing(segment: dict[str, Any], tmp_path: Path) -> None:
    """Rather than all that the compaction did away with."""
    hang = "gone" if segment["tailUuid"] == "gone" or segment["headUuid"] == 5 else None
    entries = compacted({"compactMetadata": {"preservedSegment": segment}}, hang)
    if segment["tailUuid"] == "@10":
        entries[-2]["parentUuid"] = entries[10]["uuid"]
    last = histories(entries, tmp_path)[-1]
    assert len(last) == 1 and b"all that was" in last[0] and b'"on"' in last[0]


def test_requests_before_a_compaction_do_not_know_of_it(tmp_path: Path) -> None:
    """What it kept may end with a line at which an older answer hangs."""
    entries = compacted({"compactMetadata": {"preservedSegment": SEGMENT | {"tailUuid": "@11"}}})
    before = histories(entries, tmp_path)[:REQUESTS]
    assert before == histories(five(), tmp_path)


# -- copies in other files -----------------------------------------------------------------------------------------------


def test_late_copies_count_once(tmp_path: Path) -> None:
    """Behind the file's own lines, between them, with other uuids, times and bills: each request once."""
    written(five(), tmp_path, "a")
    copied = renamed(five(), "late")
    for n, entry in enumerate(copied):
        entry["timestamp"] = f"2026-01-0{9 - n % 9}T00:00:00Z"
        if entry["type"] == "assistant":
            entry["message"]["usage"] = usage(read=7)
    own = five("own")
    for entry in answers(own):
        entry["message"]["id"] += "own"
    written(own[:6] + copied + own[6:], tmp_path, "b")
    first, second = open_all([tmp_path])
    assert isinstance(first, Session) and isinstance(second, Session)
    assert (first.requests, second.requests, second.elsewhere) == (REQUESTS, REQUESTS, REQUESTS)
    found = [messages for _, messages in whole_histories(second.steps())]
    assert found == histories(own, tmp_path)
    assert [step.index for step in second.steps()] == [*range(REQUESTS)]


def test_a_history_that_goes_on_from_copies_is_whole(tmp_path: Path) -> None:
    """The copies stand in the middle of it."""
    written(five()[:7], tmp_path, "a")
    written(five(), tmp_path, "b")
    first, second = open_all([tmp_path])
    assert isinstance(first, Session) and isinstance(second, Session)
    assert first.requests + second.requests == REQUESTS
    whole = histories(five(), tmp_path)
    assert [m for _, m in whole_histories(second.steps())] == whole[first.requests :]
