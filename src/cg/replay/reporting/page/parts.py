"""Pieces of the page: tables, plots in their frames, keys. What comes from outside is escaped here."""

from collections.abc import Sequence
from html import escape

from cg.replay.reporting.printable import plain


def text(value: str) -> str:
    """A text from anywhere as it may stand in a page."""
    return escape(plain(value))


def paragraph(sentence: str, kind: str = "") -> str:
    return f'<p class="{kind}">{text(sentence)}</p>' if kind else f"<p>{text(sentence)}</p>"


def table(lines: Sequence[Sequence[str]], caption: str, kinds: Sequence[str] = ()) -> str:
    """Heads and cells, those of a line's first column being its head; columns without a cell are left out. `kinds` are
    the classes of the lines."""
    head, *rest = lines
    used = [i for i in range(len(head)) if any(line[i] for line in rest)]
    top = "".join(f'<th scope="col">{text(head[i])}</th>' for i in used)
    body = []
    for n, line in enumerate(rest):
        first, *cells = [text(line[i]) for i in used]
        kind = f' class="{kinds[n]}"' if n < len(kinds) and kinds[n] else ""
        body.append(f'<tr{kind}><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    inner = f"<table><caption><span>{text(caption)}</span></caption><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return framed(inner, f"Table: {caption}")


def framed(inner: str, label: str) -> str:
    """What may be wider than the screen: it scrolls by itself, by keyboard too."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{text(label)}">{inner}</div>'


def key(entries: Sequence[tuple[str, str]]) -> str:
    """What the colours of a plot mean."""
    return (
        '<div class="key">'
        + "".join(f'<span><i style="background:var(--{kind})"></i>{escape(said)}</span>' for kind, said in entries)
        + "</div>"
    )
