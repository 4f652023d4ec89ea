"""`cg-sweep`: sweep one request on a pipe, bring an original back, look at a state, forget it, check a configuration."""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from cg import __version__
from cg.errors import CgError
from cg.sweep import config as configuration
from cg.sweep.accounting.status_line import (
    TAIL_BYTES,
    Entry,
    client_status,
    entry_of,
    last_answer,
    status_line,
    swept_in_all,
    swept_of,
    tokens_of,
)
from cg.sweep.body.transcript import MAX_BYTES, Unreadable, read
from cg.sweep.config import Config
from cg.sweep.core.idle_ask import Settled, claim_of, due_at
from cg.sweep.drivers import Sweep
from cg.sweep.history.branches import Continuation, place
from cg.sweep.judging.recorded_asker import RecordedAsker
from cg.sweep.open_store import open_store
from cg.sweep.planning.gaps import Client
from cg.sweep.prices import PriceTable
from cg.sweep.storage.redis.address import is_address
from cg.sweep.values import moment

EXIT_REFUSED = 2  # usage, configuration, or a state that cannot be used
READ_BYTES = 1024 * 1024
MAX_STATUS_BYTES = 4 * 1024 * 1024  # of the JSON that a client writes for its status line
STATE = "the state: a file, which `run` makes if absent (mode 0600), or redis://, rediss:// or unix:// of a server"
SERVER_FILES = (
    "cg-sweep: erased on the server; its own files (append-only file, snapshots, replicas' copies) hold it until it writes"
    " them anew: BGREWRITEAOF, BGSAVE"
)
EXIT_NOT_THERE = 3  # an id that brings nothing back; the reason is on stderr
EXIT_INTERRUPTED = 130  # as a shell counts a program that was ended by an interrupt


Commands = Any  # what `add_subparsers` gives; argparse has no public name for it


def main(argv: Sequence[str] | None = None, more: Sequence[Callable[[Commands], None]] = ()) -> int:
    """Run one command; returns its exit code: 0 done, 2 refused, 3 nothing to expand, 130 interrupted.

    Each of `more` adds commands of another part.
    """
    arguments = _parser(more).parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    if sys.stdout is None and not arguments.is_silent:  # started with the descriptor closed
        print("cg-sweep: nobody can read the answer: standard output is closed", file=sys.stderr)
        return EXIT_REFUSED
    try:
        code = command(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a failure has an exit code
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except CgError as error:
        print(f"cg-sweep: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except BrokenPipeError:
        _discard_output()
        return EXIT_REFUSED
    except OSError as error:  # of the report, or of stdout
        _discard_output()
        print(f"cg-sweep: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return EXIT_REFUSED


def _discard_output() -> None:
    """Give what stdout still holds nowhere to fail: a second complaint while the interpreter closes it helps nobody."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def _parser(more: Sequence[Callable[[Commands], None]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cg-sweep",
        description="Take spent tool outputs out of an agent's requests when that is paid for.",
        epilog="exit codes: 0 done; 2 refused (usage, configuration, state, output); 3 nothing to expand; 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"cg-sweep {__version__}")
    parser.set_defaults(is_silent=False)  # True: the command's exit code is its whole answer
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="one request on stdin, the request to send on stdout")
    _state_arguments(run)
    run.add_argument(
        "--now", type=_seconds, default=None, metavar="SECONDS", help="time of the request, since the epoch"
    )
    run.add_argument("--reply", type=Path, metavar="FILE", help='the reply to an ask: text, or JSON {"text", "usage"}')
    run.add_argument("--report", type=Path, metavar="FILE", help="write what was done and why, as JSON")
    _config_arguments(run)
    run.set_defaults(command=_run)

    expand = commands.add_parser("expand", help="the original that a marker stands for, on stdout")
    expand.add_argument("key", metavar="KEY", help="the 16 hex digits of the marker")
    _state_arguments(expand)
    expand.set_defaults(command=_expand)

    status = commands.add_parser("status", help="what a state holds, as JSON, or one line for a status bar")
    _status_arguments(status)
    status.set_defaults(command=_status)

    forget = commands.add_parser("forget", help="erase a session, or everything")
    forget.add_argument("--state", required=True, metavar="FILE|URL", help=STATE)
    which = forget.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID")
    which.add_argument("--all", action="store_true")
    forget.set_defaults(command=_forget, is_silent=True)

    check = commands.add_parser("config", help="check a configuration and print what is in force, as JSON")
    check.add_argument("--check", action="store_true", dest="is_silent", help="say only whether it is valid")
    _config_arguments(check)
    check.set_defaults(command=_config)
    for register in more:
        register(commands)
    return parser


def _state_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", required=True, metavar="FILE|URL", help=STATE)
    parser.add_argument("--session", required=True, metavar="ID", help="the conversation's name")


def _status_arguments(status: argparse.ArgumentParser) -> None:
    add = status.add_argument
    add("--state", metavar="FILE|URL", help=f"{STATE}; needed without --line")
    line = "one line: how long the cache entry lives, what a lapse would cost, what was removed, what it saved; of --session,"
    add("--line", action="store_true", help=f"{line} else of the session whose status Claude Code writes on stdin")
    add("--session", metavar="ID", help="with --line: the conversation's name in the state")
    add("--model", default="", metavar="NAME", help="with --session: the model, for prices")
    add("--now", type=_seconds, default=None, metavar="SECONDS", help="with --line: the time, since the epoch")


def _config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML, table [sweep]")
    parser.add_argument("--preset", metavar="NAME", help="quiet (default), cold, paid or classic")


def _seconds(text: str) -> float:
    """A moment; argparse puts the words of the error, or its own for what is no number, into the refusal."""
    try:
        return moment(float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _load_config(arguments: argparse.Namespace) -> Config:
    text = None
    if arguments.config is not None:
        try:
            text = arguments.config.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CgError(f"{arguments.config}: cannot be read: {type(error).__name__}") from error
    return configuration.load(text, os.environ, {}, arguments.preset)


# Who pipes requests with one state is one user: what is learnt of their waits has this name, which no session's has.
USER = hashlib.sha256(b"user").hexdigest()


def session_thread(session: str) -> str:
    """The thread of a session that was named on the command line."""
    return hashlib.sha256(b"session\0" + session.encode("utf-8", "surrogatepass")).hexdigest()


def _run(arguments: argparse.Namespace) -> int:
    config = _load_config(arguments)
    if config.judge == "model" and is_address(arguments.state):
        raise CgError("run: a model is asked over the last body, which no server keeps; use --preset cold, or a file")
    now = time.time() if arguments.now is None else arguments.now
    asker = RecordedAsker.from_file(arguments.reply) if arguments.reply else None
    body = _read_bounded(sys.stdin.buffer, MAX_BYTES)
    thread = session_thread(arguments.session)
    with open_store(arguments.state, config) as store:
        sweep = Sweep(config, store)
        settled = settle_gap(sweep, body, thread, now, asker)
        swept = sweep.process(body, thread, now, asker=asker, settled=settled, client=Client(USER))
    if arguments.report:
        arguments.report.write_text(json.dumps(swept.report.to_dict()) + "\n", "utf-8")
    sys.stdout.buffer.write(swept.body)
    sys.stdout.buffer.flush()
    return 0


def settle_gap(sweep: Sweep, body: bytes, thread: str, now: float, asker: RecordedAsker | None) -> Settled | None:
    """Make the idle ask that fell due before `now`, as of its own moment: a pipe has no clock of its own."""
    try:
        transcript = read(body)
    except Unreadable:
        return None
    where = place(transcript, sweep.state(thread), now)
    due = due_at(sweep.core, where.branch) if where.branch and where.standing is Continuation.EXTENDS else None
    if where.branch is None or due is None or due >= now:
        return None
    # Two runs of one session at a time, or one beside a gateway, would each ask, and pay for, the same.
    if sweep.claim(thread, *claim_of(where.branch), where.branch):
        return sweep.settle(thread, where.branch, due, asker=asker)
    return None


def _read_bounded(stream: BinaryIO, limit: int) -> bytes:
    """All of the stream; read in pieces, since a read of `limit` bytes takes as much memory for the smallest request."""
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(READ_BYTES):
        size += len(piece)
        if size > limit:
            raise CgError(f"the request has more than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _expand(arguments: argparse.Namespace) -> int:
    config = configuration.load(None, os.environ, {}, None)
    with open_store(arguments.state, config, must_exist=True) as store:
        expansion = Sweep(Config(), store).expand(session_thread(arguments.session), arguments.key, time.time())
    if expansion.sha256 is None:
        print(f"cg-sweep: {expansion.answer.decode('utf-8', 'replace')}", file=sys.stderr)
        return EXIT_NOT_THERE
    sys.stdout.buffer.write(expansion.answer)
    sys.stdout.buffer.flush()
    return 0


def _status(arguments: argparse.Namespace) -> int:
    if arguments.line:
        print(_status_line(arguments))
        return 0
    if arguments.state is None:
        raise CgError("status: --state FILE|URL is needed; without one there is only --line")
    with open_store(arguments.state, Config(), must_exist=True) as store:
        print(json.dumps(dict(store.status()), indent=1))
    return 0


def _status_line(arguments: argparse.Namespace) -> str:
    now = time.time() if arguments.now is None else arguments.now
    name, model, entry = arguments.session, arguments.model, Entry()
    if name is None:
        client = client_status(_read_bounded(sys.stdin.buffer, MAX_STATUS_BYTES))
        name, model = client.session, client.model
        entry = last_answer(_tail(client.log))
        tokens = entry.tokens if client.usage is None else tokens_of(client.usage)
        entry = replace(entry, tokens=tokens, model=model or entry.model)
    elif arguments.state is None:
        raise CgError("status: --session needs the --state that knows it")
    swept = None
    if arguments.state is not None:
        with open_store(arguments.state, Config(), must_exist=True) as store:
            thread = session_thread(name)
            known = store.load(thread)
            is_known = bool(known.branches) or arguments.session is not None
            # a gateway names its threads by the credential too, which nobody here has: then the sums of all
            swept = swept_of(known, store.totals(thread)) if is_known else swept_in_all(store.totals())
            if entry.at is None:
                entry = entry_of(known, entry.model or model)
    return status_line(entry, swept, now, PriceTable.default())


def _tail(log: Path | None) -> list[bytes]:
    """The last whole lines of a log; none of one that is not there."""
    if log is None:
        return []
    try:
        if not log.is_file():
            return []
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read(TAIL_BYTES).split(b"\n")
    except OSError:  # a status line says what it can
        return []


def _forget(arguments: argparse.Namespace) -> int:
    with open_store(arguments.state, Config(), must_exist=True) as store:
        store.forget(None if arguments.all else session_thread(arguments.session))
    if is_address(arguments.state):
        print(SERVER_FILES, file=sys.stderr)
    return 0


def _config(arguments: argparse.Namespace) -> int:
    config = _load_config(arguments)
    if not arguments.is_silent:
        print(json.dumps(config.to_dict(), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
