"""Check candidates in order until one is found, and never guess: what was not checked is not claimed."""

from __future__ import annotations

from enum import Enum
from hashlib import sha256

from cg.hints.limits import MAX_REMEMBERED_CHECKS
from cg.hints.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal, NotRequired, TypedDict

    from cg.hints.catalog import Candidate, Document
    from cg.hints.ordering import Response
    from cg.hints.request import Request
else:
    TypedDict = dict  # what a typed dictionary is at run time, without importing `typing`


class Answer(Enum):
    """What one check said about its candidate."""

    FOUND = "found"
    NOT_THIS = "not_this"


class Failure(Record):
    """A check that came to nothing; `reason` says how, in a few words and without content."""

    reason: str


class Subject(TypedDict):
    """What a check is told about its candidate; data to look at, never an instruction to follow."""

    snapshot_id: str
    query: str
    id: str
    text: str
    rank: int
    source: str
    bm25_rank: int
    bm25_score: float
    name: NotRequired[str]


if TYPE_CHECKING:
    Check = Callable[[Subject], Answer | Failure]


class Outcome(Record):
    """`id` is the candidate that was found, else None; `checks` counts the checks that were made for it.

    Incomplete: `reason` says why ("budget", or how the check failed), `at` names the first candidate without an answer.
    """

    result: Literal["found", "absent", "incomplete"]
    id: str | None
    checks: int
    reason: str | None = None
    at: str | None = None

    def to_dict(self) -> dict[str, str | int | None]:
        printed: dict[str, str | int | None] = {"result": self.result, "id": self.id, "checks": self.checks}
        if self.result == "incomplete":
            printed |= {"reason": self.reason, "at": self.at}
        return printed


class CheckMemory:
    """The answers of one run by (snapshot, query, id), so that no check is made twice; failures are kept as well.

    Holds digests, not content, and forgets the oldest past `capacity`.
    """

    def __init__(self, capacity: int = MAX_REMEMBERED_CHECKS) -> None:
        self._capacity = capacity
        self._answers: dict[bytes, Answer | Failure] = {}

    def __len__(self) -> int:
        return len(self._answers)

    @staticmethod
    def _key(subject: Subject) -> bytes:
        digest = sha256()
        for part in (subject["snapshot_id"], subject["query"], subject["id"]):
            encoded = part.encode("utf-8")
            digest.update(len(encoded).to_bytes(8, "big"))  # lengths, so that no two triples run together
            digest.update(encoded)
        return digest.digest()

    def recall(self, subject: Subject) -> Answer | Failure | None:
        return self._answers.get(self._key(subject))

    def remember(self, subject: Subject, answer: Answer | Failure) -> None:
        self._answers[self._key(subject)] = answer
        if len(self._answers) > self._capacity:
            del self._answers[next(iter(self._answers))]


def subjects(request: Request, response: Response) -> Iterable[Subject]:
    """The candidates of `response` in order, each with its text and what it is to be checked for."""
    documents = {document.id: document for document in request.documents}
    for candidate in response["candidates"]:
        yield _subject(request, candidate, documents[candidate["id"]])


def _subject(request: Request, candidate: Candidate, document: Document) -> Subject:
    subject: Subject = {
        "snapshot_id": request.snapshot_id,
        "query": request.query,
        "id": candidate["id"],
        "text": document.text,
        "rank": candidate["rank"],
        "source": candidate["source"],
        "bm25_rank": candidate["bm25_rank"],
        "bm25_score": candidate["bm25_score"],
    }
    if document.name:
        subject["name"] = document.name
    return subject


def verify(
    candidates: Iterable[Subject], check: Check, budget: int | None = None, memory: CheckMemory | None = None
) -> Outcome:
    """Found with its id, absent after every candidate was checked, incomplete otherwise.

    At most `budget` checks are made (None: as many as there are candidates); an answer out of `memory` costs none.
    The first failed check ends the run as incomplete: later answers could not make "absent" true, and a command that
    is broken would otherwise fail, or time out, once for every candidate.
    """
    memory = memory if memory is not None else CheckMemory()
    checks = 0
    for subject in candidates:
        answer = memory.recall(subject)
        if answer is None:
            if budget is not None and checks >= budget:
                return Outcome("incomplete", None, checks, "budget", subject["id"])
            answer = check(subject)
            checks += 1
            memory.remember(subject, answer)
        if answer is Answer.FOUND:
            return Outcome("found", subject["id"], checks)
        if isinstance(answer, Failure):
            return Outcome("incomplete", None, checks, answer.reason, subject["id"])
    return Outcome("absent", None, checks)
