"""The three forms of a word table: FP32, INT8 and ternary, each as vectors and as a file."""

import struct
import zlib
from pathlib import Path

import numpy as np

DIMS = 128
POWERS = np.array([1, 3, 9, 27, 81], np.uint8)  # five ternary digits make a byte
TERNARY_CUT = 0.7  # of a row's mean magnitude: smaller numbers become 0 (Li and Liu, Ternary Weight Networks)


def ternary(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Digits [n, 128] of -1, 0, 1 and a scale a row: the mean magnitude of the numbers that do not become 0."""
    size = np.abs(vectors)
    kept = size > TERNARY_CUT * size.mean(1, keepdims=True)
    digits = (np.sign(vectors) * kept).astype(np.int8)
    scale = (size * kept).sum(1) / np.maximum(kept.sum(1), 1)
    return digits, scale.astype(np.float32)


def int8(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers from -127 to 127 and a scale a row."""
    scale = np.maximum(np.abs(vectors).max(1), 1e-12) / 127
    return np.rint(vectors / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def write_ternary(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """The file that ships; src/cg/kernels/words/table.h has its format. `words` are in the order of their bytes."""
    digits, scale = ternary(vectors)
    padded = np.pad((digits + 1).astype(np.uint8), ((0, 0), (0, -DIMS % 5)))
    rows = (padded.reshape(len(words), -1, 5) * POWERS).sum(2, dtype=np.uint8)
    encoded = [word.encode() for word in words]
    lengths = bytes(map(len, encoded))
    body = scale.astype("<f4").tobytes() + rows.tobytes() + lengths + b"".join(encoded)
    word_bytes = sum(map(len, encoded))
    head = struct.pack("<8s6I", b"cgwords\n", 1, 0x01020304, len(words), DIMS, word_bytes, zlib.crc32(body))
    path.write_bytes(head + body)


def write_all(folder: Path, words: list[str], vectors: np.ndarray) -> dict[str, Path]:
    """Each form in a file of the folder, by its name."""
    paths = {name: folder / f"words.{name}" for name in ("fp32.npz", "int8.npz", "ternary")}
    rows, scale = int8(vectors)
    text = np.frombuffer("\n".join(words).encode(), np.uint8)  # an array of str would take 4 bytes a character
    np.savez(paths["fp32.npz"], words=text, rows=vectors)
    np.savez(paths["int8.npz"], words=text, rows=rows, scale=scale)
    write_ternary(paths["ternary"], words, vectors)
    return paths


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """The words of a file and their vectors in FP32, whichever form it has."""
    if path.suffix == ".npz":
        stored = np.load(path)
        scale = stored["scale"][:, None] if "scale" in stored else np.float32(1)
        return stored["words"].tobytes().decode().split("\n"), stored["rows"] * scale
    data = path.read_bytes()
    n = struct.unpack_from("<I", data, 16)[0]
    at = 32 + 4 * n
    scale = np.frombuffer(data, "<f4", n, 32)
    rows = np.frombuffer(data, np.uint8, n * 26, at).reshape(n, 26)
    digits = (rows[:, :, None] // POWERS % 3).reshape(n, -1)[:, :DIMS].astype(np.float32) - 1
    lengths = data[at + 26 * n : at + 27 * n]
    words, at = [], at + 27 * n
    for length in lengths:
        words.append(data[at : at + length].decode())
        at += length
    return words, digits * scale[:, None]
