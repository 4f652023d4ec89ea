"""The analysers text and code: what is cut, folded, stemmed and left out, against tests/reference/bm25_oracle.py."""

import os
import random
import re
import shutil
import struct
import subprocess
import sysconfig
import unicodedata
from pathlib import Path

import bm25_oracle
import pytest
from bm25_format import ANALYZER_AT, HEADER_SIZE, checksum
from hypothesis import given, settings
from hypothesis import strategies as st

from cg import _bm25
from cg.bm25 import BM25Index, tokenize

LONG = os.environ.get("CG_LONG") == "1"
LETTERS = (
    "aAbBzZ019__ -.\n\0\x1féÉßİıΣςﬁǅ²ⅧＡｂ１ªºi\u0307\u0301\u0308\u0345\u00ad\u034f\u200d\ufe0f\U000e0100\u0f77"
    "中文日本語カナ゙々〇ｶﾞ한국어ㄱᄀ\u1161हिन्दीก็า๒ชำເງິນျះ្ក\ud800\udfff𠀀😀"
)


@settings(max_examples=3000 if LONG else 300, deadline=None)
@given(st.text() | st.text(LETTERS) | st.text(st.characters(max_codepoint=127), max_size=300))
def test_terms_are_those_of_the_definition(text):
    """Any string at all, lone surrogates included, is cut as written down, on every instruction path."""
    pytest.importorskip("snowballstemmer")
    for analyzer in ("text", "code"):
        want = bm25_oracle.tokenize(text, analyzer)
        for path in _bm25._paths():
            before = _bm25._force_path(path)
            try:
                assert tokenize(text, analyzer) == want
            finally:
                _bm25._force_path(before)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("get_userName2", ["get_username2", "get", "user", "name", "2"]),
        (
            "HTTPServer parseXMLDocument",
            ["httpserver", "http", "server", "parsexmldocument", "parse", "xml", "document"],
        ),
        ("mcp__pipedrive__addPerson", ["mcp__pipedrive__addperson", "mcp", "pipedrive", "add", "person"]),
        ("utf8 base64", ["utf8", "utf", "8", "base64", "base", "64"]),
        ("Word WORD __init__ _", ["word", "word", "__init__", "_"]),
        ("getÜserName", ["getüsername", "get", "üser", "name"]),
        ("ＧｅｔＵｓｅｒ ｶﾞｽ", ["getuser", "get", "user", "ガス"]),
        ("con\u00adfig con\u200dFig", ["config", "config", "con", "fig"]),
        ("İSTANBUL i\u0307stanbul istanbul", ["istanbul"] * 3),
        ("Straße ﬁt", ["strasse", "fit"]),
        ("결제를", ["결제", "제를"]),
        (unicodedata.normalize("NFD", "결제"), ["결제"]),
        ("ชำระ", ["ชํ", "ํา", "าร", "ระ"]),
        ("중國ไทย2๒", ["중國", "國ไ", "ไท", "ทย", "2๒"]),
        ("中\ufe0f文", ["中文"]),
    ],
)
def test_code_is_cut_as_written_here(text, tokens):
    assert tokenize(text, "code") == tokens


def test_text_leaves_stop_words_out_and_stems_the_rest():
    text = "The runs of getUsers and their_Nations are İNTO naïve créations123 Into"
    want = ["run", "getus", "get", "user", "their_nations", "nation", "naïve", "créations123", "créations", "123"]
    assert tokenize(text, "text") == want
    assert tokenize(" ".join(bm25_oracle.STOP_WORDS).upper(), "text") == []


def words_of_the_standard_library():
    folder = Path(sysconfig.get_path("stdlib"))
    paths = sorted(path for path in folder.rglob("*.py") if "site-packages" not in path.parts)
    if not LONG:
        paths = random.Random(1).sample(paths, min(len(paths), 120))
    words = set()
    for path in paths:
        words.update(re.findall("[a-z]+", path.read_bytes().decode("utf-8", "replace").lower()))
    return sorted(words - bm25_oracle.STOP_WORDS)


ENDINGS = (
    "eed eedly ed edly ing ingly sses ied ies s us ss y tional enci anci abli entli izer ization ational ation ator alism"
    " aliti alli fulness ousli ousness iveness iviti biliti bli ogist ogi fulli lessli li alize icate iciti ical ful ness"
    " ative al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize ion e l past"
)
BEGINNINGS = (
    "arsen commun emerg gener inter later organ past univers succ proc exc even cann inn earr herr out d y yy abb add off"
    " egg hopp luxuriat bl iz skis skies sky atlas cosmos bias andes howe news idly gently ugly early only singly"
)


def made_up_words():
    rng = random.Random(2)
    begin = BEGINNINGS.split() + [
        "".join(rng.choices("aeiouybcdlnrstw", k=rng.randint(0, 5))) for _ in range(1000 if LONG else 60)
    ]
    words = {
        first + second + third for first in begin for second in ENDINGS.split() for third in ["", *ENDINGS.split()[:14]]
    }
    return sorted({*words, *BEGINNINGS.split()} - bm25_oracle.STOP_WORDS)


@pytest.mark.parametrize("words", [words_of_the_standard_library, made_up_words])
def test_stems_are_those_of_the_reference(words):
    """Every word gets the stem that the Snowball project's own program gives it."""
    snowballstemmer = pytest.importorskip("snowballstemmer")
    words = words()
    assert tokenize(" ".join(words), "text") == snowballstemmer.stemmer("english").stemWords(words)


TABLE = r"""
use Unicode::UCD qw(prop_invmap);
my ($start, $value) = prop_invmap("NFKC_Casefold");
print Unicode::UCD::UnicodeVersion(), "\n";
for my $i (0 .. $#$start) {
    my $v = $value->[$i];
    print $start->[$i], " ", ref $v ? "l @$v" : $v eq "" ? "l" : $v eq "0" ? "s" : "a $v", "\n";
}
"""


def unicode_table():
    """(version, NFKC_Casefold of every character) as Perl has them from DerivedNormalizationProps.txt."""
    perl = shutil.which("perl")
    done = subprocess.run([perl, "-e", TABLE], capture_output=True, text=True, timeout=60) if perl else None
    if done is None or done.returncode:
        pytest.skip("no Perl with Unicode's tables")
    version, *lines = done.stdout.splitlines()
    starts = [(int(line.split()[0]), line.split()[1:]) for line in lines] + [(0x110000, [])]
    table = []
    for (start, (form, *numbers)), (end, _) in zip(starts, starts[1:], strict=False):
        for code in range(start, end):
            if form == "l":
                table.append("".join(chr(int(number)) for number in numbers))
            else:
                table.append(chr(int(numbers[0]) + code - start) if form == "a" else chr(code))
    return version, table


def test_folding_is_unicodes_own_table():
    """NFKC_Casefold of every character that both versions of Unicode have is the one of Unicode's data files."""
    _, table = unicode_table()
    for code, want in enumerate(table):
        if unicodedata.category(chr(code)) != "Cn":
            assert bm25_oracle.nfkc_casefold(chr(code)) == want, hex(code)


@pytest.mark.parametrize("marks", ["\u0301\u0327\u034f", "\ufe0f", "\u0f77", "\u0307"])
def test_a_long_document_of_marks_ends(marks):
    """Taking the ignorable characters out joins runs of marks; what is left is put in order in linear time."""
    assert len(tokenize("a" + marks * 100_000, "code")) >= 1


@pytest.mark.parametrize("analyzer", ["text", "code"])
def test_answers_are_the_oracles(analyzer):
    pytest.importorskip("snowballstemmer")
    rng = random.Random(5)
    words = ["getUser", "get_user", "users", "the", "running", "한국어", "東京", "naïve", "HTTPServer2", "and", "runs"]
    texts = [" ".join(rng.choices(words, k=rng.choice([0, 1, 5, 40]))) for _ in range(200)]
    index, oracle = BM25Index(texts, analyzer=analyzer), bm25_oracle.Oracle(texts, analyzer=analyzer)
    for _ in range(40):
        query = " ".join(rng.choices([*words, "user", "국어", "京"], k=rng.randint(0, 6)))
        assert index.rank(query).tolist() == oracle.rank(query)
        assert index.search_many([query], 7)[0].tolist() == oracle.search(query, 7)
    assert index.analyzer == analyzer and BM25Index([]).analyzer == "plain"


def test_long_words_and_queries_leave_the_fixed_scratch():
    """Names of thousands of parts, in queries that outgrow every small buffer."""
    name = "".join(f"Part{i}" for i in range(5000))
    index = BM25Index([name, "x", name.lower()], analyzer="code")
    assert index.search(name, 5).docs.tolist() == [0, 2]
    assert index.search(" ".join(f"part{i}" for i in range(9)) + " é" * 4000, 5).docs.tolist() == [0, 2]


@pytest.mark.parametrize("analyzer", ["plain", "text", "code"])
def test_a_file_carries_its_analyser(analyzer, tmp_path):
    index = BM25Index(["getUserName runs", "username"], analyzer=analyzer)
    index.save(tmp_path / "index")
    for mmap in (False, True):
        again = BM25Index.load(tmp_path / "index", mmap=mmap)
        assert again.analyzer == analyzer and again.rank("user run") == index.rank("user run")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [(0, 3, "an analyser that this release does not have"), (4, 2, "made with another version of its analyser")],
)
def test_another_analyser_or_another_version_of_it_is_refused(field, value, message, tmp_path):
    BM25Index(["a"], analyzer="text").save(tmp_path / "index")
    image = bytearray((tmp_path / "index").read_bytes())
    struct.pack_into("<I", image, ANALYZER_AT + field, value)
    struct.pack_into("<Q", image, HEADER_SIZE - 8, checksum(bytes(image[: HEADER_SIZE - 8])))
    (tmp_path / "index").write_bytes(image)
    with pytest.raises(ValueError, match=message):
        BM25Index.load(tmp_path / "index")


FOUND = [
    ("automation_update: changes a job", "update"),
    ("get_user_name(id)", "user name"),
    ("createIssue in a tracker", "create issue"),
    ("bitable_v1_appTableRecord_search", "table record"),
    ("parseXMLDocument", "xml"),
    ("src/pkg/combine.py", "combine"),
    ("utf8 decoder, base64", "utf 8"),
    ("lists payments", "payment"),
    ("检索\ufe0e工具", "检索工具"),
    ("검색엔진을", "엔진"),
    ("พยากรณ์อากาศ", "อากาศ"),
    ("ພະຍາກອນ", "ຍາກອນ"),
    ("អាកាសធាតុ", "ធាតុ"),
    ("ရာသီဥတု", "ဥတု"),
    ("ＡＰＩ 設計", "api"),
    ("con\u00adfig\u00aduration", "configuration"),
]


@pytest.mark.parametrize(("text", "query"), FOUND)
def test_words_that_a_reader_sees_are_found(text, query):
    """Kinds of names and scripts that people reported as never found by word search."""
    assert BM25Index(["weather of tomorrow", text, "a clock"], analyzer="text").search(query, 3).docs.tolist() == [1]


def test_the_whole_name_ranks_before_its_parts():
    index = BM25Index(["create an issue of a tracker", "createIssue in a tracker"], analyzer="text")
    assert index.search("createIssue", 2).docs.tolist() == [1, 0]
