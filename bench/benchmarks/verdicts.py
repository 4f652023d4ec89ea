"""Reading verdicts: throughput on what models write and on what is meant to hurt."""

from cg.verdicts import Decoder, decode

LABELS = list(range(12))
QUOTE = "Before we ship, re-run tests/unit/test_cache.py and paste the summary line; I still need the third row. "
ANSWER = '\n[{"i":0,"needed_by":"none","quote":"","verdict":"drop"}]'
UNITS = {
    "plain_prose": "The quick listing of the build directory is no longer referred to by any later step. ",
    "bracket_prose": "As rule [a] says (see {x} and [12]), output 3 is done. ",
    "small_arrays": '[{"k":1}] ',
    "open_brackets": "[",
    "open_pairs": '[{"a":',
    "open_quote": '["',
    "far_quote": '[{"a":"x,',
    "broken_verdicts": '[{"i":0,"needed_by":"b","quote":"he said "no" ',
}


def clean_array(size_bytes: int) -> str:
    """An array of at least that size; half of its verdicts quote, some with escapes."""
    rows, size, i = [], 0, 0
    while size < size_bytes:
        need, quote, said = ("b", QUOTE * (1 + i % 4) + '\\"done\\"', "keep") if i % 2 else ("none", "", "drop")
        rows.append(f'{{"i":{i},"needed_by":"{need}","quote":"{quote}","verdict":"{said}"}}')
        size += len(rows[-1]) + 2
        i += 1
    return "[" + ",\n".join(rows) + "]"


def reply(kind: str, size_bytes: int) -> str:
    if kind == "clean_array":
        return clean_array(size_bytes)
    return (UNITS[kind] * (size_bytes // len(UNITS[kind]) + 1))[:size_bytes] + ANSWER


class Decode:
    params = (["clean_array", *UNITS], [100_000, 4_000_000])
    param_names = ("kind", "size_bytes")

    def setup(self, kind: str, size_bytes: int) -> None:
        self.reply = reply(kind, size_bytes)

    def time_decode(self, kind: str, size_bytes: int) -> None:
        decode(self.reply, LABELS)

    def track_drops(self, kind: str, size_bytes: int) -> int:
        """A fast wrong answer would show here."""
        return len(decode(self.reply, LABELS).drops)

    track_drops.unit = "drops"  # type: ignore[attr-defined]


class Feed:
    def setup(self) -> None:
        text = reply("bracket_prose", 12_000) + clean_array(12_000) + reply("plain_prose", 4_000)
        self.pieces = [text[i : i + 4] for i in range(0, len(text), 4)]

    def time_four_byte_pieces(self) -> None:
        decoder = Decoder(LABELS)
        for piece in self.pieces:
            decoder.feed(piece)
        decoder.finish()


class Memory:
    def setup(self) -> None:
        self.reply = reply("clean_array", 16_000_000).encode()

    def peakmem_baseline(self) -> None:
        pass

    def peakmem_decode(self) -> None:
        decode(self.reply, LABELS)
