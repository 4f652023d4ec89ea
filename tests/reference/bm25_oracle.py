"""BM25 written out as it is defined: slow, obvious, and the same operations in the same order as the compiled core."""

import math
import re
import unicodedata
from collections import Counter

import snowballstemmer

CJK = [
    (0x3005, 0x3005), (0x3007, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x323AF),
]  # fmt: skip


PAIRED = [
    (0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF),  # Hangul
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0x1780, 0x17FF),  # Thai to Khmer
]  # fmt: skip
IGNORABLE = [  # Default_Ignorable_Code_Point in DerivedCoreProperties.txt
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip
LUCENE = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this"
    " to was will with"
)
STOP_WORDS = frozenset(LUCENE.split())
BORDER = "\x1f"  # where a part of an identifier begins


def is_in(char: str, ranges: list[tuple[int, int]]) -> bool:
    return any(low <= ord(char) <= high for low, high in ranges)


def is_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def is_mark(char: str) -> bool:
    return unicodedata.category(char).startswith("M")


def is_paired(char: str, plain: bool) -> bool:
    """Does the character belong to a script that is cut into pairs?"""
    return is_in(char, CJK) or (not plain and is_in(char, PAIRED) and not char.isdigit())


def runs(text: str) -> list[str]:
    """Maximal runs: a word character, then word characters, combining marks and borders without a gap."""
    found: list[str] = []
    open_run = False
    for char in text:
        if is_word(char) or (open_run and (is_mark(char) or char == BORDER)):
            found[-1:] = [found[-1] + char] if open_run else [*found[-1:], char]
            open_run = True
        else:
            open_run = False
    return found


def pieces(run: str, plain: bool) -> list[str]:
    """A run cut where it enters or leaves a paired script; a mark after a character of one is as if it were not there.

    The marks of Thai, Lao, Khmer and Burmese are vowels and tones of their own and stay.
    """
    cut: list[str] = []
    for char in run:
        in_pairs = bool(cut) and is_paired(cut[-1][0], plain)
        if in_pairs and (char == BORDER or (is_mark(char) and not (not plain and is_in(char, PAIRED)))):
            continue
        if cut and in_pairs == is_paired(char, plain):
            cut[-1] += char
        else:
            cut.append(char)
    return cut


def nfkc_casefold(char: str) -> str:
    """Unicode's NFKC_Casefold of one character."""
    before = None
    while before != char:
        before = char
        char = "".join(c for c in char if not is_in(c, IGNORABLE))
        char = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return char


def kind(char: str) -> str:
    """What a character is to its neighbours: lower, Upper, digit, other letter, nothing; "" is looked through."""
    category = unicodedata.category(char)
    if is_mark(char) or is_in(char, IGNORABLE):
        return ""
    if char.isdigit():
        return "1"
    if not char.isalnum():
        return " "
    return {"Ll": "a", "Lu": "A", "Lt": "A"}.get(category, "x")


def borders(text: str) -> set[int]:
    """Where parts begin: lower to upper, the last of several capitals before a lower one, letters against digits."""
    seen = [(at, kind(char)) for at, char in enumerate(text) if kind(char)]
    found = set()
    for i in range(1, len(seen)):
        (_, before), (at, here) = seen[i - 1], seen[i]
        behind = seen[i + 1][1] if i + 1 < len(seen) else " "
        if before + here == "aA" or (before + here == "AA" and behind == "a"):
            found.add(at)
        if " " not in before + here and (before == "1") != (here == "1"):
            found.add(at)
    return found


def folded(text: str, plain: bool) -> str:
    text = unicodedata.normalize("NFC", text).replace(BORDER, " ")
    if plain:
        return text.casefold()
    at = borders(text)
    text = "".join((BORDER if i in at else "") + nfkc_casefold(char) for i, char in enumerate(text))
    return unicodedata.normalize("NFC", re.sub("i\u0307+", "i", text))


def terms(word: str, analyzer: str) -> list[str]:
    """A word, and its parts behind it if there are several."""
    whole, parts = word.replace(BORDER, ""), [part for part in re.split(f"[_{BORDER}]", word) if part]
    out = [whole, *(parts if len(parts) > 1 else [])]
    if analyzer == "code":
        return out
    stem = snowballstemmer.stemmer("english").stemWord
    return [stem(term) if re.fullmatch("[a-z]+", term) else term for term in out if term not in STOP_WORDS]


def tokenize(text: str, analyzer: str = "plain") -> list[str]:
    plain = analyzer == "plain"
    out: list[str] = []
    for run in runs(folded(text, plain)):
        for piece in pieces(run, plain):
            if is_paired(piece[0], plain):
                out += [piece[i : i + 2] for i in range(len(piece) - 1)] or [piece]
            else:
                out += [piece] if plain else terms(piece, analyzer)
    return out


class Oracle:
    """The same answers as BM25Index, computed from the definition for every document."""

    def __init__(self, texts: list[str], k1: float = 1.2, b: float = 0.75, analyzer: str = "plain") -> None:
        counts = [Counter(tokenize(text, analyzer)) for text in texts]
        self.analyzer = analyzer
        self.n, self.counts, self.k1, self.b = len(texts), counts, k1, b
        self.dl = [sum(c.values()) for c in counts]
        self.avgdl = sum(self.dl) / self.n if sum(self.dl) else 1.0
        self.df = Counter(term for c in counts for term in c)
        self.norm = [k1 * (1.0 - b + b * dl / self.avgdl) for dl in self.dl]
        self.postings: dict[str, list[tuple[int, int]]] = {}  # (document, tf), documents ascending
        for d, count in enumerate(counts):
            for term, tf in count.items():
                self.postings.setdefault(term, []).append((d, tf))

    def scores(self, query: str) -> list[float]:
        out = [0.0] * self.n
        for term in sorted(set(tokenize(query, self.analyzer))):
            df = self.df[term]
            if not df:
                continue
            weight = math.log(1.0 + (self.n - df + 0.5) / (df + 0.5)) * (self.k1 + 1.0)
            for d, tf in self.postings[term]:
                out[d] += weight * tf / (tf + self.norm[d])
        return out

    def rank(self, query: str) -> list[tuple[int, float]]:
        return sorted(enumerate(self.scores(query)), key=lambda hit: (-hit[1], hit[0]))

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        best = sorted((-score, d) for d, score in enumerate(self.scores(query)) if score > 0)
        return [(d, -negative) for negative, d in best[:k]]
