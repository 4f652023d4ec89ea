"""What images and documents cost, by the provider's own rules: pixels and pages, not the length of their base64."""

import base64
import binascii
import re
import struct
from typing import Any

IMAGE_TOKENS = 1500  # of an image whose size is not known, about 1.15 megapixels
PIXELS_PER_TOKEN = 750
LONGEST_EDGE = 1568  # pixels; a larger image is scaled down to it
MOST_IMAGE_TOKENS = 1600
PAGE_TOKENS = 2_250  # of a PDF: 1,500 to 3,000 a page, as the provider's page says
PAGE_BYTES = 60_000  # of a PDF that hides its pages in packed objects
HEAD_BYTES = 256 * 1024  # where an image says its size; JPEG may have a preview before it
PAGE = re.compile(rb"/Type\s*/Page\b")


def media_of(block: Any) -> tuple[int, int]:
    """(characters of its JSON that are media, tokens of that media) of a block and the blocks inside it."""
    if not isinstance(block, dict):
        return 0, 0
    kind, source = block.get("type"), block.get("source")
    data = source.get("data") if isinstance(source, dict) else None
    if kind == "image":
        return (len(data), _image_tokens(data)) if isinstance(data, str) else (0, IMAGE_TOKENS)
    if kind == "document" and isinstance(source, dict):
        if source.get("type") == "base64" and isinstance(data, str):
            return len(data), PAGE_TOKENS * _pages(data)
        if source.get("type") in ("url", "file"):
            return 0, PAGE_TOKENS
        inner = source.get("content")  # text, or blocks: read as they stand
    else:
        inner = block.get("content")
    found = [media_of(part) for part in inner] if isinstance(inner, list) else []
    return sum(size for size, _ in found), sum(tokens for _, tokens in found)


def _image_tokens(data: str) -> int:
    size = _pixels(_decoded(data[: HEAD_BYTES * 4 // 3]))
    if size is None or not all(size):
        return IMAGE_TOKENS
    scale = min(1.0, LONGEST_EDGE / max(size))
    return max(1, min(MOST_IMAGE_TOKENS, round(size[0] * scale * size[1] * scale / PIXELS_PER_TOKEN)))


def _pixels(head: bytes) -> tuple[int, int] | None:
    """(width, height) by the first bytes of a PNG, GIF, WebP or JPEG file."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", head[16:24])
            return width, height
        if head.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack("<HH", head[6:10])
            return width, height
        if head.startswith(b"RIFF") and head[8:15] == b"WEBPVP8":
            return _webp(head)
        if head.startswith(b"\xff\xd8"):
            return _jpeg(head)
    except (struct.error, IndexError):
        pass
    return None


def _webp(head: bytes) -> tuple[int, int]:
    match head[15:16]:
        case b"X":
            width, height = int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"L":
            bits = int.from_bytes(head[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = (size & 0x3FFF for size in struct.unpack("<HH", head[26:30]))
    return width, height


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """From the frame header, the first of the segments C0 to CF that is no table."""
    at = 2
    while head[at] == 0xFF:
        kind = head[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4])
    return None


def _pages(data: str) -> int:
    file = _decoded(data)
    return len(PAGE.findall(file)) or max(1, round(len(data) * 3 / 4 / PAGE_BYTES))


def _decoded(data: str) -> bytes:
    """The bytes of base64; none where it is none."""
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
