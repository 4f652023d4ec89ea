"""Log files read in bounded memory: plain or gzip, whole or line by line; content is hostile until it is parsed."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, cast

from cg.replay.recordings.json_lines import loads
from cg.replay.recordings.recording import Unusable

MAX_LINE_BYTES = 64 * 2**20  # the API takes requests of 32 MiB; one line is one message or less
MAX_DOCUMENT_BYTES = 256 * 2**20  # a session in one JSON text; parsed, it takes a few times as much memory
MAX_LOG_BYTES = 4 * 2**30  # unpacked; a small gzip file can hold any number
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
# Redirected by a shell whose text is UTF-16, with a mark or without: a log begins with a brace and a quote.
WIDE = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b'{\x00"\x00': "utf-16-le",
    b'\x00{\x00"': "utf-16-be",
}


def open_log(path: Path) -> BufferedReader:
    """The file's bytes, unpacked if its first two say gzip, whatever its name. Raises Unusable."""
    try:
        if not path.is_file():  # a pipe would block, and cannot be read twice
            raise Unusable("not a file")
        file = path.open("rb")
    except OSError as error:
        raise Unusable(error.strerror or "cannot be opened") from error
    try:
        packed = file.peek(2)[:2] == GZIP_MAGIC
    except OSError as error:
        file.close()
        raise Unusable(error.strerror or "cannot be read") from error
    if not packed:
        return file
    file.close()  # GzipFile closes only what it opened itself
    return cast(BufferedReader, gzip.open(path, "rb"))


def head(path: Path, size: int) -> bytes:
    """The first `size` bytes at most, a byte order mark taken off."""
    with open_log(path) as file:
        return _read(file, size).removeprefix(BOM)


def document(path: Path) -> Any:
    """The one JSON value that the file holds. Raises Unusable."""
    with open_log(path) as file:
        raw = _read(file, MAX_DOCUMENT_BYTES + 1).removeprefix(BOM)
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise Unusable(f"more than {MAX_DOCUMENT_BYTES} bytes in one JSON text")
    try:
        return loads(raw)
    except json.JSONDecodeError as error:
        raise Unusable(f"damaged JSON at character {error.pos} of {len(error.doc)}") from None
    except (ValueError, RecursionError):
        raise Unusable("damaged JSON: a number or a depth that no session has") from None


def lines(path: Path) -> Iterator[bytes]:
    """The file's lines with their ends, the last one perhaps cut; a packed file that is cut ends where it is cut.

    Never holds more than one line. Raises Unusable at a line of more than MAX_LINE_BYTES, past MAX_LOG_BYTES, and for
    damaged packing.
    """
    total = number = 0
    with open_log(path) as file:
        read = _reader(file)
        while line := _readline(read):
            number += 1
            total += len(line)
            if len(line) > MAX_LINE_BYTES:
                raise Unusable(f"line {number} is longer than {MAX_LINE_BYTES} bytes")
            if total > MAX_LOG_BYTES:
                raise Unusable(f"more than {MAX_LOG_BYTES} bytes, unpacked")
            yield line.removeprefix(BOM) if number == 1 else line


def _reader(file: BufferedReader) -> Callable[[int], bytes]:
    """Reads a line of at most so many characters as UTF-8, whatever the file is written in."""
    try:
        opening = file.peek(4)[:4]
    except (EOFError, OSError, zlib.error):
        return file.readline  # says so
    encoding = WIDE.get(opening) or WIDE.get(opening[:2])
    if encoding is None:
        return file.readline
    text = TextIOWrapper(file, encoding, "replace", newline="\n")
    return lambda size: text.readline(size).encode("utf-8", "replace")


def _readline(read: Callable[[int], bytes]) -> bytes:
    try:
        return read(MAX_LINE_BYTES + 1)
    except EOFError:  # packing that ends early: what came before is whole
        return b""
    except (OSError, zlib.error) as error:
        raise Unusable(f"cannot be read: {_reason(error)}") from None


def _read(file: BufferedReader, size: int) -> bytes:
    try:
        return file.read(size)
    except EOFError:
        raise Unusable("gzip data ends early") from None
    except (OSError, zlib.error) as error:
        raise Unusable(f"cannot be read: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "damaged gzip data"
    return (error.strerror if isinstance(error, OSError) else None) or "input error"
