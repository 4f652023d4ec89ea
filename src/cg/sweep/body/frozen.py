"""Which outputs of a body were removed before: what every later request of their thread replays."""

from cg.sweep.body.transcript import ToolText, Transcript
from cg.sweep.values import Removal, Thread


def frozen_in(transcript: Transcript, thread: Thread) -> dict[ToolText, Removal]:
    """The removals that this body's outputs carry, at any depth and whatever the phase."""
    if not thread.removals:
        return {}
    # By digest first, and with the identity that the removal has: making one anew for each text takes most of a turn.
    by_digest = {identity.sha256: removal for identity, removal in thread.removals.items()}
    found: dict[ToolText, Removal] = {}
    for text in transcript.tool_texts:
        removal = by_digest.get(text.sha256)
        if removal is not None and not text.take_identity(removal.identity):
            removal = thread.removals.get(
                text.identity
            )  # the same text was read twice, and the other one is removed too
        if removal is not None:
            found[text] = removal
    return found
