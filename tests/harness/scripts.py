"""What the stand-in upstream says in each scenario, as scripts for `fake_upstream`.

`advance_s` moves the manual clock after a reply: past `GAP_S` the five-minute cache is surely gone.
"""

from pathlib import Path
from typing import Any

Turn = dict[str, Any]
GAP_S = 700  # lifetime 300 s, cold margin 60 s, and a ping or an idle ask at 240 s that may have renewed it
MARKER = {"$find": "<<cg:([0-9a-f]{16})>>", "in": "messages", "else": "0" * 16}
FINAL = "All files read. The handlers are consistent."


def routes(turns: list[Turn], *more: dict[str, Any]) -> dict[str, Any]:
    """A script of Claude Code: titles and compactions are answered by routes of their own."""
    side = {"name": "side", "match": {"tools": False}, "then": "repeat", "turns": [{"text": '{"title": "Sample"}'}]}
    compact = {
        "name": "compact",
        "match": {"last_user~": "CRITICAL: Respond with TEXT ONLY"},
        "then": "repeat",
        "turns": [{"text": "<summary>\nThe user asked for a look at the files; it is done.\n</summary>"}],
    }
    return {"routes": [side, compact, *more, {"name": "main", "turns": turns}]}


def read(root: Path, name: str, **more: Any) -> dict[str, Any]:
    return {"name": "Read", "input": {"file_path": f"{root}/src/{name}", **more}}


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command, "description": command[:24]}}


def turn(*calls: dict[str, Any], **more: Any) -> Turn:
    return {**more, "tools": list(calls)}


def reads(root: Path, gaps: tuple[int, ...] = (), gap_s: float = GAP_S) -> list[Turn]:
    """18 turns, 19 calls: reads, greps, a failing command, a missing file, a picture, pairs; a wait after `gaps`."""
    turns = [
        turn(bash("ls -la"), text="I will look around first.", thinking="Start with a listing."),
        turn(read(root, "mod_01.py")),
        turn(read(root, "mod_02.py"), read(root, "mod_03.py"), text="Two more files."),
        turn(bash("grep -n 'handler_04' src/mod_04.py | head -50")),
        turn(read(root, "mod_04.py", limit=60)),
        turn(bash("cat src/does_not_exist.py"), text="This one should fail."),
        turn(read(root, "does_not_exist.py")),
        turn(read(root, "mod_05.py"), thinking="Keep reading."),
        turn(bash("wc -l src/*.py; grep -rn 'limit=7' src | sort | head -30")),
        turn(read(root, "mod_06.py"), bash("true")),
        turn(read(root, "mod_07.py")),
        turn(bash("python3 -c \"print('x'*20000)\"")),
        turn(read(root, "mod_08.py")),
        turn(read(root, "pixel.png")),
        turn(bash("sed -n 1,80p src/mod_09.py")),
        turn(read(root, "mod_10.py")),
        turn(bash("pwd")),
        {"text": FINAL},
    ]
    for number in gaps:
        turns[number - 1]["advance_s"] = gap_s
    return turns


def six_reads(root: Path) -> list[Turn]:
    """Six files, then a long wait: what follows comes to a cold cache."""
    turns = [turn(read(root, f"mod_{n:02d}.py")) for n in range(1, 7)]
    turns[-1]["advance_s"] = GAP_S
    return turns


def hidden(root: Path) -> list[Turn]:
    """The model asks for one removed output and for nothing else in that reply, then goes on."""
    ask = {"thinking": "I need one again.", "text": "One of them is needed again.", "tool": "cg_expand"}
    call = turn(read(root, "mod_07.py"))
    return [*six_reads(root), call, {**ask, "input": {"id": MARKER}}, turn(read(root, "mod_08.py")), {"text": FINAL}]


def hidden_unaided(root: Path) -> list[Turn]:
    """What `hidden` says as a client without a gateway would see it: one message in the place of two."""
    both = turn(read(root, "mod_08.py"), thinking="I need one again.", text="One of them is needed again.")
    return [*six_reads(root), turn(read(root, "mod_07.py")), both, {"text": FINAL}]


def shown(root: Path) -> list[Turn]:
    """The model asks for a removed output and for a file in one reply: the client sees a call that it does not know."""
    call = {"name": "cg_expand", "input": {"id": MARKER}}
    mixed = turn(call, read(root, "mod_08.py"), text="Two things at once.")
    return [*six_reads(root), turn(read(root, "mod_07.py")), mixed, turn(bash("pwd")), {"text": FINAL}]


def subagent(root: Path) -> dict[str, Any]:
    """A sub-agent greps and reads between two turns of its parent."""
    start = {
        "name": "Agent",
        "input": {"description": "look", "prompt": "SUBTASK: inspect src", "subagent_type": "Explore"},
    }
    grep = {"name": "Grep", "input": {"pattern": "handler_1[0-2]", "path": f"{root}/src"}}
    sub = {
        "name": "sub",
        "match": {"header": {"x-claude-code-agent-id": "."}},
        "turns": [turn(grep), turn(read(root, "mod_12.py")), {"text": "Sub-agent done: consistent."}],
    }
    return routes([turn(start, advance_s=GAP_S), turn(bash("ls")), {"text": "Main done."}], sub)


def compaction(root: Path) -> list[Turn]:
    """Three prompts in one process, with a repeated read and a compaction between the second and the third."""
    return [
        turn(read(root, "huge.txt")),
        turn(read(root, "mod_01.py")),
        turn(read(root, "mod_02.py"), advance_s=GAP_S),
        turn(read(root, "mod_01.py")),  # the client answers "unchanged"
        {"text": "First answer."},
        turn(bash("ls")),
        {"text": "Second answer."},
        turn(bash("pwd")),
        {"text": "Third answer."},
    ]


def faulty(root: Path, fault: dict[str, Any] | list[dict[str, Any]]) -> list[Turn]:
    """A fault in the reply to the first request that carries removed outputs."""
    turns = [*six_reads(root), turn(bash("pwd")), {"text": FINAL}]
    turns[6]["fault"] = fault
    return turns


def lookups() -> list[Turn]:
    """15 calls of a caller's own tool `lookup`, some in pairs, one that fails; a long wait after the eighth turn."""
    turns: list[Turn] = []
    for number in range(1, 16):
        call = {"name": "lookup", "input": {"n": number}}
        if number % 5:
            turns.append(turn(call, text=f"Looking at set {number}."))
        else:
            turns.append(turn(call, {"name": "lookup", "input": {"n": number + 10}}))
    turns[7]["advance_s"] = GAP_S
    return [*turns, {"text": "All sets look alike."}]
