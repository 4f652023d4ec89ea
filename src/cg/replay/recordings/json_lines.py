"""What is whole on a line of a log: writers die in the middle of a record, write two on one line, and leave runs of NUL."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

SEPARATORS = re.compile(
    r"[\s\x00\x1e\ufeff,\[\]]*"
)  # between records: blanks, NUL, record and byte order marks, a list
BLANKS = re.compile(r"[\s\x00\x1e\ufeff]*")
RECORD_OPENS = re.compile(r'\{\s*"')
WIDE_OPENS = b'{\x00"\x00'
MOST_READINGS = 8  # of a damaged line, each of its own length: a line of open braces alone could be read for hours
MOST_EXTRA = 100_000  # characters
FAILING = 32  # an error counts the lines before it: so many characters take as long as one that is parsed
DEEP = 10_000  # characters that a text too deep to read is taken to have cost


def loads(raw: bytes) -> Any:
    """The JSON value; bytes that are no UTF-8 are replaced, as one bad character must not lose a message.

    Raises ValueError, for NaN and the infinities too, and RecursionError.
    """
    return json.loads(raw.decode("utf-8", "replace"), parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# A string may hold raw control characters here: a record with a run of NUL in a text is still that record.
DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


class Salvage:
    """The values on a line that is no single JSON value; `is_lossy` tells, once all were taken, whether some of it is lost.

    Behind a damage a value counts only if it is a record that stands by itself: an object with a parentUuid and a type,
    at whose end the line or another record begins. What is nested in the damaged record has something of it behind.
    """

    def __init__(self, line: bytes) -> None:
        wide = line.find(WIDE_OPENS)  # a shell appended in UTF-16
        narrow = line if wide < 0 else line[:wide].removesuffix(b"\xff\xfe")
        self._text = narrow.decode("utf-8", "replace")
        if wide >= 0:
            self._text += line[wide:].rstrip(b"\n").decode("utf-16-le", "replace")
        self._budget = MOST_READINGS * len(self._text) + MOST_EXTRA
        self.is_lossy = False

    def __iter__(self) -> Iterator[Any]:
        text, at, is_behind = self._text, self._next(0), False
        while at < len(text):
            value, end = self._read(at)
            if end is not None and (not is_behind or self._stands_alone(value, end)):
                self.is_lossy = self.is_lossy or "\x00" in text[at:end]
                yield value
                at, is_behind = self._next(end), False
                continue
            self.is_lossy = is_behind = True
            if self._budget < 0:
                return
            found = RECORD_OPENS.search(text, self._resume(at) if end is None else end)
            at = found.start() if found else len(text)

    def _next(self, at: int) -> int:
        found = SEPARATORS.match(self._text, at)
        return at if found is None else found.end()

    def _read(self, at: int) -> tuple[Any, int | None]:
        """The value that begins here and its end; None for the end of one that is none."""
        self._failed_at = at
        try:
            value, end = DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._failed_at = max(at, error.pos)
            self._budget -= self._failed_at - at + self._failed_at // FAILING
        except RecursionError:
            self._budget -= DEEP
        except ValueError:  # a number that no log has
            self._budget -= len(self._text) - at
        else:
            self._budget -= end - at
            return value, end
        return None, None

    def _resume(self, at: int) -> int:
        """Where to look on. A record that was cut in a string ends one character into the next one: where so much has been
        read that no more than a last look is left, that is where it is."""
        if self._budget > len(self._text):
            return at + 1
        brace = self._text.rfind("{", at + 1, self._failed_at + 1)
        return brace if brace >= 0 else max(at + 1, self._failed_at)

    def _stands_alone(self, value: Any, end: int) -> bool:
        if not isinstance(value, dict) or "parentUuid" not in value or not isinstance(value.get("type"), str):
            return False
        found = BLANKS.match(self._text, end)
        behind = end if found is None else found.end()
        return behind == len(self._text) or self._text[behind] == "{"
