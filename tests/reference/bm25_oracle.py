"""BM25 written out as it is defined: slow, obvious, and the same operations in the same order as the compiled core."""

import math
import unicodedata
from collections import Counter

CJK = [
    (0x3005, 0x3005), (0x3007, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x323AF),
]  # fmt: skip


def is_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def is_mark(char: str) -> bool:
    return unicodedata.category(char).startswith("M")


def is_cjk(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in CJK)


def runs(text: str) -> list[str]:
    """Maximal runs: a word character, then word characters and combining marks without a gap."""
    found: list[str] = []
    open_run = False
    for char in text:
        if is_word(char) or (open_run and is_mark(char)):
            found[-1:] = [found[-1] + char] if open_run else [*found[-1:], char]
            open_run = True
        else:
            open_run = False
    return found


def pieces(run: str) -> list[str]:
    """A run cut where it enters or leaves Han and kana; marks that follow such a character are dropped."""
    cut: list[str] = []
    for char in run:
        if cut and is_cjk(cut[-1][0]) == is_cjk(char):
            cut[-1] += char
        else:
            cut.append(char)
    out = []
    for piece in cut:
        if not is_cjk(piece[0]):
            while piece and is_mark(piece[0]):
                piece = piece[1:]
        if piece:
            out.append(piece)
    return out


def tokenize(text: str) -> list[str]:
    text = unicodedata.normalize("NFC", text).casefold()
    out: list[str] = []
    for run in runs(text):
        for piece in pieces(run):
            if is_cjk(piece[0]) and len(piece) > 1:
                out += [piece[i : i + 2] for i in range(len(piece) - 1)]
            else:
                out.append(piece)
    return out


class Oracle:
    """The same answers as BM25Index, computed from the definition for every document."""

    def __init__(self, texts: list[str], k1: float = 1.2, b: float = 0.75) -> None:
        counts = [Counter(tokenize(text)) for text in texts]
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
        for term in sorted(set(tokenize(query))):
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
