"""Reads that a client will not repeat: it says that the file is unchanged and points at the output it gave before."""

import json
import re

from cg.sweep.body.transcript import ToolText, ToolUse, Transcript
from cg.sweep.values import Identity

LONGEST_NOTICE = 2000  # bytes: some name the path, and a client may append reminders of its own

# How the notices begin that clients are known to write, and what each goes on with is on the same line: Claude Code
# ("File unchanged since last read. The content from the earlier Read tool_result in this conversation is still current
# ...", from 2.1 on "Wasted call \u2014 file unchanged since your last Read. Refer to that earlier tool_result instead."),
# Hermes (the first, as the message of a JSON object), nanobot ("[File unchanged since last read: PATH]") and Qwen Code
# ("[File PATH unchanged since last read in this session \u2014 ...]"). Of Claude Code's it is what its own check compares.
NOTICE = re.compile(
    r"""File\ unchanged\ since\ last\ read\b.*
      | Wasted\ call\ \u2014\ file\ unchanged\ since\ your\ last\ Read\b.*
      | \[File\ unchanged\ since\ last\ read:\ .*\]
      | \[File\ .+\ unchanged\ since\ last\ read\ in\ this\ session\b.*\]
      | \{"status":\ ?"unchanged",\ ?"message":\ ?"File\ unchanged\ since\ last\ read\b.*\}
    """,
    re.VERBOSE,
)
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
READ_TOOL = re.compile(r"(?:mcp__.+__)?(?:(?:notebook_?)?read(?:_?(?:text_?)?file)?|view(?:_?file)?)", re.IGNORECASE)

Read = tuple[str, str]  # tool, arguments as canonical JSON


def leaned_on(transcript: Transcript) -> tuple[Identity, ...]:
    """Outputs that a client points at in the place of a repeated read: the only copies that the model has.

    A read tool, all its arguments the same, and a text that is one of the clients' known notices. Any other short
    result stands for itself ("No matches found"), and to take it for a notice would bring removed text back for nothing.
    """
    uses = transcript.tool_uses
    short = (text for text in transcript.tool_texts if text.size_bytes <= LONGEST_NOTICE and text.tool_use_id in uses)
    notices = {
        text.tool_use_id: read
        for text in short
        if READ_TOOL.fullmatch(uses[text.tool_use_id].name) and is_notice(text)
        if (read := read_of(uses[text.tool_use_id])) is not None
    }
    if not notices:
        return ()
    repeated, tools = set(notices.values()), {tool for tool, _ in notices.values()}
    whole: dict[Read, tuple[str, list[Identity]]] = {}  # the newest output that was no notice: its call, its texts
    found: dict[Identity, None] = {}
    for text in transcript.tool_texts:
        use = uses.get(text.tool_use_id)
        read = read_of(use) if use is not None and use.name in tools else None
        if read is None or read not in repeated or text.is_error:
            continue
        if text.tool_use_id in notices:
            found |= dict.fromkeys(whole[read][1] if read in whole else ())
        else:
            if read not in whole or whole[read][0] != text.tool_use_id:
                whole[read] = text.tool_use_id, []  # it brought all anew: nothing leans on an older one
            whole[read][1].append(text.identity)
    return tuple(found)


def is_notice(text: ToolText) -> bool:
    """The text is one of the clients' known notices, reminders that a client appends set aside."""
    if text.is_error or text.size_bytes > LONGEST_NOTICE:
        return False
    return NOTICE.fullmatch(REMINDER.sub("", text.text).strip()) is not None


def read_of(use: ToolUse) -> Read | None:
    """What a call of a read tool asks for; None for any other call."""
    if not READ_TOOL.fullmatch(use.name):
        return None
    try:
        arguments = json.loads(use.arguments)
    except (ValueError, RecursionError):
        return None
    return (use.name, json.dumps(arguments, sort_keys=True)) if isinstance(arguments, dict) else None
