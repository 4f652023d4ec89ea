"""The steps of a recorded session as its document has them, without what a strict server would want made up."""

import json
from pathlib import Path
from typing import Any

from cg.replay.recordings.recording import Step

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "transcripts"


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TRANSCRIPTS / f"{name}.json").read_text("utf-8"))
    return found


def steps_of(events: list[dict[str, Any]]) -> list[Step]:
    """One step for each assistant event; what stands before it since the last one is new."""
    steps: list[Step] = []
    new: list[bytes] = []
    opens = True
    for event in events:
        if event["role"] == "system":
            opens, new = True, []
            continue
        content = [block for block in event["content"] if block["type"] != "thinking_omitted"]
        text = json.dumps({"role": event["role"], "content": content}).encode()
        if event["role"] == "assistant":
            steps.append(Step(len(steps), float(len(steps)), None, "m", opens, tuple(new), text, None))
            opens, new = False, []
        new.append(text)
    return steps
