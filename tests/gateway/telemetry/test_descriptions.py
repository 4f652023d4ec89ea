"""Plain words for every name that the page and the doctor show."""

import pytest

from cg.gateway.events import Fault, Outcome
from cg.gateway.telemetry.descriptions import ASKS, FAULTS, OUTCOMES, REASONS
from cg.sweep.ledger import AskOutcome, Reason


@pytest.mark.parametrize(
    ("words", "names"), [(REASONS, Reason), (FAULTS, Fault), (OUTCOMES, Outcome), (ASKS, AskOutcome)]
)
def test_every_member_has_its_own_words(words: dict, names: type) -> None:
    """None is missing, and no two are told alike."""
    assert set(words) == set(names)
    assert len(set(words.values())) == len(words)
    assert all(text and text[0].islower() and not text.endswith(".") for text in words.values())
