"""A client whose token was renewed goes on under another thread: what was decided for its outputs goes with it.

A thread's name holds the credential, so that no other client finds anything in it. Tokens of subscriptions are renewed
within a session, and then everything that was frozen would be sent whole again, past a cache that holds it removed.
"""

from cg.sweep.body.frozen import frozen_in
from cg.sweep.body.transcript import Transcript
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.config import Config
from cg.sweep.core.removal import payload_of
from cg.sweep.driver.effect_runner import REFUSED, EffectRunner
from cg.sweep.history.branches import Continuation, Place, place
from cg.sweep.prices import PriceTable
from cg.sweep.store import Store
from cg.sweep.values import Thread

MAX_SESSIONS = 4096  # the longest unused go
MAX_THREADS = 16  # of one session
FOUND = (Continuation.EXTENDS, Continuation.RETRY)


class Inheritance(EffectRunner):
    """Takes over from the threads of the same session what stands in a request's own body, and nothing else.

    Which threads are of one session is known to the process that served them, as long as it lives: what is stored leads
    from no thread to another.
    """

    def __init__(self, config: Config, store: Store, *, prices: PriceTable | None = None) -> None:
        super().__init__(config, store, prices=prices)
        self._sessions: BoundedCache[str, tuple[str, ...]] = BoundedCache(MAX_SESSIONS)

    def inherited(self, transcript: Transcript, thread: str, session: str, state: Thread, now: float) -> Thread:
        """The thread's state, with what it takes over from another of its session, where the body goes on from what
        that has sent and from nothing of its own."""
        is_alone = self._sessions.get(session) in (None, (thread,))
        if is_alone or not transcript.tool_texts or place(transcript, state, now).standing in FOUND:
            return state
        found = self._nearest(transcript, thread, session, now)
        if found is None:
            return state
        self._take_over(transcript, thread, *found, now)
        return self.state(thread)

    def list_thread(self, thread: str, session: str) -> None:
        """Put a thread down under its session, as the last one that was used."""
        threads = self._sessions.get(session) or ()
        if threads[:1] != (thread,):
            others = tuple(other for other in threads if other != thread)
            self._sessions.put(session, (thread, *others)[:MAX_THREADS])

    def _nearest(self, transcript: Transcript, thread: str, session: str, now: float) -> tuple[Thread, Place] | None:
        """Of the session's other threads the one whose branch the body goes on from the furthest."""
        best: tuple[Thread, Place] | None = None
        for other in self._sessions.get(session) or ():
            if other == thread:
                continue
            state = self._store.load(other)
            where = place(transcript, state, now)
            if where.standing in FOUND and (best is None or where.common > best[1].common):
                best = state, where
        return best

    def _take_over(self, transcript: Transcript, thread: str, other: Thread, where: Place, now: float) -> None:
        """Originals first, as for any removal: the body holds them all."""
        store = self._store
        frozen = frozen_in(transcript, other)
        stored = store.put(thread, [payload_of(transcript, text) for text in frozen], now) if frozen else frozenset()
        standing = [removal for removal in frozen.values() if removal.identity in stored]
        if standing:
            self._freeze(thread, tuple(standing))
        if other.declaration is not None:
            store.declare(thread, other.declaration)
        here = {text.identity for text in transcript.tool_texts}
        whole = {i.sha256 for i in here if i in other.ended or i.sha256 in other.expanded} | other.expanded & {REFUSED}
        for sha256 in sorted(whole):
            store.expand_mark(thread, sha256)
        if pending := [drop for identity, drop in other.pending.items() if identity in here]:
            store.pend(thread, pending)
        for usage in other.usages:
            store.learn(thread, usage=usage)
        if other.bytes_per_token is not None:
            store.learn(thread, bytes_per_token=other.bytes_per_token)
        for _ in range(other.paid_misses):
            store.learn(thread, paid_miss=True)
        if where.branch is not None:
            store.touch(thread, where.branch)  # last: until it stands, all of this is done again
