"""Images and documents count by pixels and pages, wherever they stand."""

import base64
import json
import struct

import pytest

from cg.replay.media import IMAGE_TOKENS, MOST_IMAGE_TOKENS, PAGE_TOKENS, media_of
from cg.replay.prompt import Prompt


def png(width: int, height: int, size: int = 300_000) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + bytes(size)


def jpeg(width: int, height: int) -> bytes:
    segment = b"\xff\xe1" + struct.pack(">H", 5000) + bytes(4998)
    return b"\xff\xd8" + segment + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", height, width) + bytes(100_000)


def webp(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + size + bytes(1000)


def block(kind: str, raw: bytes) -> dict[str, object]:
    return {"type": kind, "source": {"type": "base64", "media_type": "x/y", "data": base64.b64encode(raw).decode()}}


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        (png(750, 100), 100),
        (png(1000, 1000), 1333),
        (png(8000, 100), 41),
        (png(9000, 9000), MOST_IMAGE_TOKENS),
        (jpeg(750, 200), 200),
        (webp(750, 300), 300),
        (b"GIF89a" + struct.pack("<HH", 75, 10) + bytes(99), 1),
        (b"BM" + bytes(5000), IMAGE_TOKENS),
        (png(0, 0), IMAGE_TOKENS),
        (b"\xff\xd8\xff", IMAGE_TOKENS),
        (b"", IMAGE_TOKENS),
    ],
)
def test_an_image_costs_its_pixels(raw: bytes, tokens: int) -> None:
    """Scaled to the longest edge that the API takes; a size that is not known counts as the usual one."""
    assert media_of(block("image", raw))[1] == tokens


@pytest.mark.parametrize(
    ("document", "tokens"),
    [
        (block("document", b"%PDF-1.7" + b"/Type /Page /Type/Page /Type /Pages" + bytes(10**6)), 2 * PAGE_TOKENS),
        (block("document", b"%PDF-1.7" + bytes(600_000)), 10 * PAGE_TOKENS),
        ({"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}}, PAGE_TOKENS),
        ({"type": "document", "source": {"type": "text", "data": "plain"}}, 0),
        ({"type": "document", "source": {"type": "content", "content": [block("image", png(750, 100))]}}, 100),
        ({"type": "document", "source": 5}, 0),
        ({"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}, IMAGE_TOKENS),
        ({"type": "image"}, IMAGE_TOKENS),
        ({"type": "text", "text": "no media"}, 0),
    ],
)
def test_a_document_costs_its_pages(document: dict[str, object], tokens: int) -> None:
    """A text in one is text."""
    assert media_of(document)[1] == tokens


def prompt_tokens(*blocks: object) -> int:
    prompt = Prompt("m", bytes_per_token=2.9)
    prompt.add_message(json.dumps({"role": "user", "content": blocks}).encode())
    return prompt.tokens


@pytest.mark.parametrize("kind", ["image", "document"])
def test_media_in_a_tool_result_count_as_media(kind: str) -> None:
    """And the rest of the result as text: not 100,000 tokens of base64."""
    inner = block(kind, png(750, 100))
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "x" * 290}, inner]}
    alone = media_of(inner)[1]
    assert alone < prompt_tokens(result) < alone + 250
    nested = {"type": "tool_result", "tool_use_id": "c", "content": [result, result]}
    assert 2 * alone < prompt_tokens(nested) < 2 * alone + 500
