"""The line to one Valkey or Redis server: short waits, no repeats, and a pause after each failure to answer."""

import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, NoScriptError, OutOfMemoryError, RedisError, ResponseError
from redis.retry import Retry

from cg.sweep.storage.redis.address import Address
from cg.sweep.storage.redis.checks import Refusal, refusal
from cg.sweep.storage.redis.scripts import TEXT, Command
from cg.sweep.store import StoreError

log = logging.getLogger("cg.sweep")
MAX_CONNECTIONS = 32  # the gateway's worker threads, and some for its own routes
PAUSE_S = 1.0  # after a failure to answer: each request would wait for its time to run out, and gain nothing
SECRET = "secret"  # the key, behind the namespace, of what threads are named with
SKEW_S = 0.25  # a difference below it is the network's; the window before expiry is a minute wide


class Full(StoreError):
    """The server takes no more: its memory or its disk is full."""


class Link:
    """Connections to one server. Safe between threads and after a fork.

    `refusal` says why nothing new may be removed over this server, or is None; it is looked at anew with each
    connection. `skew_s` is what the server's clock is ahead of ours.
    """

    def __init__(self, address: Address, *, now: Callable[[], float] = time.time) -> None:
        self.address = address
        self.refusal: Refusal | None = None
        self.skew_s = 0.0
        self.secret: bytes | None = None  # put back on a server that comes again without one
        self._now = now
        self._guard = threading.Lock()
        self._closed_until = 0.0  # monotonic; 0: open
        self._is_closed = False
        self._client: Any = redis.Redis(connection_pool=_pool(address, self._connected))
        self._script: Any = self._client.register_script(TEXT)

    def run(self, command: Command, *values: bytes | str | float) -> Any:
        """What a command of the script returns: by its name on the server, by its text where the server has not met it."""
        with self.errors():
            return self._run(command, values)

    def run_each(self, command: Command, calls: Sequence[Sequence[bytes | str | float]]) -> list[Any]:
        """The same for many calls of one command on one trip; each is atomic, all of them together are not."""
        with self.errors():
            if not calls:
                return []
            first = self._run(command, calls[0])  # from here on the server knows the script
            pipeline = self._client.pipeline(transaction=False)
            for values in calls[1:]:
                pipeline.evalsha(self._script.sha, 1, self.namespace, *values, command.value)
            return [first, *pipeline.execute()]

    @property
    def namespace(self) -> str:
        """What all our keys begin with; its number is the layout's."""
        return f"{self.address.prefix}:1:"

    @contextmanager
    def client(self) -> Iterator[Any]:
        """The client itself, for plain commands."""
        with self.errors():
            yield self._client

    @contextmanager
    def errors(self) -> Iterator[None]:
        """The client's errors as StoreError, with no content and no credential in the message."""
        self._enter()
        try:
            with self.reading():
                yield
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            with self._guard:
                self._closed_until = time.monotonic() + PAUSE_S
            raise StoreError(f"{self.address}: {_plain(error)}") from error
        except OutOfMemoryError as error:
            raise Full(f"{self.address}: has no memory left (maxmemory)") from error
        except ResponseError as error:
            kind = Full if str(error).startswith("MISCONF") else StoreError
            raise kind(f"{self.address}: {_plain(error)}") from error
        except RedisError as error:
            raise StoreError(f"{self.address}: {_plain(error)}") from error
        if self._closed_until:
            with self._guard:
                self._closed_until = 0.0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What does not read as ours, as StoreError: another program's values, or damaged ones."""
        try:
            yield
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            raise StoreError(f"{self.address}: holds what this program did not write, or is damaged") from error

    def note_time(self, seconds: float, sent_at: float) -> None:
        """Take in the server's clock from an answer to what was sent at `sent_at` of ours."""
        received_at = self._now()
        skew = seconds - (sent_at + received_at) / 2
        if abs(skew - self.skew_s) > max(SKEW_S, received_at - sent_at):
            self.skew_s = skew

    def check(self) -> None:
        """Look anew whether the server may hold a state; raises StoreError only if it does not answer."""
        with self.errors():
            connection = self._client.connection_pool.get_connection()
            try:
                self._look(connection)
            finally:
                self._client.connection_pool.release(connection)

    def close(self) -> None:
        self._is_closed = True
        self._client.connection_pool.disconnect()

    def _run(self, command: Command, values: Sequence[bytes | str | float]) -> Any:
        arguments = (1, self.namespace, *values, command.value)
        try:
            return self._client.evalsha(self._script.sha, *arguments)
        except NoScriptError:
            # Not by calling the Script: that would need SCRIPT LOAD, which the user need not be allowed, and a third trip.
            return self._client.eval(self._script.script, *arguments)

    def _enter(self) -> None:
        """Turn callers away while the server is left alone; one of them is let through to look again."""
        if self._is_closed:
            raise StoreError(f"{self.address}: the store is closed")
        if not self._closed_until:
            return
        with self._guard:
            if time.monotonic() < self._closed_until:
                raise StoreError(f"{self.address}: has just not answered; it is asked again within {PAUSE_S:g} s")
            if self._closed_until:
                self._closed_until = time.monotonic() + self.address.timeout_s + PAUSE_S

    def _connected(self, connection: Any) -> None:
        """Greet the server, and look at it before anything is asked of it."""
        connection.on_connect()
        self._look(connection)
        sent_at = self._now()
        connection.send_command("TIME")
        seconds, microseconds = connection.read_response()
        self.note_time(int(seconds) + int(microseconds) / 1e6, sent_at)
        if self.secret is not None and self.refusal is None:
            self._put_back(connection, self.secret)

    def _put_back(self, connection: Any, secret: bytes) -> None:
        """A server that has lost its data gets the secret that the running gateways name threads with."""
        name = self.namespace + SECRET
        connection.send_command("SET", name, secret, "NX")
        connection.read_response()
        connection.send_command("GET", name)
        if connection.read_response() != secret:
            log.error("state server: another secret is there than at the start; restart this gateway to share threads")

    def _look(self, connection: Any) -> None:
        def ask(*words: str) -> Any:
            connection.send_command(*words)
            try:
                return connection.read_response()
            except ResponseError as error:  # forbidden, or renamed away
                raise PermissionError(words[0]) from error

        refused = refusal(ask, self.address.assumed)
        if refused != self.refusal:
            level = logging.INFO if refused is None else logging.ERROR
            log.log(level, "the state server is %s", "fit" if refused is None else f"unfit: {refused.why}")
        self.refusal = refused


def _pool(address: Address, connected: Callable[[Any], None]) -> Any:
    options: dict[str, Any] = {
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_timeout": address.timeout_s,
        "socket_connect_timeout": address.timeout_s,
        "redis_connect_func": connected,
        "retry": Retry(NoBackoff(), 0),  # a count that was taken twice is worse than one that failed
        "protocol": 2,
        "client_name": "cg",
    }
    if address.path:
        options |= {"connection_class": redis.UnixDomainSocketConnection, "path": address.path}
        del options["socket_connect_timeout"]
    else:
        options |= {"host": address.host, "port": address.port, "socket_keepalive": True}
    if address.is_tls:
        options |= {"connection_class": redis.SSLConnection, "ssl_check_hostname": True, **address.tls_files}
    pool: Any = redis.BlockingConnectionPool
    return pool(MAX_CONNECTIONS, timeout=address.timeout_s, **options)


def _plain(error: BaseException) -> str:
    """What went wrong, in words that hold neither keys nor values."""
    if isinstance(error, NoPermissionError):
        command = re.search(r"'([a-z|]{1,40})'", str(error))
        return f"its user may not {command.group(1) if command else 'use some key or command'}"
    if isinstance(error, redis.AuthenticationError):
        return "refuses the user name or the password"
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return "is loading its data"
    if isinstance(error, redis.exceptions.ReadOnlyError):
        return "is read-only: a replica, or a primary that was replaced"
    if isinstance(error, redis.TimeoutError | TimeoutError):
        return "does not answer in time"
    if isinstance(error, redis.ConnectionError | OSError):
        return "TLS fails: its certificate is not trusted here" if _is_tls(error) else "cannot be reached"
    word = str(error).split(" ", 1)[0]
    return f"refuses a command ({word if re.fullmatch('[A-Z]{2,20}', word) else type(error).__name__})"


def _is_tls(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error is not None
