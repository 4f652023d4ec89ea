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
ENDS = (b"}", b"},", b"}]")  # of a line with which a record may end
MOST_LINES = 200  # of a record that is written over several
MOST_JOINED = 2**22  # characters of it
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


def is_unfinished(error: json.JSONDecodeError) -> bool:
    """Whether the text ended too early, and was right up to there."""
    return error.msg.startswith("Unterminated string") or error.pos >= len(error.doc.rstrip())


# A string may hold raw control characters here: a record with a run of NUL in a text is still that record.
DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


class Joiner:
    """Records that stand on several lines: wrapped by an editor, or with the end of a line raw in a text."""

    def __init__(self) -> None:
        self._text, self._lines = "", 0

    def begin(self, text: str) -> None:
        """What begins a record at the end of a line."""
        self._text, self._lines = text, 1

    def __bool__(self) -> bool:
        return bool(self._text)

    def add(self, line: bytes) -> dict[str, Any] | None:
        """The record that ends with this line; None while there is none. False from then on where it cannot go on so."""
        self._text += line.decode("utf-8", "replace")
        self._lines += 1
        may_go_on = self._lines <= MOST_LINES and len(self._text) <= MOST_JOINED
        if may_go_on and b'"parentUuid"' not in line and not line.rstrip().endswith(ENDS):
            return None  # neither its end nor another record: not worth reading all of it again
        try:
            value, end = DECODER.raw_decode(self._text)
        except json.JSONDecodeError as error:
            if not (may_go_on and is_unfinished(error)):
                self._text = ""
        except (ValueError, RecursionError):
            self._text = ""
        else:
            behind = SEPARATORS.match(self._text, end)
            is_all = behind is None or behind.end() == len(self._text)
            self._text = ""
            return value if is_all and isinstance(value, dict) else None
        return None


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
        self.unfinished = ""  # what begins a record at the end of the line: the rest may stand on the next one

    def __iter__(self) -> Iterator[Any]:
        text, at, is_behind = self._text, self._next(0), False
        while at < len(text):
            value, end = self._read(at)
            if end is not None and (not is_behind or self._stands_alone(value, end)):
                self.is_lossy = self.is_lossy or "\x00" in text[at:end]
                self.unfinished = ""
                yield value
                at, is_behind = self._next(end), False
                continue
            if not is_behind and text[at] == "{":
                self.unfinished = text[at:] if self._is_unfinished else ""
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
        self._failed_at, self._is_unfinished = at, False
        try:
            value, end = DECODER.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            self._failed_at = max(at, error.pos)
            self._is_unfinished = is_unfinished(error)
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
