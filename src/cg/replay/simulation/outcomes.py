"""What became of a session's outputs under one policy, by what the rest of the recording says of them."""

import heapq
from collections.abc import Iterable

from cg.replay.recordings.hindsight import Hindsight, Label
from cg.replay.row import Row


class Outcomes:
    """Each output counts once: by its label at the request at which it was removed, else first up for a decision."""

    def __init__(self, hindsight: Hindsight) -> None:
        self._hindsight = hindsight
        self._labels: dict[str, Label] = {}
        self.removed: set[str] = set()
        self._used: set[str] = set()  # removed at a time when the rest of the session still used them
        self._needed: list[tuple[int, str]] = []  # (request, id): when a removed output will be asked for

    def offer(self, tool_use_ids: Iterable[str], request: int) -> None:
        """Outputs that a judge or a rule had before it when `request` was to come."""
        for tool_use_id in tool_use_ids:
            if tool_use_id not in self._labels:
                self._labels[tool_use_id] = self._hindsight.label(tool_use_id, request)

    def remove(self, tool_use_id: str, request: int) -> None:
        """An output that `request` carries no more."""
        if tool_use_id not in self.removed:
            self.removed.add(tool_use_id)
            self._labels[tool_use_id] = label = self._hindsight.label(tool_use_id, request)
            if label is Label.LIVE:
                self._used.add(tool_use_id)
            self._await(tool_use_id, request)

    def restore(self, tool_use_id: str) -> None:
        """An output that is carried again."""
        self.removed.discard(tool_use_id)

    def needed_at(self, request: int) -> list[str]:
        """Removed outputs that the answer to `request` uses: a model would have asked for them there."""
        found: dict[str, None] = {}
        while self._needed and self._needed[0][0] <= request:
            _, tool_use_id = heapq.heappop(self._needed)
            if tool_use_id in self.removed and tool_use_id not in found:
                found[tool_use_id] = None
                self._await(tool_use_id, request + 1)
        return list(found)

    def _await(self, tool_use_id: str, request: int) -> None:
        use = self._hindsight.next_use(tool_use_id, request)
        if use is not None:
            heapq.heappush(self._needed, (use, tool_use_id))

    def count(self, row: Row) -> None:
        """Put the sums onto a row."""
        row.used_later = len(self._used)
        for tool_use_id, label in self._labels.items():
            is_kept = tool_use_id not in self.removed
            if label is Label.LIVE:
                row.live += 1
                row.live_kept += is_kept
            elif label is Label.UNSURE:
                row.unsure += 1
                row.unsure_kept += is_kept
            else:
                row.spent += 1
                row.spent_dropped += not is_kept
