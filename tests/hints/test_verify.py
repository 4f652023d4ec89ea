"""Verification never guesses: found is found, absent means that all were checked, the rest is incomplete."""

from typing import Any

import pytest

from cg.hints.catalog import Document
from cg.hints.ordering import respond
from cg.hints.request import Request
from cg.hints.verify import Answer, CheckMemory, Failure, Outcome, Subject, subjects, verify

REQUEST = Request("s", "q", tuple(Document(id, f"text {id}") for id in "abcd"), None)


def candidates(request: Request = REQUEST) -> list[Subject]:
    return list(subjects(request, respond(request)))


class Scripted:
    """A check that answers by id and notes what it was asked."""

    def __init__(self, **answers: Answer | Failure) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, subject: Subject) -> Answer | Failure:
        self.asked.append(subject["id"])
        return self.answers.get(subject["id"], Answer.NOT_THIS)


@pytest.mark.parametrize(
    ("answers", "budget", "outcome"),
    [
        ({"b": Answer.FOUND}, None, Outcome("found", "b", 2)),
        ({"d": Answer.FOUND}, 4, Outcome("found", "d", 4)),
        ({"d": Answer.FOUND}, 3, Outcome("incomplete", None, 3, "budget", "d")),
        ({}, None, Outcome("absent", None, 4)),
        ({}, 4, Outcome("absent", None, 4)),
        ({}, 3, Outcome("incomplete", None, 3, "budget", "d")),
        ({"b": Failure("timeout"), "c": Answer.FOUND}, None, Outcome("incomplete", None, 2, "timeout", "b")),
        ({"d": Failure("signal 9")}, None, Outcome("incomplete", None, 4, "signal 9", "d")),
    ],
)
def test_the_outcome_claims_only_what_was_checked(answers: Any, budget: int | None, outcome: Outcome) -> None:
    check = Scripted(**answers)
    assert verify(candidates(), check, budget) == outcome
    assert check.asked == list("abcd")[: outcome.checks]


def test_a_check_is_told_everything_about_its_candidate() -> None:
    assert candidates()[0] == {
        "snapshot_id": "s", "query": "q", "id": "a", "text": "text a",
        "rank": 1, "source": "bm25", "bm25_rank": 1, "bm25_score": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("answer", [*Answer, Failure("exit status 2")])
def test_a_check_is_not_made_twice_in_one_run(answer: Answer | Failure) -> None:
    """Its answer, a failure too, is remembered by snapshot, query and id, and costs no budget."""
    memory, check = CheckMemory(), Scripted(a=answer)
    first = verify(candidates()[:1], check, 1, memory)
    again = verify(candidates()[:1], check, 1, memory)
    assert check.asked == ["a"] and first.checks == 1
    assert again == first._replace(checks=0)


@pytest.mark.parametrize("field", ["snapshot_id", "query"])
def test_another_snapshot_or_query_is_another_check(field: str) -> None:
    memory, check = CheckMemory(), Scripted()
    verify(candidates(), check, None, memory)
    verify(candidates(REQUEST._replace(**{field: "other"})), check, None, memory)
    assert len(check.asked) == 8


def test_the_parts_of_a_key_do_not_run_together() -> None:
    memory, check = CheckMemory(), Scripted()
    for snapshot, query in (("a", "bc"), ("ab", "c")):
        verify(candidates(REQUEST._replace(snapshot_id=snapshot, query=query)), check, None, memory)
    assert len(check.asked) == 8


def test_the_memory_is_bounded() -> None:
    memory, check = CheckMemory(capacity=2), Scripted()
    verify(candidates(), check, None, memory)
    assert len(memory) == 2
