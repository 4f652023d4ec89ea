"""The store on a Valkey or Redis server: one state for several gateways."""

import json
import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence

from cg.sweep.accounting.tally import Tally
from cg.sweep.accounting.totals import FAMILIES, shares
from cg.sweep.bounded_cache import BoundedCache
from cg.sweep.economics import learn_ratio
from cg.sweep.ledger import AskRow, TurnReport
from cg.sweep.storage.last_bodies import LastBodies
from cg.sweep.storage.packing import named, raw
from cg.sweep.storage.redis.address import Address, parse
from cg.sweep.storage.redis.connection import SECRET, Full, Link
from cg.sweep.storage.redis.records import (
    as_declaration,
    as_payload,
    as_removal,
    as_usages,
    branch_value,
    clock_text,
    declaration_value,
    digest_in,
    identity_field,
    payload_content,
    payload_meta,
    pending_value,
    removal_value,
    thread_id,
    usages_value,
)
from cg.sweep.storage.redis.scripts import COUNTS, Command
from cg.sweep.storage.redis.thread_cache import KnownThreads
from cg.sweep.store import MAX_BRANCHES, MAX_ROWS, Expired, Limits, StoreError, is_intact
from cg.sweep.values import Branch, Ending, Identity, Payload, Pending, Removal, Switch, Thread, Usage

log = logging.getLogger("cg.sweep")

Values = tuple[bytes | str | float, ...]
SPARE_TTL_S = 86_400.0  # a server lets go by itself only of what no gateway has cleared for a day past its time
SWEEP_EVERY_S = 3600.0  # a store that is full looks for what is past its time this often, and no oftener
SECRET_BYTES = 32
AT_ONCE = 200  # threads on one trip; the server serves others in between
MAX_TOUCHED = 16_384  # branches whose last request this process has served; a body of an older one is not believed
SWITCH = "switch"  # the key, behind the namespace, of what a person has set for all threads
SWITCH_S = 1.0  # seconds for which a switch that was read is believed: no turn pays a trip for it
LEARN_TRIES = 50  # each loser of a race has seen somebody else's step, so even a crowd gets through
STORED, NO_ROOM = 1, 2  # what `put` tells of an original


class RedisStore:
    """`cg.sweep.store.Store` on one server that several gateways share.

    The last sent bodies stay in the memory of the process that sent them. Raises StoreError from the start on a server
    that cannot be reached or may not hold a state; one that loses that right later is read on, and takes nothing new.
    """

    def __init__(self, address: Address | str, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._link = Link(parse(address) if isinstance(address, str) else address)
        self._known = KnownThreads()
        self._bodies = LastBodies(total_bytes=self._limits.bodies_bytes)
        self._touched: BoundedCache[tuple[str, str], bytes] = BoundedCache(MAX_TOUCHED)
        self._switch = (-SWITCH_S, Switch.ON)  # when it was read, on the monotonic clock
        try:
            self._link.check()
            if self._link.refusal is not None:
                raise StoreError(f"{self._link.address}: {self._link.refusal}")
            self._link.secret = self._secret = self._first_secret()
        except BaseException:
            self._link.close()
            raise

    def __enter__(self) -> "RedisStore":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def secret(self) -> bytes:
        """The installation's secret, which all gateways of this server name threads with."""
        return self._secret

    @property
    def skew_s(self) -> float:
        """Seconds that the server's clock, which all its gateways go by, is ahead of ours."""
        return self._link.skew_s

    def _first_secret(self) -> bytes:
        """The secret that the first process has put there, for good."""
        name = self._link.namespace + SECRET
        with self._link.client() as client:
            client.set(name, secrets.token_bytes(SECRET_BYTES), nx=True)
            secret = client.get(name)
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            raise StoreError(f"{self._link.address}: {name} is not a secret of {SECRET_BYTES} bytes")
        return secret

    def load(self, thread: str) -> Thread:
        before = self._known.of(thread)
        sent_at = time.time()
        reply = self._link.run(Command.LOAD, *self._named(thread), before.decided, before.placed)
        with self._link.reading():
            seconds, microseconds = reply[0]
            self._link.note_time(int(seconds) + int(microseconds) / 1e6, sent_at)
            state = self._known.read(thread, reply, before)
        for branch in state.branches:  # moved on elsewhere: what was sent from here is no longer the last
            if self._touched.get((thread, branch.branch)) not in (None, branch.body):
                self._touched.pop((thread, branch.branch))
        return state

    # -- originals ---------------------------------------------------------------------------------------------------

    def put(self, thread: str, payloads: Sequence[Payload], now: float) -> frozenset[Identity]:
        if self._link.refusal is not None:
            log.error("nothing is stored: the state server is unfit: %s", self._link.refusal.why)
            return frozenset()
        whole = [p for p in payloads if is_intact(p.content, p.identity.sha256)]
        try:
            stored, is_full = self._put(thread, whole, now)
            if is_full and self._may_clear(now):
                self.sweep_ages(now)
                stored, _ = self._put(thread, whole, now)
            intact = self._intact(thread, stored)
            if damaged := [p for p in stored if p.identity not in intact]:
                self._put(thread, damaged, now, is_forced=True)
                intact |= self._intact(thread, damaged)
        except Full:
            log.error("nothing is stored: the state server is full")  # a whole answer: the outputs stay as they are
            return frozenset()
        return intact

    def _put(
        self, thread: str, payloads: Sequence[Payload], now: float, *, is_forced: bool = False
    ) -> tuple[list[Payload], bool]:
        """(what the server says it has, whether something found no room)."""
        values: list[bytes | str | float] = []
        for payload in payloads:
            identity = payload.identity
            values += [identity.key, identity.sha256, payload_meta(payload), payload_content(payload)]
        head = (*self._versioned(thread)[0], repr(float(now)), str(self._limits.max_bytes), str(int(is_forced)))
        reply = self._link.run(Command.PUT, *head, *values)
        stored = [payload for payload, answer in zip(payloads, reply, strict=True) if answer == STORED]
        return stored, NO_ROOM in reply

    def _intact(self, thread: str, payloads: Sequence[Payload]) -> frozenset[Identity]:
        """Those that the server gives back as they are, asked for anew as an expansion would."""
        replies = self._link.run_each(Command.FETCH, [(*self._named(thread), p.identity.key) for p in payloads])
        with self._link.reading():
            originals = {as_payload(meta, content) for meta, content in replies if meta is not None}
        shas = {p.identity.sha256 for p in originals if isinstance(p, Payload)}
        return frozenset(p.identity for p in payloads if p.identity.sha256 in shas)

    def _may_clear(self, now: float) -> bool:
        with self._link.client() as client:
            swept_at = client.get(self._link.namespace + "swept")
        return swept_at is None or float(swept_at) + SWEEP_EVERY_S <= now

    def fetch(self, thread: str, key: str) -> Payload | Expired | None:
        meta, content = self._link.run(Command.FETCH, *self._named(thread), key)
        with self._link.reading():
            return None if meta is None else named(as_payload(meta, content), key, digest_in(meta))

    def missing(self, thread: str) -> frozenset[Identity]:
        return self.load(thread).missing

    # -- decisions ---------------------------------------------------------------------------------------------------

    def freeze(self, thread: str, removals: Sequence[Removal]) -> tuple[Removal, ...]:
        if not removals:
            return ()
        values: list[bytes | str | float] = []
        for removal in removals:
            identity = removal.identity
            values += [identity_field(identity), identity.key, identity.sha256, removal_value(removal)]
        reply = self._link.run(Command.FREEZE, *self._versioned(thread)[0], *values)
        with self._link.reading():
            fields = [identity_field(removal.identity) for removal in removals]
            return tuple(as_removal(field, value) for field, value in zip(fields, reply, strict=True) if value)

    def end(self, thread: str, identity: Identity, ending: Ending, now: float) -> bool:
        values = (identity_field(identity), ending.value)
        return bool(self._link.run(Command.END_REMOVAL, *self._versioned(thread)[0], *values))

    def expand_mark(self, thread: str, sha256: str) -> None:
        self._link.run(Command.MARK, *self._versioned(thread)[0], sha256)

    def pend(self, thread: str, pending: Sequence[Pending]) -> None:
        values = [part for drop in pending for part in (identity_field(drop.identity), pending_value(drop))]
        self._link.run(Command.PEND, *self._versioned(thread)[0], *values)

    def unpend(self, thread: str, identities: Sequence[Identity]) -> None:
        self._link.run(Command.UNPEND, *self._versioned(thread)[0], *map(identity_field, identities))

    def declare(self, thread: str, declaration: bytes) -> bytes:
        standing = self._link.run(Command.DECLARE, *self._versioned(thread)[0], declaration_value(declaration))
        with self._link.reading():
            return as_declaration(standing) or declaration

    # -- branches ----------------------------------------------------------------------------------------------------

    def touch(self, thread: str, branch: Branch, *, seen: Branch | None = None) -> bool:
        return self._moved(thread, branch, seen, ())

    def turned(self, thread: str, turn: TurnReport, branch: Branch | None = None, body: bytes | None = None) -> None:
        if branch is None:
            self.count(thread, turn)
        elif self._moved(thread, branch, None, _amounts(turn)) and body is not None:
            self.keep_body(thread, branch.branch, body)

    def _moved(self, thread: str, branch: Branch, seen: Branch | None, amounts: Values) -> bool:
        """Write a branch, if it may be, and what is counted with it, on one trip."""
        head, version = self._versioned(thread)
        values = (raw(branch.branch), branch_value(branch), repr(float(branch.clock)), str(MAX_BRANCHES))
        reply = self._link.run(Command.TOUCH, *head, *values, *_seen(seen), *amounts)
        if reply is None:
            return False
        with self._link.reading():
            before, *names = reply
            gone = [name.decode("utf-8", "surrogatepass") for name in names]
        self._known.placed(thread, branch, before=before, version=version, gone=gone)
        for name in gone:
            self._bodies.forget(thread, name)
        self._touched.put((thread, branch.branch), branch.body)
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
        seen = self._known.of(thread).learnt
        is_learning = usage is not None or bytes_per_token is not None
        for _ in range(LEARN_TRIES):
            with self._link.reading():
                ratio = float(seen[0]) if seen[0] else None
                usages = as_usages(seen[1])
            if usage is not None:
                usages = (*usages, usage)[-2:]
                ratio = learn_ratio(ratio, sent_bytes, usage) if sent_bytes is not None else ratio
            ratio = ratio if bytes_per_token is None else bytes_per_token
            after = ("" if ratio is None else repr(ratio), usages_value(usages))
            head = (*self._versioned(thread)[0], str(int(paid_miss)), str(int(is_learning)))
            reply = self._link.run(Command.LEARN, *head, *seen, *after)
            if reply is None:
                return
            seen = reply[0], reply[1]
        raise StoreError(f"{self._link.address}: others learn of a thread faster than this process")

    def keep_body(self, thread: str, branch: str, body: bytes) -> None:
        of = self._touched.get((thread, branch))
        if of is None:  # a retry of what another process has sent: the branch is where it was when it was loaded
            known = self._known.of(thread).branches.get(branch)
            of = known.body if known is not None else None
        self._bodies.keep(thread, branch, body, of)

    def last_body(self, thread: str, branch: str) -> bytes | None:
        known = next((b for b in self.load(thread).branches if b.branch == branch), None)
        return self._bodies.last(thread, branch, known.body if known else None)

    def claim(self, thread: str, name: str, until: float, *, branch: Branch | None = None) -> bool:
        head, _ = self._versioned(thread)
        return bool(self._link.run(Command.CLAIM, *head, raw(name), repr(float(until)), *_seen(branch)))

    # -- accounts ----------------------------------------------------------------------------------------------------

    def book(self, row: AskRow) -> None:
        self._link.run(Command.BOOK, *self._versioned(row.thread)[0], json.dumps(row.to_dict()), str(MAX_ROWS))

    def rows(self, thread: str | None = None) -> Iterator[AskRow]:
        with self._link.client() as client:
            if thread is not None:
                names = [thread_id(thread)]
            else:
                names = sorted({name.decode() for name in client.lrange(self._link.namespace + "asks", 0, -1)})
            booked: list[tuple[int, bytes]] = []
            for name in names:
                for line in client.lrange(self._link.namespace + "a:" + name, 0, -1):
                    number, _, row = line.partition(b" ")
                    booked.append((int(number), row))
            return iter([AskRow.from_dict(json.loads(row)) for _, row in sorted(booked)])

    def count(self, thread: str, turn: TurnReport | Tally) -> None:
        if values := _amounts(turn):
            self._link.run(Command.COUNT, *self._versioned(thread)[0], *values)

    def totals(self, thread: str | None = None) -> Mapping[str, Mapping[str, float]]:
        totals: dict[str, dict[str, float]] = {family: {} for family in FAMILIES}
        name = "totals" if thread is None else f"n:{thread_id(thread)}"
        with self._link.client() as client:
            amounts = client.hgetall(self._link.namespace + name)
            for field, amount in sorted(amounts.items()):
                family, _, key = field.decode().partition("\n")
                totals.setdefault(family, {})[key] = float(amount)
        return totals

    def switch(self) -> Switch:
        read_at, switch = self._switch
        if time.monotonic() - read_at < SWITCH_S:
            return switch
        with self._link.client() as client:
            value = client.get(self._link.namespace + SWITCH) or Switch.ON.encode()
        with self._link.reading():
            switch = Switch(value.decode("ascii"))
        self._switch = time.monotonic(), switch
        return switch

    def set_switch(self, switch: Switch) -> None:
        with self._link.client() as client:
            client.set(self._link.namespace + SWITCH, switch.value)
        self._switch = time.monotonic(), switch

    def status(self) -> Mapping[str, int]:
        with self._link.client() as client:
            held = {name.decode(): int(n) for name, n in client.hgetall(self._link.namespace + "held").items()}
            threads = int(client.zcard(self._link.namespace + "threads"))
        counted = {name: held.get(name, 0) for name in COUNTS}
        counted["expired"] = counted.pop("kept") - counted["payloads"]
        return {"threads": threads, **counted, "bodies": len(self._bodies), "body_bytes": self._bodies.size_bytes}

    # -- the end -----------------------------------------------------------------------------------------------------

    def forget(self, thread: str | None) -> None:
        if thread is None:
            self._forget_all()
        else:
            self._link.run(Command.ERASE, *self._named(thread))
        self._bodies.forget(thread)
        self._known.forget(thread)

    def _forget_all(self) -> None:
        """Every key of our namespace and no other; the secret stays, as the running gateways go on naming by it, and
        so does the switch."""
        space = self._link.namespace
        stays = {(space + name).encode() for name in (SECRET, SWITCH)}
        with self._link.client() as client:
            names = [n for n in client.scan_iter(match=space + "*", count=1000) if n not in stays]
            for start in range(0, len(names), 1000):
                client.unlink(*names[start : start + 1000])

    def sweep_ages(self, now: float) -> None:
        self._link.check()
        space, limits = self._link.namespace, self._limits
        with self._link.client() as client:
            names = client.zrange(space + "threads", 0, -1)
            client.set(space + "swept", repr(float(now)))
        tail = (repr(float(now)), repr(now - limits.payload_ttl_s), repr(now - limits.thread_ttl_s))
        for start in range(0, len(names), AT_ONCE):
            head = (str(self._ttl_ms), str(secrets.randbits(62)), *tail)
            self._link.run_each(Command.AGE, [(name, *head) for name in names[start : start + AT_ONCE]])

    def close(self) -> None:
        self._bodies.forget(None)
        self._link.close()

    # -- what every script is told ----------------------------------------------------------------------------------

    @property
    def _ttl_ms(self) -> int:
        return round((self._limits.thread_ttl_s + SPARE_TTL_S) * 1000)

    def _named(self, thread: str) -> Values:
        return thread_id(thread), str(self._ttl_ms)

    def _versioned(self, thread: str) -> tuple[Values, str]:
        """With a version for what is written, random so that no old one ever comes back."""
        version = str(secrets.randbits(62))
        return (*self._named(thread), version), version


def _amounts(turn: TurnReport | Tally) -> Values:
    """What a turn adds to the totals, as scripts take it."""
    return tuple(part for family, name, n in shares(turn) for part in (f"{family}\n{name}", repr(float(n))))


def _seen(branch: Branch | None) -> Values:
    """A branch as scripts compare it; for none, what every branch is like."""
    return ("", "", "") if branch is None else (raw(branch.branch), clock_text(branch.clock), branch.body.hex())
