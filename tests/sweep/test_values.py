"""The values that the sweep's parts hand to each other."""

from cg.sweep.values import Identity


def test_outputs_of_the_same_text_do_not_share_a_place() -> None:
    """A long conversation may hold the same answer thousands of times; looking one up must not go through the others."""
    calls = {hash(Identity(f"toolu_{n}", 0, "a" * 64)) for n in range(1000)}
    blocks = {hash(Identity("toolu_1", n, "a" * 64)) for n in range(1000)}
    assert len(calls) > 990 and len(blocks) > 990
