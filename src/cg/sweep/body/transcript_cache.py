"""Reads bodies of sessions: each begins as the one before it did, and what both begin with is not read again."""

from cg.bodies import Scan
from cg.sweep.body.transcript import Transcript, read
from cg.sweep.bounded_cache import BoundedCache

SMALLEST = 32 * 1024  # bytes; a smaller body is read faster than it is looked for
KEPT_BYTES = 16 * 1024 * 1024  # of bodies in all: sixteen sessions of a megabyte; the longest unused go
PROBE_BYTES = 256
PROBES = (0.0, 0.25, 0.5, 0.75, 0.9)  # places in an earlier body, as shares of its length


class Readings:
    """`cg.sweep.body.transcript.read` with a bounded memory of the last bodies. Safe between threads.

    The memory makes no difference to what is read: a body shares an earlier one's messages exactly as far as the bytes
    of both are the same, from the first on. Whose body that was does not matter for that.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._scans: BoundedCache[int, Scan] = BoundedCache(kept_bytes, lambda scan: len(scan.body))  # by id

    @property
    def size_bytes(self) -> int:
        """Bytes of the bodies that are kept."""
        return self._scans.size

    def read(self, body: bytes) -> Transcript:
        """The transcript of a body. Raises Unreadable as `read` does."""
        if len(body) < SMALLEST:
            return read(body)
        before = self._nearest(body)
        transcript = read(body, before=before)
        self._keep(transcript.scan, before)
        return transcript

    def _nearest(self, body: bytes) -> Scan | None:
        """The kept body that this one most likely goes on from: it agrees at the most places, from the first on."""
        best, most = None, 0
        for _, scan in self._scans.items():
            agreed = _agreed(scan.body, body)
            if agreed >= most and agreed:
                best, most = scan, agreed
        return best

    def _keep(self, scan: Scan, before: Scan | None) -> None:
        """Keep a body in the place of the one that it goes on from."""
        if before is not None and scan.adopted:
            self._scans.pop(id(before))
        if len(scan.body) <= self._kept_bytes:
            self._scans.put(id(scan), scan)


def _agreed(earlier: bytes, body: bytes) -> int:
    """How many probes of an earlier body are found in the same place of another, up to the first that is not."""
    for n, share in enumerate(PROBES):
        at = int(share * len(earlier))
        if earlier[at : at + PROBE_BYTES] != body[at : at + PROBE_BYTES]:
            return n
    return len(PROBES)
