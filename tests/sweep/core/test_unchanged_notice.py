"""Which results bring a removed output back: a client's notice that a repeated read is unchanged, and nothing else."""

import json
from typing import Any

import pytest
from sessions import results
from sweeping import START, encoded, history, output, removed_at_cold, sweep_of

from cg.sweep.body.transcript import Transcript, read
from cg.sweep.core.unchanged_notice import leaned_on
from cg.sweep.counters import Event
from cg.sweep.drivers import Sweep
from cg.sweep.values import Ending

EARLIER = "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still"
EARLIER += " current \u2014 refer to that instead of re-reading."
WASTED = "Wasted call \u2014 file unchanged since your last Read. Refer to that earlier tool_result instead."
REMINDER = "\n\n<system-reminder>\nThe date has changed.\nGo on.\n</system-reminder>"
PLACEHOLDER = (
    "[File repo/f4.py unchanged since last read in this session \u2014 the full content was provided earlier in this"
)
PLACEHOLDER += (
    " conversation. If you cannot retrieve that prior content (e.g. after context compaction), re-read with explicit"
)
PLACEHOLDER += " offset/limit to fetch current content.]"
STATUS = json.dumps(
    {"status": "unchanged", "message": EARLIER.replace("Read tool_result", "read_file result"), "dedup": True}
)
PATH = {"file_path": "/repo/f4.py"}


def again(content: Any, *, tool: str = "Read", arguments: Any = PATH, is_error: bool = False) -> dict:
    """The history with one more call, about the file that the fifth output came from."""
    body = history(20, last="And now?")
    call = {"type": "tool_use", "id": "toolu_again", "name": tool, "input": arguments}
    result = {"type": "tool_result", "tool_use_id": "toolu_again", "content": content, "is_error": is_error}
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return body


def restored_by(body: dict) -> tuple[bool, int, Sweep]:
    """(whether the fifth output, which was removed, is whole again; removals counted as restored; the sweep)."""
    sweep = sweep_of()
    removed = removed_at_cold(sweep)[1].report.removed
    assert "toolu_004" in {one.tool_use_id for one in removed}
    done = sweep.process(encoded(body), "t", START + 1010)
    assert done.report.replayed >= len(removed) - 1  # the same history, as far as it goes
    return results(done.body)["toolu_004"] == output(4), done.report.events.get(Event.RESTORED, 0), sweep


NOTICES = {
    "Claude Code": EARLIER,
    "Claude Code, later": WASTED,
    "with a reminder behind it": WASTED + REMINDER,
    "in a block": [{"type": "text", "text": EARLIER}],
    "nanobot": "[File unchanged since last read: /repo/f4.py]",
    "Qwen Code": PLACEHOLDER,
    "Hermes": STATUS,
}


@pytest.mark.parametrize("notice", NOTICES.values(), ids=NOTICES)
def test_a_known_notice_restores_the_first_copy_once(notice: Any) -> None:
    """The model has no other; it stays whole for good, and is counted when it first does."""
    body = again(notice)
    back, counted, sweep = restored_by(body)
    assert back and counted == 1
    assert list(sweep.state("t").ended.values()) == [Ending.RESTORED]
    later = sweep.process(encoded({**body, "max_tokens": 31000}), "t", START + 1020)
    assert results(later.body)["toolu_004"] == output(4) and Event.RESTORED not in later.report.events


OTHERS = {
    "no match": "No matches found",
    "empty": "",
    "a short file": "1\tunchanged",
    "a file with the words": "1\tFile unchanged since last read.",
    "ok": "ok",
    "a missing file": "File does not exist.",
    "a memory file that stands in the prompt": '<system-reminder>This file is already in your context (see "Contents of f4.py"'
    " above) and has not changed on disk. Use that content instead of re-reading.</system-reminder>",
    "an edit's": "File has been modified since read, either by the user or by a linter. Read it again.",
    "near": "File changed since last read.",
    "text behind it": EARLIER + "\nTraceback (most recent call last):",
    "text before it": "Note: " + WASTED,
    "too long": EARLIER + " x" * 2000,
    "other status": STATUS.replace('"unchanged"', '"changed"'),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_any_other_short_result_of_the_same_read_restores_nothing(text: str) -> None:
    """It stands for itself; to bring removed text back at a warm request would cost the whole prefix behind it."""
    assert restored_by(again(text))[:2] == (False, 0)


CALLS = {
    "a search": {"tool": "Grep", "arguments": {"path": "/repo/f4.py", "pattern": "x"}},
    "a search called so": {"tool": "Grep"},
    "an edit": {"tool": "Edit"},
    "a shell": {"tool": "Bash", "arguments": {"command": "cat /repo/f4.py"}},
    "another reader": {"tool": "read_file"},
    "a part of the file": {"arguments": {**PATH, "offset": 100, "limit": 20}},
    "another path": {"arguments": {"file_path": "/repo/f4.pyi"}},
    "no arguments": {"arguments": {}},
    "an error": {"is_error": True},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_notice_of_another_call_restores_nothing(call: dict[str, Any]) -> None:
    """A read tool, and all its arguments the same: else the notice points at something else."""
    assert restored_by(again(EARLIER, **call))[:2] == (False, 0)


def reading(first: Any, second: Any, content: Any) -> Transcript:
    """A read with these arguments that brought this content, and a read with others that brought a notice."""
    body = again(EARLIER, arguments=second)
    body["messages"][9]["content"][0]["input"], body["messages"][10]["content"][0]["content"] = first, content
    return read(encoded(body))


def test_the_order_of_arguments_does_not_matter() -> None:
    """It is the same call, however the model wrote it down."""
    transcript = reading({**PATH, "limit": 5, "offset": 1}, {"offset": 1, "limit": 5, **PATH}, output(4))
    assert [identity.tool_use_id for identity in leaned_on(transcript)] == ["toolu_004"]


@pytest.mark.parametrize(
    ("tool", "is_read"), [("Bash", False), ("Grep", False), ("read_file", True), ("mcp__fs__read_file", True)]
)
def test_only_a_read_tool_has_notices(tool: str, is_read: bool) -> None:
    """A shell that prints such a line twice leans on nothing."""
    body = again(EARLIER, tool=tool)
    body["messages"][9]["content"][0]["name"] = tool
    assert bool(leaned_on(read(encoded(body)))) is is_read


def test_an_output_in_several_blocks_comes_back_whole() -> None:
    """The notice points at all of it."""
    blocks = [{"type": "text", "text": output(n)} for n in (31, 32)]
    assert [identity.block for identity in leaned_on(reading(PATH, PATH, blocks))] == [0, 1]


def test_a_read_in_between_that_brought_the_text_is_the_one_leaned_on() -> None:
    """The client points at its newest copy: the older one stays removed."""
    body = again(EARLIER)
    call = {"type": "tool_use", "id": "toolu_whole", "name": "Read", "input": PATH}
    result = {"type": "tool_result", "tool_use_id": "toolu_whole", "content": "the new text\n" * 50}
    body["messages"][-2:-2] = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert restored_by(body)[:2] == (False, 0)
