"""Structured logs: one JSON object a line, and nothing in it that a client, a model or an upstream wrote.

Other libraries put URLs, headers and the text of errors into their messages, so of their records only the place in
their code is told, from which the message can be looked up. Ours are constants with numbers and short plain words in
them. Of an exception, its type and the places in code that it passed are written, never its message.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from cg.errors import CgError
from cg.sweep.storage.sqlite.state_file import secure

OURS = "cg"
PLAIN = re.compile(r"[A-Za-z_]{1,40}\Z")  # a type's name; a credential has digits in it
MAX_LOG_BYTES = 16 * 2**20  # some months of one user's; looked at when a gateway starts
MAX_FRAMES = 12  # innermost places of an exception
FIELDS = "cg_fields"  # attribute of a record under which our structured fields travel


class JsonLines(logging.Formatter):
    """A record as one line of JSON: `at`, `level`, `logger`, `event`, and the fields that were given."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event_of(record),
        }
        if is_ours(record.name):
            line |= {name: harmless(value) for name, value in getattr(record, FIELDS, {}).items()}
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["places"] = places(record.exc_info[2])
        return json.dumps(line)


def is_ours(logger: str) -> bool:
    return logger == OURS or logger.startswith(OURS + ".")


def event_of(record: logging.LogRecord) -> str:
    """The record's message without content: ours with harmless arguments, for anybody else's where it was made."""
    if not is_ours(record.name):
        return f"{record.filename}:{record.lineno}"
    template = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
    if not isinstance(record.args, tuple) or not record.args:
        return template
    try:
        return template % tuple(harmless(value) for value in record.args)
    except (TypeError, ValueError):
        return template


def harmless(value: object) -> object:
    """A value that may stand in a log: a number, a switch, nothing, a member of a closed set, or one short word of
    letters; else its type and size."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and PLAIN.match(value):
        return value
    size = f" of {len(value)}" if isinstance(value, str | bytes | list | tuple | dict) else ""
    return f"<{type(value).__name__}{size}>"


def places(traceback: TracebackType | None) -> list[str]:
    """`file:line` of the innermost frames, outermost first; the file's name without its folders."""
    frames: list[str] = []
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
        frames.append(f"{name}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return frames[-MAX_FRAMES:]


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send all records of the process to `stream` (stderr) as JSON lines, whoever makes them.

    Raises ValueError for an unknown level. Handlers that libraries set up for themselves are taken away, since they
    would write the same records whole.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"log level is {level!r}; it must be debug, info, warning, error or critical")
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(number)
    for name in list(logging.Logger.manager.loggerDict):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for noisy in ("uvicorn.access", "uvicorn.error", "httpcore2"):  # lines by the request, and none of them ours
        logging.getLogger(noisy).setLevel(max(number, logging.WARNING))


@contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """A log file at its end, which only its owner can read and which starts anew past 16 MiB; stderr for none.

    Raises CgError if it cannot be opened, or is not plainly ours.
    """
    if path is None:
        yield sys.stderr
        return
    try:
        secure(path)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise CgError(f"{path}: cannot be written: {error.strerror or type(error).__name__}") from error
    with file:
        if file.tell() > MAX_LOG_BYTES:
            file.truncate(0)
        yield file


def log_event(logger: logging.Logger, event: str, /, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event of ours with its fields; `event` is a constant."""
    logger.log(level, event, extra={FIELDS: fields})
