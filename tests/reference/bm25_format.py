"""The format of index files written out: sections, checksums, and what a forger would do with them."""

import struct

HEADER_SIZE = 8 + 8 + 32 + 16 + 2 * 16 * 8 + 8 + 8
ANALYZER_AT = HEADER_SIZE - 16  # two numbers: the analyser and its version
MIX_A, MIX_B, MASK = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, (1 << 64) - 1
WIDTHS = [4, 1, 4, 4, 4, 1, 32, 4, 2, 1, 4, 1, 8, 4, 4, 4]


def checksum(data):
    """The checksum of the format, written out."""
    lanes, tail, total = [1, 2, 3, 4], 0, len(data)
    whole = len(data) // 32 * 32
    for i, (word,) in enumerate(struct.iter_unpack("<Q", data[:whole])):
        x = (lanes[i % 4] ^ word) * MIX_A & MASK
        lanes[i % 4] = x ^ (x >> 32)
    for byte in data[whole:]:
        tail = (tail ^ byte) * MIX_B & MASK
        tail ^= tail >> 29
    for lane in lanes:
        total = ((total ^ lane) * MIX_B & MASK) ^ (total >> 31)
    return (total ^ tail) * MIX_A & MASK


def sections(image):
    """(start, end) of every section."""
    counts = struct.unpack_from("<16Q", image, 64)
    at, out = (HEADER_SIZE + 63) & ~63, []
    for count, width in zip(counts, WIDTHS, strict=True):
        end = (at + count * width + 63) & ~63
        out.append((at, end))
        at = end
    return out


def sealed(image):
    """The image with all its checksums made to fit, as a forger would."""
    image = bytearray(image)
    for i, (start, end) in enumerate(sections(image)):
        struct.pack_into("<Q", image, 64 + 128 + 8 * i, checksum(bytes(image[start:end])))
    struct.pack_into("<Q", image, HEADER_SIZE - 8, checksum(bytes(image[: HEADER_SIZE - 8])))
    return bytes(image)


def resealed(forged, section):
    start, end = sections(forged)[section]
    struct.pack_into("<Q", forged, 64 + 128 + 8 * section, checksum(bytes(forged[start:end])))
    struct.pack_into("<Q", forged, HEADER_SIZE - 8, checksum(bytes(forged[: HEADER_SIZE - 8])))
    return bytes(forged)
