"""Small random replies in which many candidates come to stand at one place: with the same brackets open, or nearly.

`reply(rng)` mixes what opens a candidate, what its string and comment hide, where these end, a way from there, and what ends
it all, at any byte; before it bare verdicts, behind it an answer. Whatever is remembered of one candidate is met by others
that differ from it in one thing only.
"""

from random import Random

DROP = "{i:0,verdict:drop}"
KEEP = "{i:0,verdict:keep}"
OPENERS = (
    "[", "{", "[[", "[{a:", "[1,", "{a:", "{a:[", "[\n", "[[],", "[{},", "{a:{},b:", "{a:[],b:[", "{i:", "{i:[", "[ ]", "{a:{b:",
    "[[[", "{verdict:", "[,", "{,", "[a,",
)  # fmt: skip
STRINGS = (
    '""', "''", '""', "\u201cx\u201d", "\u201c", '"', "'", "\u201d", "x", "", '"":1,i', '"":1,a', '"":1,verdict', '"",', '"":', '"":[',
    '"a":{', '"i"', "'a'", "\u201ci", '"x\\"', "\u201cx\\\u201d", '"",[', '"",[[',
)  # fmt: skip
HIDES = ("//", "//", " #", "/*", "/*", "\n#", "", ",//", ":/*", "#", "/**", ":", ",", "\\")
JOINTS = (
    "\n",
    "\n",
    "*/",
    "*/",
    "\u201d",
    "\u201d",
    '"',
    "'",
    "*/,",
    "\u201d:",
    "\r",
    "\n*/\n",
    "\u201d*/\n",
    "",
    "\u201d//\n",
)
WAYS = (
    ",1", ",a", ", ", "\n//[]\n", ",[1]", ",[", "]", "]}", ",a:1", ":1,a", " ", " #x\n", "/*[]*/", ",[]", "}", "},", ":", ",{", ":[",
    "[", "\u3000", f"//{KEEP}\n", f"/*[{DROP}]*/", f"//[{KEEP}]\n", " " * 70, " " * 70, "[" * 20, ",i:1", "\u201c\u201d,", "\uff0c",
    "\uff1a1", "],", "1", "a:", ":a", ",\u201ci\u201d:", "<think>", "</think>", f",{DROP}", "//[]\n" * 12, "/*\u201d*/", "''",
    ",''", ":''", '"', "...", ":i:",
)  # fmt: skip
ENDS = (
    "x",
    "",
    "=",
    "...",
    "<",
    "\n",
    "]",
    "}",
    "]]",
    "]}",
    "}]",
    "\u2026",
    "\u201d",
    '"',
    "'",
    "</think>",
    "..",
    "/",
    "\\",
    "]" * 70,
)
BEFORE = (
    "",
    "",
    "",
    f"{DROP}\n{{i:1,verdict:drop}}\n",
    DROP,
    f"[{DROP}] ",
    f"{DROP},",
    "[{i:'x' y ",
    "<think>",
    f"[{KEEP}]\n",
    "[] ",
)
AFTER = ("", "", f"\n[{DROP}]", f" [{DROP}]", f"\u201d[{DROP}]", "[]", f'"{KEEP}', f"*/ {KEEP}{DROP}", "\n[")
DEEP = (
    "[",
    "{a:",
    "[[],",
    "{i:",
    "[{a:",
    "{a:[",
    "[\n",
    '["",',
    "[//\n",
    "{a:{},b:",
    "[{},",
    "[ ",
    "{'':",
    "[\u201c\u201d,",
    "[/**/",
)


def candidates(rng: Random) -> str:
    """What opens brackets over and over; two kinds of it in turn, in blocks, or one kind with a stranger in it."""
    one, other = ("".join(map(rng.choice, (OPENERS, STRINGS, HIDES))) for _ in range(2))
    if rng.random() < 0.5:  # the same but for what opens, holds or hides
        parts = [rng.choice(kind) for kind in (OPENERS, STRINGS, HIDES)]
        one = "".join(parts)
        changed = rng.randrange(3)
        parts[changed] = rng.choice((OPENERS, STRINGS, HIDES)[changed])
        other = "".join(parts)
    times = rng.choice((1, 1, 1, 2, 3, 8))
    return rng.choice((one * times + other * rng.choice((1, 2)), (one + other) * times, one * times + other + one))


def deep(rng: Random) -> str:
    """Brackets up to the limit, or past it."""
    unit, times = rng.choice(DEEP), rng.choice((58, 61, 62, 63, 64, 65, 66, 70))
    row, at = [unit] * times, rng.randrange(times)
    if rng.random() < 0.5:
        row[at] = rng.choice(DEEP)
    if rng.random() < 0.3:
        row[0] = rng.choice(("[[],", "{a:[[],", "{i:[", "{a:{},b:[[],", "[[ ],", '["[]",', "[//[]\n", "[[],{i:"))
    return "".join(row)


def reply(rng: Random) -> bytes:
    """Up to a few hundred bytes, one in four cut off or broken at some byte."""
    parts = [rng.choice(BEFORE)]
    kind = rng.random()
    if kind < 0.12:
        parts += [deep(rng), rng.choice(WAYS), candidates(rng) if rng.random() < 0.5 else ""]
    else:
        parts.append(candidates(rng))
    parts.append(rng.choice(JOINTS))
    if rng.random() < 0.7:
        parts.append(
            rng.choice((" " * 66, "//[]\n" * 13, ",1" * 33, " #\n" * 22, ",a:1" * 17, ",[1]" * 17, "/*[*/" * 13))
        )
    parts += [rng.choice(WAYS) for _ in range(rng.randrange(5))]
    if 0.12 <= kind < 0.2:
        parts.append(rng.choice(("[", ",[", "[[],", ",[a,")) + deep(rng))
    parts += [rng.choice(ENDS), rng.choice(AFTER)]
    text = "".join(parts).encode()
    if rng.random() < 0.25:
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice((b"", b"", rng.choice(ENDS).encode() + text[at:]))
    return text
