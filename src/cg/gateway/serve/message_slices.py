"""Cuts what a client sends so that no slice reaches past the end of a head or of a body: heads are counted exactly."""

END = b"\r\n\r\n"  # of a head, and of a body in chunks with its trailers
SLICE_BYTES = 64 * 1024


class MessageSlices:
    """Where the next slice ends. Whoever parses says where in a message it is.

    A body in chunks may hold END anywhere, which costs a slice more and nothing else.
    """

    def __init__(self) -> None:
        self.body_left = 0  # of a body that said its length
        self._tail = b""

    def end(self, data: bytes, at: int) -> int:
        """The end of the slice of `data` that begins at `at`; it is taken for parsed by then."""
        if self.body_left:
            end = min(len(data), at + self.body_left)
            self.body_left -= end - at
            self._tail = b""
            return end
        end = self._end_of_head(data, at)
        self._tail = (self._tail + data[max(at, end - 3) : end])[-3:]
        return end

    def _end_of_head(self, data: bytes, at: int) -> int:
        limit = min(len(data), at + SLICE_BYTES)
        across = (self._tail + data[at : at + 3]).find(END)
        if across >= 0:
            return min(limit, at + across + len(END) - len(self._tail))
        found = data.find(END, at, limit)
        return limit if found < 0 else found + len(END)
