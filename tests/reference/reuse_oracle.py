"""Later use by the letter: for each output and each request the whole session is gone through again."""

from typing import Any

Moment = tuple[str, Any]  # ("bring", (id, text)), ("write", text), ("reply", [texts]), ("forget", None)
ALNUM = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
UPPER, LOWER, DIGITS = (set(s) for s in ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"))
LETTERS = UPPER | LOWER


def without_number(line: str) -> str:
    """The line behind a leading number and its separator, if it has them."""
    rest = line.lstrip()
    digits = 0
    while digits < len(rest) and rest[digits].isdecimal():
        digits += 1
    behind = rest[digits:]
    if digits == 0:
        return line
    after = behind.lstrip()
    if after[:1] in ("\u2192", ":", "|"):
        return after[1:]
    return after if "\t" in behind[: len(behind) - len(after)] else line


def n_words(line: str) -> int:
    return sum(c in ALNUM and (i == 0 or line[i - 1] not in ALNUM) for i, c in enumerate(line))


def words(line: str) -> list[str]:
    """Runs of word characters, dots and hyphens that begin with a word character."""
    found, word = [], ""
    for c in line + "\n":
        if c in ALNUM or c in "$@" or (word and c in ".-"):
            word += c
        else:
            found += [word] if word else []
            word = ""
    return found


def is_identifier(word: str) -> bool:
    pairs = list(zip(word, word[1:], strict=False))
    triples = list(zip(word, word[1:], word[2:], strict=False))
    within = LETTERS | DIGITS
    return len(word) >= 6 and (
        any(a in LOWER and b in UPPER for a, b in pairs)
        or any(a in within and b == "_" and c in within for a, b, c in triples)
        or any(a in within and b == "." and c in LETTERS for a, b, c in triples)
        or (bool(set(word) & LETTERS) and bool(set(word) & DIGITS))
        or (len(word) >= 5 and set(word) <= DIGITS)
    )


def lines_of(text: str) -> set[str]:
    bare = [without_number(line).strip() for line in text.split("\n")]
    return {line[:400] for line in bare if len(line) >= 24 and n_words(line) >= 2}


def identifiers_of(text: str) -> set[str]:
    short = [line for line in text.split("\n") if len(line) < 20_000]
    return {word.strip(".-") for line in short for word in words(line) if is_identifier(word.strip(".-"))}


READS = (lines_of, identifiers_of)


def text_of(moment: Moment) -> str:
    kind, what = moment
    return {"bring": lambda: what[1], "write": lambda: what, "reply": lambda: "\n\n".join(what)}[kind]()


def owner(moments: list[Moment], at: int, read: Any, item: str) -> str | None:
    """The output that brought the item last before the moment `at`; None if a writer did, or nobody, or too many."""
    brought = [what for kind, what in moments[:at] if kind == "bring"]
    if sum(item in read(text) for _, text in brought) > 3:
        return None
    for kind, what in reversed(moments[:at]):
        if kind == "forget":
            return None
        if item in read(text_of((kind, what))):
            return str(what[0]) if kind == "bring" else None
    return None


def label(moments: list[Moment], output: str, request: int) -> tuple[str, int | None]:
    """(live, unsure or spent; the request that proves a live one)."""
    n_lines, named, replies = 0, set(), -1
    for at, (kind, _) in enumerate(moments):
        replies += kind == "reply"
        if kind != "reply" or replies < request:
            continue
        text = text_of(moments[at])
        n_lines += sum(owner(moments, at, lines_of, item) == output for item in lines_of(text))
        named |= {item for item in identifiers_of(text) if owner(moments, at, identifiers_of, item) == output}
        if n_lines or len(named) >= 2:
            return "live", replies
    return ("unsure" if named else "spent"), None
