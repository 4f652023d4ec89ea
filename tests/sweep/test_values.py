"""What a provider says of itself becomes a value, or none."""

import pytest

from cg.sweep.values import Usage, usage_of


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({}, Usage()),
        ({"input_tokens": True, "output_tokens": -1, "cache_read_input_tokens": "9"}, Usage()),
        ({"input_tokens": 10**400, "output_tokens": 10**13}, Usage()),
        ({"cache_creation_input_tokens": 7}, Usage(write_5m=7)),
        (
            {"cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 5}},
            Usage(write_5m=2, write_1h=5),
        ),
    ],
)
def test_usage_is_by_tier_and_believes_only_counts(usage: object, expected: Usage | None) -> None:
    """Writes that are not labelled count as five-minute ones."""
    assert usage_of(usage) == expected
