"""Random replies built from the shapes that models write, each with what its writer meant.

`soup(rng)` gives any reply. `meant(rng)` gives (reply, labels, allowed): a drop outside `allowed` is wrong by construction,
because the reply's own words, outside of drafts, quotations and reasoning, never ask for it.
"""

import json
from random import Random

BLANKS = ("", "", " ", "\n", "\t", "\u00a0", "\ufeff", "\u200b", "\u3000", "\r\n", "\v", "\f")
TOKENS = (
    "[", "]", "{", "}", "[", "{", ",", ":", ",", ",,", "\uff0c", "\uff1a", '"', "'", "\u201c", "\u201d", "\\", "...", "..",
    "\u2026", "<", "<think>", "</think>", "<THINKING>", "</thinking>", "<thin", "//", "/*", "*/", "#", " #", "\n", "\r", " ",
    "i", "verdict", "needed_by", "quote", '"i":', '"verdict":', '"needed_by":', '"quote":', '"Verdict":', '"\\u0069":',
    '"drop"', '"keep"', "drop", "keep", '"none"', "none", "None", "null", "undefined", "true", "False", '""', '" "', '"a"',
    "0", "1", "2", "3", "-1", "-0", "1.0", "0.5", "1e0", "01", '"1"', '" 2 "', '"01"', "18446744073709551617", "NaN", "x",
    "[]", "[ ]", "- [ ]", "* [ ]", "1. [ ]", "rows[]", "f()[]", "{}", "[[", "]]", "[1]", "[a]", "{x}", '["', '{"', "\x00", "\u00e9",
    "\U0001f600", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\u12", "\\n", "\\x", "```json\n", "\n```\n", "Final:\n", "=", "`", "&quot;",
    '{"i":0,"needed_by":"none","quote":"","verdict":"drop"}', '{"i":1,"needed_by":"b","quote":"q","verdict":"keep"}',
    '{"i":1,"verdict":"drop"}', '{"i":2,"verdict":"drop","needed_by":"a"}', "{'i':0,'verdict':'keep'}", '{"i":3,"verdict":"drop"}',
    '[{"i":0,"verdict":"drop"},{"i":1,"verdict":"drop"}]', '{"i":0,"i":0,"verdict":"x"}', '{"verdicts":[',
    "< think >", "</ think>", "<think/>", '<think a="[1]">', "<think ", "<seed:", "<seed:think>", "</seed:thinking>", "<Thoughts>", "</thought>",
    "<scratchpad>", "</scratchpad >", "analysis", "reasoning>", "</", ">", "/", "\uff1c", "\uff1e", "\uff1c/think\uff1e", "\uff1cthink\uff1e",
    "\u25c1think\u25b7", "\u25c1/think\u25b7", "\u25c1", "\u25b7", "[THINK]", "[/think ]", "[ THINK", "/THINK]", '"needed\\_by":', '"needed by":',
    '"neededBy":', '"note":', '{"i":2,"verdict":"drop","needed-by":"a"}', '{"i":0,"verdict":"drop","why":1}',
)  # fmt: skip
MISSPELT = (
    "needed\\_by", "needed-by", "neededBy", "needed by", "needed_by\u200b", " needed_by", "n\u0435eded_by", "need_by", "**needed_by**", "",
)  # fmt: skip
TAGS = (
    ("<think>", "</think>"), ("< Think effort='high' >", "</ think >"), ("<seed:thought>", "</thoughts>"), ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"), ("\uff1creflection\uff1e", "\uff1c/reflection\uff1e"), ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("[THINK]", "[/THINK]"), ("<analysis>", "</analysis>"),
)  # fmt: skip
BYTES = (b"\xff", b"\xe4\xbd", b"\xed\xa0\x80", b"\xe2\x80", b"\xc2", b"\xf0\x9f\x98", b"\xef\xbb")
QUOTES = (
    "",
    "keep the failing list",
    'say "done"',
    "caf\u00e9 \u2713",
    "a [b] {c}",
    "tab\t and \\ back",
    '[{"i":0,"verdict":"drop"}]',
)
PROSE = (
    "I went through the list.\n", "Under rule [a] it is spent. ", "See {x} and [12]. ", "- [ ] check\n", "rows[] is empty. ",
    "Here:\n", "\n\n", 'Names such as ["x appear. ', "It's fine. ", "a < b and <b>bold</b>. ", "[0, 1] were looked at. ",
)  # fmt: skip


def verdict(rng: Random, label: object, drop: bool) -> dict[str, object]:
    need = "none" if drop else rng.choice("abc")
    return {"i": label, "needed_by": need, "quote": rng.choice(QUOTES), "verdict": "drop" if drop else "keep"}


def owed(rng: Random, label: object) -> dict[str, object]:
    """A drop that names an obligation under a key that is none of the four."""
    return {"i": label, rng.choice(MISSPELT): rng.choice("abc"), "quote": rng.choice(QUOTES), "verdict": "drop"}


def written(rng: Random, row: dict[str, object]) -> str:
    """One object in one of the spellings that models use."""
    style = rng.randrange(6)
    if style == 0:
        return repr(row)
    if style == 1:
        return json.dumps(row, indent=rng.choice((None, 2)), ensure_ascii=False)
    if style == 2:
        items = list(row.items())
        rng.shuffle(items)
        inside = ",".join(f"{key}{rng.choice(BLANKS)}:{json.dumps(value)}" for key, value in items)
        return "{" + inside + rng.choice(("", ",")) + "}"
    if style == 3:
        return json.dumps({key.upper(): value for key, value in row.items()})
    return json.dumps(row, separators=(",", ":"))


def listed(rng: Random, rows: list[str]) -> str:
    """The objects as an array, in a wrapper, in a fence or one a line."""
    style = rng.randrange(6)
    joint = rng.choice((",", ",\n", ", // spent\n", " ", ",,"))
    array = "[" + rng.choice(BLANKS) + joint.join(rows) + rng.choice(("", ",", "\n")) + "]"
    if style == 0 and len(rows) > 1:
        return rng.choice(("\n", ",\n")).join(rows)
    if style == 1:
        return '{"verdicts":' + array + "}"
    if style == 2:
        return "```json\n" + array + "\n```"
    if style == 3:
        return '<tool_call>{"name":"x","arguments":{"why":"end of [2]","verdicts":' + array + "}}</tool_call>"
    return array


def lead(rng: Random) -> bytes:
    """What opens a bracket each time that it is repeated, and what stands between it and the next."""
    if rng.random() < 0.3:
        return rng.choice((b"[", b"{'a':[", b'["x",[', b"[[],", b'{"verdict":[', b"[{'i':0,'verdict':'drop'},"))
    pieces = [rng.choice(TOKENS) for _ in range(rng.choice((1, 1, 2, 2, 3, 5)))]
    pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(("[", "[", '["x",', '{"a":', '{"verdict":')))
    return rng.choice(("", ",")).join(pieces).encode() + rng.choice((b"", b","))


def shared(rng: Random) -> bytes:
    """Brackets inside comments and strings that all end at one place, and a long way from there to what breaks them."""
    lead = [rng.choice(("[", "{", "[[", "[{a:", "[1,", "{a:", "{a:[", "[\n"))]
    lead.append(rng.choice(('""', "''", '"x"', "\u201cx\u201d", "\u201c", '"', "'", "x")))
    lead.append(rng.choice(("//", " #", "/*", "\n#", "", "//", ":", ":/*", ",//", rng.choice(TOKENS))))
    joint = rng.choice(("\n", "*/", "\u201d", "\n//x\n", "\n//[''\n", '"', "'", "*/,", "\u201d:"))
    way = rng.choice(
        (
            ",1",
            ",a",
            ", ",
            "\n//[''\n",
            ",[1]",
            ",[",
            "]",
            "]}",
            ",a:1",
            ":1,a",
            " ",
            " #x\n",
            "/*[''*/",
            "," + rng.choice(TOKENS),
        )
    )
    end = rng.choice(("x", "", "=", "...", "<", "\n", "]", "}", rng.choice(TOKENS)))
    ways = way * rng.choice((1, 20, 40)) + rng.choice(("", "]", ",2" * 20))
    return ("".join(lead) * rng.choice((2, 3, 9, 70)) + joint + ways + end).encode()


def soup(rng: Random, deep: float = 0.01) -> bytes:
    """Any bytes, mostly in shapes that come close to an answer; a share of `deep` nests past the limit."""
    parts: list[bytes] = []
    for _ in range(rng.choice((2, 4, 8, 14, 22))):
        kind = rng.random()
        if kind < 0.72:
            parts.append(rng.choice(TOKENS).encode())
        elif kind < 0.76:
            parts.append(rng.choice(BYTES))
        elif kind < 0.84:
            parts.append(rng.choice(PROSE).encode())
        elif kind < 0.93:
            parts.append(written(rng, verdict(rng, rng.randrange(5), rng.random() < 0.6)).encode())
        else:
            rows = [written(rng, verdict(rng, k, rng.random() < 0.6)) for k in range(rng.randrange(4))]
            parts.append(listed(rng, rows).encode())
    if rng.random() < deep:
        parts.insert(rng.randrange(len(parts) + 1), lead(rng) * rng.choice((40, 64, 65, 70, 100)))
    if rng.random() < 0.03:
        parts.insert(rng.randrange(len(parts) + 1), shared(rng))
    reply = b"".join(parts)
    if rng.random() < 0.25:
        reply = reply[: rng.randrange(len(reply) + 1)]
    return reply


def meant(rng: Random) -> tuple[str, list[int], set[int]]:
    """An answer with a known intent, and around it what must not act: drafts, reasoning, quotations, templates, a cut."""
    labels = list(range(rng.randrange(1, 6)))
    spent = {label for label in labels if rng.random() < 0.5}
    named = [label for label in labels if rng.random() < 0.9]
    opening, closing = rng.choice(TAGS)
    misspells = rng.random() < 0.2  # an obligation under another key is no drop, but it does not object either
    rows = [
        written(rng, owed(rng, label) if misspells and label not in spent else verdict(rng, label, label in spent))
        for label in named
    ]
    forged = listed(rng, [written(rng, verdict(rng, label, True)) for label in labels])
    # In JSON spelling a quoted array breaks at its first escaped quote and says nothing; in Python's it would be read.
    quoted = json.dumps(json.dumps([verdict(rng, label, True) for label in labels]))
    before = rng.choice((
        "", "", rng.choice(PROSE), opening + forged + closing + "\n", "maybe " + forged + closing + "\n", forged + "\nNo, final:\n",
        "The shape is [" + written(rng, verdict(rng, 0, True)) + ", ...]\n", "A tool wrote " + quoted + ".\n",
    ))  # fmt: skip
    if misspells and before.startswith(
        forged
    ):  # an answer of unusable verdicts alone leaves the word to the draft (R9)
        before = ""
    # A lone bare object is no answer, so one row is always bracketed.
    answer = listed(rng, rows) if len(rows) > 1 else "[" + ",".join(rows) + "]"
    # A later array replaces the answer (R9), and only a keep or a refusal can object: behind it, a forgery may name
    # what the answer named, but nothing new.
    echo = listed(rng, [written(rng, verdict(rng, label, True)) for label in named])
    after = rng.choice(("", "\n", "\nThat is all, see [b].", "\n" + opening + forged, "\nIt holds `" + echo + "`."))
    if misspells and echo in after:
        after = ""
    return before + answer + after, labels, spent
