"""How large the part of a session's requests is that logs leave out, and where it must have changed."""

from collections.abc import Iterator, Sequence

from cg.replay.reading import Turn
from cg.replay.simulation.bodies import FRAME_TOKENS, left_for_frame

# A history that opens anew shows the frame again. An estimate contradicts the one in force where it is off by more than
# the messages' own tokens may be, and by more than a few reminders that no log holds.
MESSAGES_ERROR = 0.3
UNLOGGED_TOKENS = 5_000


def frames(turns: Sequence[Turn], bytes_per_token: float) -> dict[int, int]:
    """Tokens of the frame by the index of the turn from which on it has them; the first turn's always.

    The first recorded prompt says how large it is. A log that begins in the middle of a history has the missing part in
    its frame, and that ends with the first compaction.
    """
    found: dict[int, int] = {}
    for opening, turn, held in _openings(turns, bytes_per_token):
        left = left_for_frame(turn.usage, held)
        if left is None:
            continue
        if not found:
            found[turns[0].index] = left
        elif abs(left - [*found.values()][-1]) > MESSAGES_ERROR * held + UNLOGGED_TOKENS:
            found[opening] = left
    return found or {turns[0].index: FRAME_TOKENS}


def _openings(turns: Sequence[Turn], bytes_per_token: float) -> Iterator[tuple[int, Turn, int]]:
    """The turns that show a frame, with the index at which their history opens and the tokens of their messages: of each
    history the first whose usage is known."""
    held, is_shown, opening = 0, False, turns[0].index
    for turn in turns:
        parts = (part for message in turn.messages for part in message.parts)
        tokens = sum(part.tokens(bytes_per_token) for part in parts)
        if turn.opens:
            held, is_shown, opening = 0, False, turn.index
        held += tokens
        if not is_shown and left_for_frame(turn.usage, held) is not None:
            is_shown = True
            yield opening, turn, held
