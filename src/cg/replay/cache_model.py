"""The provider's prompt cache, request by request: what is read, what is written and for how long it is kept.

The rules, which tests hold to those of the scripted upstream:

- An entry is named by the exact prefix that it holds. It is written only at a breakpoint whose prefix has the minimum
  size, lives for the breakpoint's lifetime, and keeps the lifetime that it was first given while it lives.
- A breakpoint reads the longest live entry among itself and the blocks before it, `lookback` positions in all. The best
  of all breakpoints counts: what it holds is read, what stands behind it up to the last breakpoint is written (at the
  one-hour price up to the last one-hour breakpoint), and the rest is fresh.
- A read renews every live entry that the hit contains, each by its own lifetime.

Renewing one by one would make a turn cost its session's length. Entries that one request has touched share expiry and
lifetime from then on, so they are kept together as a cohort and renewed by one assignment; only a history that turns
off in the middle takes a cohort apart.
"""

from bisect import insort
from collections.abc import Sequence

from cg.replay.prompt import Breakpoint, Part, Prompt, parts_of, prompt_of
from cg.sweep.values import Usage

__all__ = ["LOOKBACK", "MIN_TOKENS", "Breakpoint", "CacheModel", "Part", "Prompt", "parts_of", "prompt_of"]

MIN_TOKENS = 1024  # smallest prefix that is cached; by model 512 to 4096
LOOKBACK = 20  # blocks that a breakpoint looks at, itself included
HOUR_S = 3600

_Row = tuple[int, bytes]  # (position of the block, digest of the prefix that ends with it)


class _Cohort:
    """Entries of one chain of prefixes that were last touched by one request, shortest prefix first."""

    __slots__ = ("expires", "rows", "ttl_s")

    def __init__(self, ttl_s: int, expires: float, rows: list[_Row]) -> None:
        self.ttl_s, self.expires, self.rows = ttl_s, expires, rows

    def within(self, prompt: Prompt, hit: int) -> int:
        """How many of the entries are prefixes of `prompt` up to block `hit`: as rows are one chain, the first ones."""
        if not _holds(prompt, hit, self.rows[0]):
            return 0
        if _holds(prompt, hit, self.rows[-1]):
            return len(self.rows)
        low, high = 1, len(self.rows) - 1
        while low < high:
            middle = (low + high) // 2
            if _holds(prompt, hit, self.rows[middle]):
                low = middle + 1
            else:
                high = middle
        return low


class CacheModel:
    """The entries of one provider account; a request costs its look-backs and its own entries.

    Expired entries are dropped with each request, so memory follows what is alive. `now` is in seconds and never
    goes back.
    """

    def __init__(self, *, min_tokens: int = MIN_TOKENS, lookback: int = LOOKBACK) -> None:
        if min_tokens < 0 or lookback < 1:
            raise ValueError(f"min_tokens {min_tokens} is below 0 or lookback {lookback} below 1")
        self.min_tokens, self.lookback = min_tokens, lookback
        self._cohorts: list[_Cohort] = []
        self._entries: dict[bytes, _Cohort] = {}
        self._now = float("-inf")

    def __len__(self) -> int:
        """Entries alive at the last request."""
        return len(self._entries)

    def peek(self, prompt: Prompt, breakpoints: Sequence[Breakpoint], now: float) -> Usage:
        """The usage (output 0) that `request` would give; nothing is renewed or written."""
        self._move(now)
        marks = self._marks(prompt, breakpoints)
        return _usage(prompt, marks, self._hit(prompt, marks))

    def request(self, prompt: Prompt, breakpoints: Sequence[Breakpoint], now: float) -> Usage:
        """The usage (output 0) of a request answered at `now`; its reads are renewed and its entries written.

        Raises ValueError for a `now` before the last one, IndexError for a breakpoint outside the prompt.
        """
        self._move(now)
        marks = self._marks(prompt, breakpoints)
        hit = self._hit(prompt, marks)
        touched = self._renewed(prompt, hit)
        for block, ttl_s in marks:
            digest = prompt.digest_at(block)
            if digest not in self._entries:
                self._write(touched, ttl_s, (block, digest))
        for ttl_s, cohort in touched.items():
            cohort.expires = now + ttl_s
        return _usage(prompt, marks, hit)

    def _move(self, now: float) -> None:
        """Set the clock and drop what has expired."""
        if not now >= self._now:
            raise ValueError(f"now {now} is before {self._now}")
        self._now = now
        expired = [cohort for cohort in self._cohorts if cohort.expires <= now]
        if expired:
            self._cohorts = [cohort for cohort in self._cohorts if cohort.expires > now]
            for cohort in expired:
                for _, digest in cohort.rows:
                    del self._entries[digest]

    def _marks(self, prompt: Prompt, breakpoints: Sequence[Breakpoint]) -> list[Breakpoint]:
        """The breakpoints with a prefix large enough to be cached."""
        for block, ttl_s in breakpoints:
            if not 0 <= block < len(prompt) or ttl_s <= 0:
                raise IndexError(f"breakpoint at block {block} for {ttl_s} s, in a prompt of {len(prompt)} blocks")
        return [mark for mark in breakpoints if prompt.tokens_to(mark.block) >= self.min_tokens]

    def _hit(self, prompt: Prompt, marks: Sequence[Breakpoint]) -> int:
        """The last block of the longest entry that a mark finds; -1 if none does."""
        hit = -1
        for mark in marks:
            for block in range(mark.block, max(hit, mark.block - self.lookback), -1):
                if prompt.digest_at(block) in self._entries:
                    hit = block
                    break
        return hit

    def _renewed(self, prompt: Prompt, hit: int) -> dict[int, _Cohort]:
        """The entries that the hit contains as one cohort for each lifetime, with what else those held split off."""
        touched: dict[int, _Cohort] = {}
        for cohort in self._cohorts[:] if hit >= 0 else ():
            inside = cohort.within(prompt, hit)
            if inside:
                if inside < len(cohort.rows):
                    cohort = self._split(cohort, inside)
                other = touched.get(cohort.ttl_s)
                touched[cohort.ttl_s] = cohort if other is None else self._merged(cohort, other)
        return touched

    def _split(self, cohort: _Cohort, inside: int) -> _Cohort:
        """Two cohorts of one; returns that of the first `inside` entries. The smaller part is the one that moves."""
        head, tail = cohort.rows[:inside], cohort.rows[inside:]
        moves_head = len(head) <= len(tail)
        moved = _Cohort(cohort.ttl_s, cohort.expires, head if moves_head else tail)
        cohort.rows = tail if moves_head else head
        self._cohorts.append(moved)
        for _, digest in moved.rows:
            self._entries[digest] = moved
        return moved if moves_head else cohort

    def _merged(self, one: _Cohort, other: _Cohort) -> _Cohort:
        """One cohort of two that lie on one chain: the smaller is taken into the larger."""
        small, large = sorted((one, other), key=lambda cohort: len(cohort.rows))
        self._cohorts.remove(small)
        large.rows += small.rows
        large.rows.sort()
        for _, digest in small.rows:
            self._entries[digest] = large
        return large

    def _write(self, touched: dict[int, _Cohort], ttl_s: int, row: _Row) -> None:
        if ttl_s not in touched:
            touched[ttl_s] = _Cohort(ttl_s, 0.0, [])  # the caller sets the expiry of all that it touched
            self._cohorts.append(touched[ttl_s])
        insort(touched[ttl_s].rows, row)
        self._entries[row[1]] = touched[ttl_s]


def _holds(prompt: Prompt, hit: int, row: _Row) -> bool:
    block, digest = row
    return block <= hit and prompt.digest_at(block) == digest


def _usage(prompt: Prompt, marks: Sequence[Breakpoint], hit: int) -> Usage:
    read = prompt.tokens_to(hit) if hit >= 0 else 0
    one_hour = max([prompt.tokens_to(block) for block, ttl_s in marks if ttl_s >= HOUR_S], default=read)
    one_hour = max(one_hour, read)
    last = max([prompt.tokens_to(block) for block, _ in marks], default=one_hour)
    last = max(last, one_hour)
    return Usage(fresh=prompt.tokens - last, read=read, write_5m=last - one_hour, write_1h=one_hour - read)
