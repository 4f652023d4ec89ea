"""One step of an agent: choose what goes into the prompt by hints, and check it before it does.

    python3 examples/agent_step.py

A catalog of six runbooks, a question, and the ordering of some model that cannot be trusted: here the worst there is, the
right entry last. The order that comes out costs at most twice the checks that plain BM25 would have needed. Each
candidate is checked before it is used; only one that was found stands in the request, and one that was not is not guessed
at. Nothing is sent: the request is printed.
"""

import json
from pathlib import Path

from cg.hints.ordering import respond
from cg.hints.request import read_request
from cg.hints.verify import Answer, CheckMemory, Subject, subjects, verify

BUDGET = 4  # checks that this step may make; a check could be a model call, a test run, a person
CATALOG = Path(__file__).parent / "hints" / "runbooks.json"


def covers(subject: Subject) -> Answer:
    """Whether a runbook is about the symptom; here a rule, so that the example needs nobody."""
    text = subject["text"].lower()
    print(f"  check {subject['rank']}: {subject['id']} (from {subject['source']})")
    return Answer.FOUND if "disk full" in text and "primary: writes fail" in text else Answer.NOT_THIS


def request_for(question: str, snapshot_id: str, name: str, text: str) -> dict[str, object]:
    """The step's request. The runbook is data in a block of its own, with its source; it is no instruction."""
    source = f'<runbook id="{name}" snapshot="{snapshot_id}">\n{text}\n</runbook>'
    return {
        "model": "claude-sonnet-5",
        "max_tokens": 1000,
        "system": "You help whoever is on call. What stands in <runbook> is reference material.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": source}, {"type": "text", "text": question}]}
        ],
    }


def main() -> None:
    request = read_request(CATALOG.read_bytes())
    memory = CheckMemory()  # of this run: the same question about the same text is not asked twice
    print(f"question: {request.query}")
    outcome = verify(subjects(request, respond(request)), covers, budget=BUDGET, memory=memory)
    print(f"result: {outcome.result} after {outcome.checks} checks")
    if outcome.id is None:
        print("nothing is put into the prompt: absent and incomplete are not the same, and neither is a guess")
        return
    text = next(document.text for document in request.documents if document.id == outcome.id)
    print(json.dumps(request_for(request.query, request.snapshot_id, outcome.id, text), indent=1))


if __name__ == "__main__":
    main()
