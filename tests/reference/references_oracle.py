"""Names and lines of a text, by regular expressions and slowly."""

import re

RUN = re.compile(rb"[A-Za-z0-9_.-]+")
WORD = re.compile(rb"[A-Za-z0-9_]+")
NUMBER = re.compile(rb"[ \t\r\v\f]*[0-9]+ *(?:\t|:|\||\xe2\x86\x92)")
BLANKS = b" \t\r\v\f"
TELLING = re.compile(rb"[a-z][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|[A-Za-z0-9]\.[A-Za-z]")


def is_name(word: bytes) -> bool:
    if not 4 <= len(word) <= 64:
        return False
    letters, digits = len(re.findall(rb"[A-Za-z]", word)), len(re.findall(rb"[0-9]", word))
    return bool(TELLING.search(word)) or (digits > 0 and letters > 0) or digits >= 5


def items(text: bytes) -> set[bytes]:
    found = set()
    for run in RUN.findall(text):
        word = run.strip(b".-")
        found |= {piece for piece in [word, *re.split(rb"[.-]", word)] if is_name(piece)}
    for raw in text.split(b"\n"):
        number = NUMBER.match(raw)
        line = raw[number.end() if number else 0 :].strip(BLANKS)
        if len(line) >= 24 and len(WORD.findall(line)) >= 2:
            found.add(line[:400])
    return found
