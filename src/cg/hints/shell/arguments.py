"""The command line of `cg-hints`: flags, their ranges, and the help that documents every code."""

from __future__ import annotations

import argparse
from typing import NoReturn

from cg import __version__
from cg.hints.catalog import Merge
from cg.hints.combine import DEFAULT_BOUND, MAX_BOUND, MIN_BOUND
from cg.hints.limits import MAX_TIMEOUT_S
from cg.hints.refusal import Code, Refusal
from cg.hints.shell.flags import Flags

_EPILOG = """\
exit codes:
  0    answered; with --verify: found; with --lines: every line has its answer, errors in their place
  1    a fault of ours (internal)
  2    refused: stdout is empty, stderr is one line {"error": {"code", "message", "path"}}
  3    --verify: absent, all candidates were checked
  4    --verify: incomplete, the budget was spent or a check failed
  130  interrupted (Ctrl-C)      141  the reader of our output went away

error codes:
"""


_SHOWN_CHARACTERS = 300  # of a message that quotes what was typed; one short line, however long the argument


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """A wrong command line is refused in the same form as a wrong request."""
        text = message.encode("utf-8", "backslashreplace").decode()  # arguments that are not UTF-8 come as surrogates
        raise Refusal(Code.USAGE, text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


def _number(text: str, kind: type[float]) -> float:
    """What argparse's own message would call by the name of a function."""
    try:
        return kind(text)
    except ValueError:
        is_whole = kind is int and text.strip().removeprefix("+").isdecimal()  # more digits than are read
        raise argparse.ArgumentTypeError(
            "more digits than are read" if is_whole else f"{text!r} is no number"
        ) from None


def _positive(text: str) -> int:
    value = int(_number(text, int))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _bound(text: str) -> float:
    value = _number(text, float)
    if not MIN_BOUND <= value <= MAX_BOUND:
        raise argparse.ArgumentTypeError(f"{value} is not in {MIN_BOUND}..{MAX_BOUND}")
    return value


def seconds(text: str) -> float:
    value = _number(text, float)
    if not 0 < value <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"{value} is not more than 0 and at most {MAX_TIMEOUT_S:g} seconds")
    return value


def _code_lines() -> str:
    """The codes in columns of a narrow terminal."""
    codes = [code.value for code in Code]
    return "\n".join(
        "  " + "".join(f"{code:<20}" for code in codes[i : i + 4]).rstrip() for i in range(0, len(codes), 4)
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="cg-hints",
        usage="cg-hints [options] < request.json\n       cg-hints [options] --query WORDS FILE...\n"
        "       cg-hints mcp --config FILE [options]",
        description="Order documents for a query: BM25, with hints mixed in. A bad hint list at most doubles the"
        " candidates inspected before a target. Documents and query come as one JSON request on standard input, or are"
        " the files and the words given.",
        epilog=_EPILOG + _code_lines(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cg-hints {__version__}")
    _add_ordering(parser)
    _add_files(parser)
    _add_output(parser)
    return parser


def _add_ordering(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--analyzer", choices=("plain", "text", "code"), help="how texts are cut into terms (default: text)"
    )
    parser.add_argument("--merge", choices=("lazy", "strict"), help="how hints are mixed in (default: lazy)")
    parser.add_argument(
        "--bound",
        type=_bound,
        metavar="C",
        help="--merge lazy: a target comes at most C times as late as by BM25 (default: 2)",
    )
    parser.add_argument(
        "--first", choices=("hints", "baseline"), help="--merge strict: which list opens each round (default: hints)"
    )
    parser.add_argument(
        "--producer", choices=("table",), help="make hints for requests without any, from the package's word table"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="at most N candidates in an answer (default: all)")
    parser.add_argument("--explain", action="store_true", help="add what each term of the query gave each candidate")


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("documents from files")
    files.add_argument("--query", metavar="WORDS", help="order the documents of FILE... for these words")
    files.add_argument("files", nargs="*", metavar="FILE", help="a document a file; .jsonl, or - for stdin: one a line")
    files.add_argument(
        "--fields",
        metavar="SPEC",
        help="fields of such lines, by default id=id,name=name,text=text; several for one: text=title+body",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--lines", action="store_true", help="one request a line, one answer a line, in order")
    form.add_argument("--table", action="store_true", help="print a table for people instead of JSON")
    parser.add_argument(
        "--verify",
        metavar="COMMAND",
        help="run COMMAND for each candidate in order, one JSON object on its stdin: exit 0 found, 1 not this one",
    )
    parser.add_argument(
        "--budget", type=_positive, metavar="N", help="--verify: at most N checks a request (default: all)"
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="--verify: seconds a check may take (default: 30)")


def parse_arguments(arguments: list[str]) -> Flags:
    """The checked flags; raises Refusal(USAGE), and SystemExit(0) after --help."""
    parser = _parser()
    flags = parser.parse_args(arguments, Flags())  # what it holds already is not overwritten by a default
    if flags.verify is None and (flags.budget is not None or flags.timeout is not None):
        parser.error("--budget and --timeout need --verify")
    if flags.verify is not None and (flags.table or flags.explain):
        parser.error("--verify goes neither with --table nor with --explain")
    _check_documents(parser, flags)
    if flags.merge == "strict":
        if flags.bound is not None:
            parser.error("--bound goes with --merge lazy; strict alternation has the bound 2")
        flags.mix = Merge(None, "baseline" if flags.first == "baseline" else "hints")
    else:
        if flags.first is not None:
            parser.error("--first goes with --merge strict")
        flags.mix = Merge(DEFAULT_BOUND if flags.bound is None else flags.bound, "hints")
    return flags


def _check_documents(parser: argparse.ArgumentParser, flags: Flags) -> None:
    """Refuse files without a query, and what does not go with one."""
    if flags.query is None:
        if flags.files:
            name = flags.files[0]
            parser.error(
                f"a request is read from standard input: cg-hints < {name}; to search in files: cg-hints --query WORDS {name}"
            )
        if flags.fields is not None:
            parser.error("--fields needs --query")
    elif flags.lines:
        parser.error("--query and --lines do not go together")
