"""A store in memory: for tests, replay, and whoever wants nothing on disk."""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cg.sweep.accounting.tally import Tally
from cg.sweep.accounting.totals import FAMILIES, shares
from cg.sweep.economics import learn_ratio
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.storage.last_bodies import LastBodies
from cg.sweep.store import MAX_BRANCHES, MAX_ROWS, Expired, Limits, is_intact, stands
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Switch, Thread, Usage


@dataclass(slots=True)
class _Kept:
    """An original; `payload` is emptied when it expires, the call that made it stays."""

    payload: Payload
    stored_at: float
    is_expired: bool = False


@dataclass(slots=True)
class _State:
    """One thread."""

    thread: Thread = field(default_factory=Thread)
    payloads: dict[str, _Kept] = field(default_factory=dict)  # by key
    claims: dict[str, float] = field(default_factory=dict)
    totals: Counter[tuple[str, str]] = field(default_factory=Counter)
    used_at: float | None = None  # time of the last request; None: not dated yet


class MemoryStore:
    """`cg.sweep.store.Store` in one process; every call takes one lock."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._states: dict[str, _State] = {}
        self._bodies = LastBodies(total_bytes=self._limits.bodies_bytes)
        self._rows: deque[AskRow] = deque(maxlen=MAX_ROWS)
        self._stored = 0  # bytes of payloads
        self._switch = Switch.ON
        self._lock = threading.RLock()

    def __enter__(self) -> "MemoryStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def load(self, thread: str) -> Thread:
        with self._lock:
            state = self._states.get(thread)
            return state.thread if state else Thread()

    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        with self._lock:
            if self._stored + sum(len(p.content) for p in payloads) > self._limits.max_bytes:
                self.sweep_ages(now)
            state = self._state(thread)
            state.used_at = _later(state.used_at, now)
            stored = frozenset(p.identity for p in payloads if self._keep(state, p, now))
            if state.thread.missing:
                state.thread = replace(state.thread, missing=_missing(state))
            return stored

    def _keep(self, state: _State, payload: Payload, now: float) -> bool:
        if not is_intact(payload.content, payload.identity.sha256):
            return False
        kept = state.payloads.get(payload.identity.key)
        if kept is not None and kept.payload.identity.sha256 != payload.identity.sha256:
            return False
        if kept is not None and not kept.is_expired:
            kept.stored_at = max(kept.stored_at, now)
            return True
        if self._stored + len(payload.content) > self._limits.max_bytes:
            return False
        state.payloads[payload.identity.key] = _Kept(payload, now)
        self._stored += len(payload.content)
        return True

    def freeze(self, thread: str, removals: Sequence[Removal]) -> tuple[Removal, ...]:
        with self._lock:
            state = self._state(thread)
            standing = dict(state.thread.removals)
            stand = []
            for removal in removals:
                if removal.identity not in standing:
                    if not self._may_stand(state, removal.identity):
                        continue
                    standing[removal.identity] = removal
                stand.append(standing[removal.identity])
            pending = {i: p for i, p in state.thread.pending.items() if i not in standing}
            state.thread = replace(state.thread, removals=standing, pending=pending)
            return tuple(stand)

    @staticmethod
    def _may_stand(state: _State, identity: Identity) -> bool:
        kept = state.payloads.get(identity.key)
        is_stored = kept is not None and not kept.is_expired and kept.payload.identity.sha256 == identity.sha256
        return is_stored and identity not in state.thread.ended and identity.sha256 not in state.thread.expanded

    def end(self, thread: str, identity: Identity, ending: Ending, now: float) -> bool:
        with self._lock:
            state = self._state(thread)
            if identity not in state.thread.removals:
                return False
            removals = {i: r for i, r in state.thread.removals.items() if i != identity}
            state.thread = replace(
                state.thread,
                removals=removals,
                ended={**state.thread.ended, identity: ending},
                missing=state.thread.missing - {identity},
            )
            return True

    def expand_mark(self, thread: str, sha256: str) -> None:
        with self._lock:
            state = self._state(thread)
            state.thread = replace(state.thread, expanded=state.thread.expanded | {sha256})

    def pend(self, thread: str, pending: Sequence[Pending]) -> None:
        with self._lock:
            state = self._state(thread)
            new = {p.identity: p for p in reversed(pending) if p.identity not in state.thread.removals}
            state.thread = replace(state.thread, pending={**new, **state.thread.pending})

    def unpend(self, thread: str, identities: Sequence[Identity]) -> None:
        with self._lock:
            state = self._state(thread)
            gone = frozenset(identities)
            pending = {i: p for i, p in state.thread.pending.items() if i not in gone}
            state.thread = replace(state.thread, pending=pending)

    def touch(self, thread: str, branch: Branch, *, seen: Branch | None = None) -> bool:
        with self._lock:
            state = self._state(thread)
            if seen is not None and not stands(state.thread, seen):
                return False
            branches = {b.branch: b for b in state.thread.branches} | {branch.branch: branch}
            kept = sorted(branches.values(), key=lambda b: (b.clock, b.branch))[-MAX_BRANCHES:]
            for name in branches.keys() - {b.branch for b in kept}:
                self._bodies.forget(thread, name)
            state.thread = replace(state.thread, branches=tuple(kept))
            state.used_at = _later(state.used_at, branch.clock)
            return True

    def learn(
        self,
        thread: str,
        *,
        usage: Usage | None = None,
        sent_bytes: int | None = None,
        bytes_per_token: float | None = None,
        paid_miss: bool = False,
    ) -> None:
        with self._lock:
            state = self._state(thread)
            before = state.thread
            ratio = before.bytes_per_token if bytes_per_token is None else bytes_per_token
            if usage is not None and sent_bytes is not None and bytes_per_token is None:
                ratio = learn_ratio(before.bytes_per_token, sent_bytes, usage)
            usages = before.usages if usage is None else (*before.usages, usage)[-2:]
            misses = before.paid_misses + paid_miss
            state.thread = replace(before, usages=usages, bytes_per_token=ratio, paid_misses=misses)

    def declare(self, thread: str, declaration: bytes) -> bytes:
        with self._lock:
            state = self._state(thread)
            if state.thread.declaration is None:
                state.thread = replace(state.thread, declaration=declaration)
                return declaration
            return state.thread.declaration

    def fetch(self, thread: str, key: str) -> Payload | Expired | None:
        with self._lock:
            state = self._states.get(thread)
            kept = state.payloads.get(key) if state else None
            if kept is None:
                return None
            if kept.is_expired or not is_intact(kept.payload.content, kept.payload.identity.sha256):
                return Expired(kept.payload.tool, kept.payload.arguments)
            return kept.payload

    def missing(self, thread: str) -> frozenset[Identity]:
        with self._lock:
            state = self._states.get(thread)
            return _missing(state) if state else frozenset()

    def keep_body(self, thread: str, branch: str, body: bytes) -> None:
        self._bodies.keep(thread, branch, body)

    def last_body(self, thread: str, branch: str) -> bytes | None:
        return self._bodies.last(thread, branch)

    def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
        with self._lock:
            state = self._state(thread)
            claims = state.claims
            if name in claims or (branch is not None and not stands(state.thread, branch)):
                return False
            claims[name] = until
            return True

    def book(self, row: AskRow) -> None:
        with self._lock:
            self._rows.append(row)

    def rows(self, thread: str | None = None) -> Iterator[AskRow]:
        with self._lock:
            return iter([row for row in self._rows if thread in (None, row.thread)])

    def count(self, thread: str, turn: TurnReport | Tally) -> None:
        with self._lock:
            totals = self._state(thread).totals
            for family, name, amount in shares(turn):
                totals[family, name] += amount  # type: ignore[assignment]

    def turned(self, thread: str, turn: TurnReport, branch: Branch | None = None, body: bytes | None = None) -> None:
        with self._lock:
            if branch is not None:
                self.touch(thread, branch)
                if body is not None:
                    self.keep_body(thread, branch.branch, body)
            self.count(thread, turn)

    def totals(self, thread: str | None = None) -> Mapping[str, Mapping[str, float]]:
        with self._lock:
            found: dict[str, dict[str, float]] = {family: defaultdict(float) for family in FAMILIES}
            for name, state in self._states.items():
                if thread in (None, name):
                    for (family, key), amount in state.totals.items():
                        found[family][key] += amount
            return {family: dict(sorted(counts.items())) for family, counts in found.items()}

    def forget(self, thread: str | None) -> None:
        with self._lock:
            for name in list(self._states) if thread is None else [thread]:
                state = self._states.pop(name, None)
                if state is not None:
                    self._stored -= sum(len(k.payload.content) for k in state.payloads.values())
            self._bodies.forget(thread)
            self._rows = deque((r for r in self._rows if thread not in (None, r.thread)), MAX_ROWS)

    def switch(self) -> Switch:
        return self._switch

    def set_switch(self, switch: Switch) -> None:
        self._switch = switch

    def status(self) -> Mapping[str, int]:
        with self._lock:
            states = self._states.values()
            return {
                "threads": len(states),
                "branches": sum(len(s.thread.branches) for s in states),
                "removals": sum(len(s.thread.removals) for s in states),
                "ended": sum(len(s.thread.ended) for s in states),
                "pending": sum(len(s.thread.pending) for s in states),
                "payloads": sum(not k.is_expired for s in states for k in s.payloads.values()),
                "expired": sum(k.is_expired for s in states for k in s.payloads.values()),
                "payload_bytes": self._stored,
                "bodies": len(self._bodies),
                "body_bytes": self._bodies.size_bytes,
                "asks": len(self._rows),
            }

    def sweep_ages(self, now: float) -> None:
        with self._lock:
            for thread, state in list(self._states.items()):
                state.used_at = now if state.used_at is None else state.used_at
                if state.used_at <= now - self._limits.thread_ttl_s:
                    self.forget(thread)
                    continue
                state.claims = {name: until for name, until in state.claims.items() if until > now}
                replayed = {i.sha256 for i in state.thread.removals}
                for kept in state.payloads.values():
                    is_replayed = kept.payload.identity.sha256 in replayed
                    used_at = max(kept.stored_at, state.used_at) if is_replayed else kept.stored_at
                    if not kept.is_expired and used_at <= now - self._limits.payload_ttl_s:
                        self._stored -= len(kept.payload.content)
                        kept.payload, kept.is_expired = replace(kept.payload, content=b""), True
                state.thread = replace(state.thread, missing=_missing(state))

    def close(self) -> None:
        self.forget(None)

    def _state(self, thread: str) -> _State:
        return self._states.setdefault(thread, _State())


def _missing(state: _State) -> frozenset[Identity]:
    here = {kept.payload.identity.sha256 for kept in state.payloads.values() if not kept.is_expired}
    return frozenset(i for i in state.thread.removals if i.sha256 not in here)


def _later(before: float | None, now: float) -> float:
    return now if before is None else max(before, now)
