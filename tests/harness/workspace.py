"""A small repository for an agent to work in: the same bytes each time."""

import struct
import zlib
from pathlib import Path

MODULES = 12
LARGE_LINES = 1800  # some 95 KB: a client counts its tokens before it reads such a file


def make(root: Path) -> Path:
    """Twelve modules of about 8 KB, a large text, a picture and a note; returns the folder."""
    source = root / "src"
    source.mkdir(parents=True, exist_ok=True)
    for number in range(1, MODULES + 1):
        (source / f"mod_{number:02d}.py").write_text(_module(number), "utf-8")
    lines = (f"line {n} of the large text with some words to fill it\n" for n in range(LARGE_LINES))
    (source / "huge.txt").write_text("".join(lines), "utf-8")
    (source / "pixel.png").write_bytes(_picture())
    (root / "CLAUDE.md").write_text("# Notes for the agent\n\nKeep it short.\n", "utf-8")
    return root


def _module(number: int) -> str:
    parts = [f'"""Module {number} of the sample project."""\n\n']
    for step in range(40):
        parts.append(
            f"def handler_{number:02d}_{step:02d}(value, limit={step}):\n"
            f'    """Step {step} of stage {number}."""\n'
            f"    if value > limit:\n        return value - limit * {number}\n    return value + {number * step}\n\n\n"
        )
    return "".join(parts)


def _picture() -> bytes:
    """An 8 x 8 PNG of one colour."""

    def chunk(tag: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    rows = b"".join(b"\0" + b"\x40\x80\xc0" * 8 for _ in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
