"""Names from outside, as a terminal and a page may show them."""


def plain(text: str) -> str:
    """The text with all that is not printed as itself in escapes: what steers a terminal, turns the direction of reading,
    breaks a line, or is no character at all, as a byte of a file's name may be."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
