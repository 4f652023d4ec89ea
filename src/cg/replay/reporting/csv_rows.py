"""A replay as CSV: a line for each session, policy and lifetime, with the figures of the JSON report."""

import csv
from datetime import UTC, datetime
from typing import Any, TextIO

from cg.replay.batch import Result
from cg.replay.reporting.figures import UNTOUCHED, plain_of
from cg.replay.reporting.printable import plain
from cg.replay.reporting.summary import rows_of

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of one


class CsvRows:
    """Writes lines as results come; nothing is held."""

    def __init__(self, stream: TextIO) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._heads: list[str] = []

    def take(self, result: Result) -> None:
        """Write a session that was priced."""
        rows, known = rows_of(result), result.about
        began = "" if known.started is None else datetime.fromtimestamp(known.started, UTC).isoformat()
        about: dict[str, Any] = {
            "session": result.name,
            "path": str(result.path),
            "project": known.project,
            "words": known.words,
            "model": known.model,
            "started": began,
            "requests": result.requests,
            "outputs": result.outputs,
            "ttl_s": result.ttl_s,
        }
        for (policy, lifetime), row in rows.items():
            figures = row.to_dict(rows[UNTOUCHED], rows[plain_of(lifetime)])
            tokens = {f"tokens_{tier}": n for tier, n in figures.pop("tokens").items()}
            line = about | {"policy": policy, "lifetime": lifetime} | figures | tokens
            if not self._heads:
                self._heads = list(line)
                self._writer.writerow(self._heads)
            self._writer.writerow([_cell(line[head]) for head in self._heads])


def _cell(value: object) -> object:
    """A text that no spreadsheet runs."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(FORMULA) else text
