"""`cg-hints`: requests on stdin, ordered candidates on stdout.

Start-up is most of what one small request costs, so what only some runs need is imported where it is needed.
"""

from __future__ import annotations

import json
import os
import sys

from cg.hints.cache import CatalogCache
from cg.hints.catalog import Catalog
from cg.hints.limits import DEFAULT_TIMEOUT_S
from cg.hints.ordering import respond
from cg.hints.refusal import Code, Refusal
from cg.hints.request import read_request
from cg.hints.shell.flags import Flags
from cg.hints.shell.reading import read_body, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO, TextIO

    from cg.hints.catalog import Producer
    from cg.hints.ordering import Response
    from cg.hints.request import Request
    from cg.hints.verify import Outcome

    Verifier = Callable[[Request, Catalog], Outcome]

EXIT_FAULT, EXIT_REFUSED, EXIT_INTERRUPTED, EXIT_PIPE = 1, 2, 130, 141
_EXIT_OF_RESULT = {"found": 0, "absent": 3, "incomplete": 4}


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # started with the descriptor closed
        raise Refusal(Code.INVALID_JSON, "standard input is closed")
    return sys.stdin.buffer


def _flags(arguments: list[str]) -> Flags:
    if not arguments:
        return Flags()  # the common case does without argparse, which costs as much as the rest of the command
    from cg.hints.shell.arguments import parse_arguments

    return parse_arguments(arguments)


def _verifier(command: str, flags: Flags) -> Verifier:
    """A function that checks the candidates of one request; what it remembers lasts as long as it does."""
    import signal

    from cg.hints.shell.command import CommandCheck
    from cg.hints.verify import CheckMemory, subjects, verify

    timeout_s = DEFAULT_TIMEOUT_S if flags.timeout is None else flags.timeout
    check, memory = CommandCheck(command, timeout_s), CheckMemory()
    # Ended politely, the run unwinds and so takes the running check and all that it started with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    def run(request: Request, catalog: Catalog) -> Outcome:
        everything = respond(request._replace(limit=None), flags.mix, catalog)  # "absent" is said of all of them
        return verify(subjects(request, everything), check, flags.budget, memory)

    return run


def _respond(request: Request, catalog: Catalog, flags: Flags) -> Response:
    if request.limit is None and flags.limit is not None:
        request = request._replace(limit=flags.limit)
    return respond(request, flags.mix, catalog, flags.explain)


def _the_request(flags: Flags) -> Request:
    """The one request of a run: that on standard input, or the one that the command line asks of files."""
    if flags.query is not None:
        from cg.hints.shell.files import request_of_files

        return request_of_files(flags.query, flags.files, flags.fields, flags.limit, _stdin)
    body = read_body(_stdin())
    if not body.strip():
        raise Refusal(
            Code.INVALID_JSON, "standard input is empty: a JSON request is read from it (see cg-hints --help)"
        )
    return read_request(body)


def _producer(flags: Flags) -> Producer | None:
    """Who makes hints in this run; the word table is loaded only if it is asked for."""
    if flags.producer is None:
        return None
    from cg.hints.producer import TableHints

    return TableHints


def _answer_one(flags: Flags, out: BinaryIO) -> int:
    """Answer the one request of this run; returns the exit code."""
    verifier = _verifier(flags.verify, flags) if flags.verify is not None else None
    request = _the_request(flags)
    catalog = Catalog(request.documents, analyzer=flags.analyzer, producer=_producer(flags))
    if verifier is not None:
        outcome = verifier(request, catalog)
        _write(out, _line(outcome.to_dict()))
        return _EXIT_OF_RESULT[outcome.result]
    response = _respond(request, catalog, flags)
    if flags.table:
        from cg.hints.shell.table import table

        _write(out, table(response).encode("utf-8"))
    else:
        _write(out, _line(response))
    return 0


def _answer_lines(flags: Flags, out: BinaryIO) -> int:
    """Answer each line of stdin before the next is read; returns the exit code."""
    verifier = _verifier(flags.verify, flags) if flags.verify is not None else None
    cache = CatalogCache(flags.analyzer, producer=_producer(flags))

    def answer(line: bytes) -> Mapping[str, object]:
        request = read_request(line, cache.read_before)
        catalog = cache.get(request.snapshot_id, request.documents, request.written)
        return _respond(request, catalog, flags) if verifier is None else verifier(request, catalog).to_dict()

    for line in read_lines(_stdin()):
        try:
            if isinstance(line, Refusal):
                raise line
            reply = answer(line)
        except Refusal as refusal:
            reply = refusal.to_dict()
        _write(out, _line(reply))
    return 0


def _describe(fault: BaseException) -> str:
    """The kind and place of a fault; never its message, which may quote content."""
    place, trace = "", fault.__traceback__
    while trace is not None:
        place = f" in {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(fault).__name__}{place}"


def _discard(stream: TextIO) -> None:
    """Give what `stream` still buffers nowhere to fail: the interpreter would try again, and complain, at its end."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)


def _report(refusal: Refusal, code: int) -> int:
    if sys.stderr is not None:
        try:
            _write(sys.stderr.buffer, _line(refusal.to_dict()))
        except OSError:  # nobody to tell, or no room: the exit code still says it
            _discard(sys.stderr)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code (see `cg-hints --help`)."""
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        if arguments[:1] == ["mcp"]:
            from cg.hints.mcp_server.command import run as run_mcp

            return run_mcp(arguments[1:])
        flags = _flags(arguments)
        if sys.stdout is None:
            return EXIT_PIPE
        run = _answer_lines if flags.lines else _answer_one
        return run(flags, sys.stdout.buffer)
    except Refusal as refusal:
        return _report(refusal, EXIT_REFUSED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard(sys.stdout)
        return EXIT_PIPE
    except Exception as fault:
        return _report(Refusal(Code.INTERNAL, _describe(fault)), EXIT_FAULT)


if __name__ == "__main__":
    sys.exit(main())
