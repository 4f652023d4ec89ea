"""The response as a table for people."""

from __future__ import annotations

import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cg.hints.catalog import Candidate
    from cg.hints.ordering import Response

_ID_COLUMNS = 48  # leaves the other columns on an 80-column screen


def _columns(character: str) -> int:
    """How many terminal columns a printable character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _safe(text: str) -> str:
    """`text` with the characters that could steer a terminal written as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _cell(text: str, width: int) -> str:
    """Printable `text` cut or padded to `width` columns."""
    shown, used = "", 0
    for character in text:
        if used + _columns(character) > width:
            while used > width - 1:
                used -= _columns(shown[-1])
                shown = shown[:-1]
            shown, used = shown + "…", used + 1
            break
        shown, used = shown + character, used + _columns(character)
    return shown + " " * (width - used)


def _terms(candidate: Candidate) -> str:
    """What each term gave, the most first; empty where nothing was to be explained."""
    shares = sorted(candidate.get("terms", {}).items(), key=lambda share: (-share[1], share[0]))
    return "".join(f"  {_safe(term)} {share:.4f}" for term, share in shares)


def table(response: Response) -> str:
    """One line a candidate under a heading, newline at the end: rank, id, source, lexical rank and score."""
    candidates = response["candidates"]
    ids = [_safe(candidate["id"]) for candidate in candidates]
    longest = max(sum(map(_columns, id)) for id in ids)
    width = max(2, min(longest, _ID_COLUMNS))
    lines = [f"{'rank':>4}  {_cell('id', width)}  source  bm25 rank  bm25 score"]
    for candidate, id in zip(candidates, ids, strict=True):
        lines.append(
            f"{candidate['rank']:>4}  {_cell(id, width)}  {candidate['source']:<6}"
            f"  {candidate['bm25_rank']:>9}  {candidate['bm25_score']:>10.4f}{_terms(candidate)}"
        )
    return "\n".join(lines) + "\n"
