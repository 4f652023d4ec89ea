"""Who answers an ask in a replay: hindsight, with real verdict replies, or answers that were recorded."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from cg.errors import CgError
from cg.replay.policies import Oracle
from cg.replay.recordings.hindsight import Hindsight, Label
from cg.sweep.effects import Answer, Failure
from cg.sweep.judging.recorded_asker import RecordedAsker
from cg.sweep.values import Usage

LISTED = re.compile(r"^\[(\d+)\] \d+ tokens, id (\S+?)(?: part \d+)?, ", re.M)  # `cg.sweep.judging.inventory.line`

# As an ask and a fallback write it; neither can stand inside a string, where quotes are escaped.
OPENINGS = (b'{"role":"user","content":"', b'{"role": "user", "content": "')

Charge = Callable[[bytes, int], Usage]  # (ask body, output tokens) -> what the call cost


def last_message(body: bytes) -> bytes:
    """The question's message in an ask's body: the last one, a plain string."""
    tail = body[max(body.rfind(opening) for opening in OPENINGS) :].decode()
    _, size = json.JSONDecoder().raw_decode(tail)
    return tail[:size].encode()


def listed(body: bytes) -> list[tuple[int, str]]:
    """(label, tool_use id) of the outputs that an ask lists, from the words of its question."""
    question = json.loads(last_message(body))["content"]
    return [(int(label), tool_use_id) for label, tool_use_id in LISTED.findall(question)]


class HindsightAsker:
    """Answers as a model would that knew the rest of the session: it keeps what is used again, and drops the rest.

    `session` seeds the errors of an imperfect one; an output is misjudged always or never.
    """

    def __init__(self, hindsight: Hindsight, judge: Oracle, session: str, verdict_tokens: int, charge: Charge) -> None:
        self._hindsight, self._judge, self._session = hindsight, judge, session
        self._verdict_tokens, self._charge = verdict_tokens, charge
        self.request = 0  # the request that comes next: uses from there on count
        self.offered: list[str] = []  # ids of the last ask

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """A reply with one verdict for each listed output, priced at so many tokens each."""
        offered = listed(body)
        self.offered = [tool_use_id for _, tool_use_id in offered]
        verdicts = [self._verdict(label, tool_use_id) for label, tool_use_id in offered]
        return Answer(json.dumps(verdicts), self._charge(body, self._verdict_tokens * len(verdicts)))

    def _verdict(self, label: int, tool_use_id: str) -> dict[str, object]:
        needed = self._hindsight.label(tool_use_id, self.request) is not Label.SPENT
        share = self._judge.drops_needed if needed else self._judge.drops_spent
        if _draw(self._session, tool_use_id) < share:
            return {"i": label, "needed_by": "none", "quote": "", "verdict": "drop"}
        return {"i": label, "needed_by": "a", "quote": "", "verdict": "keep"}


def _draw(*words: str) -> float:
    """A number in [0, 1) that these words always give."""
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


class FolderAsker:
    """Answers with replies that were recorded, the n-th ask of a session with DIR/SESSION/NNN.txt or .json."""

    def __init__(self, folder: Path, session: str, verdict_tokens: int, charge: Charge) -> None:
        self._folder = folder / session.replace("/", "_")
        self._verdict_tokens, self._charge = verdict_tokens, charge
        self._n = 0
        self.request = 0
        self.offered: list[str] = []

    def ask(self, body: bytes, timeout_s: float) -> Answer | Failure:
        """The recorded text, priced by the replay's own cache; a failure where there is none."""
        self._n += 1
        self.offered = [tool_use_id for _, tool_use_id in listed(body)]
        for name in (f"{self._n:03}.txt", f"{self._n:03}.json"):
            if (self._folder / name).is_file():
                answer = RecordedAsker.from_file(self._folder / name).ask(body, timeout_s)
                if isinstance(answer, Failure):
                    return answer
                return Answer(answer.text, self._charge(body, self._verdict_tokens * len(self.offered)))
        return Failure(f"no recorded reply {self._n:03}")


def check_folder(folder: Path) -> None:
    """Raises CgError for a folder of replies that is not there."""
    if not folder.is_dir():
        raise CgError(f"{folder}: no folder of replies")
