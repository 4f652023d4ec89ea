"""BM25Index, Hits and tokenize against the definition written out in tests/reference/bm25_oracle.py."""

import gc
import inspect
import math
import os
import pickle
import random
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import bm25_oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cg
from cg import _bm25
from cg.bm25 import BM25Index, Hits, tokenize

LONG = os.environ.get("CG_LONG") == "1"
SANITIZED = os.environ.get("HYPOTHESIS_PROFILE") == "sanitize"  # many times slower: a few seeds of each kind
PATHS = _bm25._paths()
LETTERS = "aAbZ09_ -.,\n\0éñßİıΣςﬁ中文日本語カナ゙々〇한국어हिन्दीก็ا́̈\u3099\ud800\udfff𠀀😀"


@pytest.fixture(params=PATHS)
def path(request):
    """Each instruction path that this machine can run."""
    before = _bm25._force_path(request.param)
    yield request.param
    _bm25._force_path(before)


def words_of(rng, n_words, skew):
    """A word drawn from w0, w1, ... with a long tail."""
    return f"w{min(n_words - 1, int(rng.paretovariate(skew)) - 1)}"


def collection(rng, n_docs, n_words, skew=0.8, lengths=(0, 1, 5, 12, 30)):
    return [" ".join(words_of(rng, n_words, skew) for _ in range(rng.choice(lengths))) for _ in range(n_docs)]


@settings(max_examples=3000 if LONG else 300, deadline=None)
@given(st.text() | st.text(LETTERS) | st.text(st.characters(max_codepoint=127), max_size=300))
def test_tokens_are_those_of_the_definition(text):
    """Any string at all, lone surrogates included, gives the tokens that the specification gives."""
    assert tokenize(text) == bm25_oracle.tokenize(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("The CAT_1's", ["the", "cat_1", "s"]),
        ("한국어 검색", ["한국어", "검색"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東京都へ", ["東京", "京都", "都へ"]),
        ("字", ["字"]),
        ("abc東京def", ["abc", "東京", "def"]),
        ("İstanbul", ["i̇stanbul"]),
        ("Straße ﬁt", ["strasse", "fit"]),
        ("e\u0301te\u0301", ["été"]),
        ("中\u0301文", ["中文"]),
        ("字\ufe0f\u0301", ["字"]),
        ("中\ufe0f文\U000e0100字", ["中文", "文字"]),
        ("ナ\u3099カ\u0301a", ["ナカ", "a"]),
        ("a😀b", ["a", "b"]),
        ("x\ud800y", ["x", "y"]),
    ],
)
def test_a_text_is_cut_as_written_here(text, tokens, path):
    assert tokenize(text) == tokens


def test_ascii_of_every_length_is_cut_alike_on_every_path(path):
    """Block borders of the fast paths change nothing."""
    rng = random.Random(3)
    for n in range(260):
        text = "".join(chr(rng.choice([32, 45, *range(48, 58), *range(60, 128)])) for _ in range(n))
        assert tokenize(text) == bm25_oracle.tokenize(text)


def test_a_score_is_the_formula_by_hand():
    """Two documents, one term: idf = ln(1 + 1.5 / 1.5), norm = 1.2 * (0.25 + 0.75 * 2 / 1.5)."""
    index = BM25Index(["apple pie", "pear"])
    norm = 1.2 * (1.0 - 0.75 + 0.75 * 2 / 1.5)
    assert index.search("apple", 5).tolist() == [(0, math.log(1.0 + 1.5 / 1.5) * (1.2 + 1.0) * 1 / (1 + norm))]


MARKS = [chr(c) for c in range(0x300, 0x30000) if unicodedata.combining(chr(c))] + ["\u0f73", "\u0f75", "\u0f81"]
STARTERS = ["a", "é", "\u0344", "한", "\u1100\u1161", "カ", "か", "ཀ", "\u0f71", "中", "\ud800", " ", "Ǆ", "\u0cc6"]


@pytest.mark.parametrize("seed", range(20))
def test_long_runs_of_combining_marks_give_the_tokens_of_the_definition(seed):
    rng = random.Random(seed)
    few = rng.sample(MARKS, rng.choice([2, 5, 60]))
    runs = ("".join(rng.choices(few, k=rng.choice([1, 63, 64, 65, 66, 300]))) for _ in range(6))
    text = "".join(rng.choice(STARTERS) + run for run in runs) + rng.choice(STARTERS)
    assert tokenize(text) == bm25_oracle.tokenize(text)


def test_a_document_of_marks_out_of_order_ends():
    # Sorted by insertion, as the interpreter's normaliser does it, this would take most of an hour.
    assert len(tokenize("a" + "\u0301\u0327" * 300_000)) == 1


@pytest.mark.parametrize("seed", range(40 if LONG else 1 if SANITIZED else 6))
def test_every_answer_is_the_oracles(seed, path):
    """search, rank, scores and search_many are equal to the definition, bit for bit."""
    rng = random.Random(seed)
    for n_docs in (0, 1, 3, 16, 64, 65, 200, 600):
        texts = collection(rng, n_docs, rng.choice([3, 30, 300]))
        if n_docs and seed % 3 == 0:
            texts[0] += " w0" * 700
        k1, b = rng.choice([0, 0.5, 1.2, 1.2, 1000]), rng.choice([0, 0.5, 0.75, 1])
        index, oracle = BM25Index(texts, k1=k1, b=b), bm25_oracle.Oracle(texts, k1, b)
        for n_words in (0, 1, 2, 5, 70):
            query = " ".join(words_of(rng, 300, 0.5) for _ in range(n_words))
            want = oracle.rank(query)
            positive = [hit for hit in want if hit[1] > 0]
            assert index.rank(query).tolist() == want
            assert index.scores(query).tolist() == oracle.scores(query)
            for k in (0, 1, 10, 100, n_docs, 10**9):
                assert index.search(query, k).tolist() == positive[:k]
            assert [hits.tolist() for hits in index.search_many([query] * 3, 4, threads=2)] == [positive[:4]] * 3


def pruned_cases(seed):
    """(index, query) pairs in which bounds have something to skip: long lists, columns, ties, windows."""
    rng = random.Random(seed)
    n_docs = (
        rng.choice([600, 1500, 4000, 20_000, 70_000]) if LONG else {3: 70_000}.get(seed, [600, 1500, 4000][seed % 3])
    )
    n_words = rng.choice([5, 50, 1000])
    texts = collection(rng, n_docs, n_words, rng.choice([0.4, 0.8, 1.2]), (0, 1, 4, 8, 16))
    if seed % 5 == 0:
        texts = (texts[:7] * n_docs)[:n_docs]
    if seed % 3 == 0:
        texts = [text + " w0" * rng.randrange(400) if rng.random() < 0.02 else text for text in texts]
    index = BM25Index(texts, k1=rng.choice([0, 0.5, 1.2, 1.2, 1000]), b=rng.choice([0, 0.75, 0.75, 1]))
    for _ in range(250 if LONG else 30):
        yield index, " ".join(words_of(rng, n_words, rng.choice([0.2, 0.5, 1.0])) for _ in range(rng.randint(1, 12)))


@pytest.mark.parametrize("seed", range(40 if LONG else 2 if SANITIZED else 8))
def test_skipping_changes_nothing(seed, path):
    """The top k is the head of the full ranking, whatever bounds allowed to leave out."""
    for index, query in pruned_cases(seed):
        positive = [hit for hit in index.rank(query).tolist() if hit[1] > 0]
        for k in (1, 3, 10, 50, 100, 101):
            assert index.search(query, k).tolist() == positive[:k]


@pytest.mark.parametrize("n_docs", [1500, 9000])
def test_common_words_beside_rare_ones_change_the_scores(n_docs, path):
    """Where a rare word decides which documents are read, a column still gives its shares, in the order of terms."""
    rng = random.Random(n_docs)
    texts = [
        " ".join(["common"] * rng.choice([0, 1, 2, 9]) + [f"rare{rng.randrange(n_docs // 80)}"] * rng.choice([1, 1, 3]))
        for _ in range(n_docs)
    ]
    index = BM25Index(texts)
    for query in ("rare1", "common rare1", "rare1 rare2 common", "common rare3 zzz"):
        positive = [hit for hit in index.rank(query).tolist() if hit[1] > 0]
        for k in (1, 9, 10, 11, 40):
            assert _bm25._is_skipping(index, query, k) or k > 10  # the 11th best share of a word is not known
            assert index.search(query, k).tolist() == positive[:k]


def test_eight_threads_get_the_same_answers():
    """An index is immutable: any number of threads may ask it."""
    rng = random.Random(8)
    texts = collection(rng, 5000, 500)
    queries = [" ".join(words_of(rng, 500, 0.5) for _ in range(4)) for _ in range(200)]
    index = BM25Index(texts)
    want = [index.search(query, 10) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: [index.search(query, 10) for query in queries], range(16)):
            assert got == want
    assert index.search_many(queries, 10, threads=8) == want


def test_a_repeated_query_term_counts_once():
    index = BM25Index(["a b", "b c", "c d"])
    assert index.search("a a a b", 5) == index.search("b a", 5)


def test_ties_break_by_position():
    assert [doc for doc, _ in BM25Index(["x"] * 700).search("x", 650)] == list(range(650))


def test_hits_are_a_sequence_and_two_buffers():
    numpy = pytest.importorskip("numpy")
    hits = BM25Index([f"x {'y ' * i}" for i in range(40)]).search("x", 30)
    assert len(hits) == 30 and list(hits) == hits.tolist() and hits[-1] == hits.tolist()[-1]
    docs, scores = numpy.asarray(hits.docs), numpy.asarray(hits.scores)
    assert docs.dtype == numpy.uint32 and scores.dtype == numpy.float64
    assert list(zip(docs.tolist(), scores.tolist(), strict=True)) == hits.tolist()
    del hits
    gc.collect()
    assert docs[0] == 0 and hits_of_nothing() == []
    with pytest.raises(ValueError):
        docs[0] = 1


def test_a_hit_is_found_by_its_document():
    hits = BM25Index(["a", "b a a", "a a"]).rank("a")
    assert [hits.docs[hits.index(doc)] for doc in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="document 3 is no hit"):
        hits.index(3)
    with pytest.raises(OverflowError):
        hits.index(-1)


@pytest.mark.parametrize("seed", range(3))
def test_the_shares_of_terms_add_up_to_the_score(seed):
    """explain: known terms in vocabulary order, whose shares added in that order are the score to the last bit."""
    rng = random.Random(seed)
    index = BM25Index([*collection(rng, 300, 40), "naïve w0 w0"])
    query = " ".join(words_of(rng, 60, 0.5) for _ in range(9)) + " naïve unknown"
    shares = index.explain(query)
    assert [term for term, _ in shares] == sorted({term for term, _ in shares}, key=str.encode)
    scores = [0.0] * index.n_docs
    for term, hits in shares:
        assert hits.tolist() == [hit for hit in index.rank(term).tolist() if hit[1] > 0]
        for doc, share in hits:
            scores[doc] += share
    assert scores == index.scores(query).tolist() and ("naïve" in dict(shares)) and index.explain("zz") == []


def test_a_slice_of_hits_is_hits():
    hits = BM25Index([f"x {'y ' * i}" for i in range(40)]).rank("x")
    for cut in (slice(3), slice(None), slice(-3, None), slice(30, 2, -3), slice(7, 3), slice(0, 10**30, 2)):
        assert isinstance(hits[cut], Hits) and hits[cut].tolist() == hits.tolist()[cut]
    with pytest.raises(TypeError):
        hits["x"]


def hits_of_nothing():
    hits = BM25Index(["x"]).search("y", 3)
    assert len(hits) == 0 and bytes(hits.docs) == b""
    with pytest.raises(IndexError, match="hit 0 of 0"):
        hits[0]
    return hits.tolist()


def test_hits_and_index_survive_pickling():
    index = BM25Index(["a b", "b", ""])
    again = pickle.loads(pickle.dumps(index))
    assert again.rank("a b") == index.rank("a b") and again.nbytes == index.nbytes
    hits = index.rank("b")
    assert isinstance(pickle.loads(pickle.dumps(hits)), Hits) and pickle.loads(pickle.dumps(hits)) == hits


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"texts": "one text"}, TypeError, "not one str"),
        ({"texts": ["a", 3]}, TypeError, "text 1 must be a str, not int"),
        ({"texts": 5}, TypeError, "not iterable"),
        ({"texts": {"id": "a text"}}, TypeError, r"not a dict: give its values\(\)"),
        ({"texts": [], "analyzer": "english"}, ValueError, "analyzer = 'english' is none of plain, text, code"),
        ({"texts": [], "analyzer": None}, TypeError, "analyzer must be a str, not NoneType"),
        ({"texts": [], "k1": float("nan")}, ValueError, "k1 = nan is not in 0..1000"),
        ({"texts": [], "k1": 1000.1}, ValueError, "k1 = 1000.1 is not in 0..1000"),
        ({"texts": [], "k1": -0.1}, ValueError, "k1 = -0.1"),
        ({"texts": [], "b": 1.01}, ValueError, "b = 1.01 is not in 0..1"),
        ({"texts": [], "b": float("inf")}, ValueError, "b = inf"),
        ({"texts": [], "b": "0.5"}, TypeError, "b must be a number"),
    ],
)
def test_a_wrong_argument_is_named_with_its_limit(arguments, error, message):
    with pytest.raises(error, match=message):
        BM25Index(**arguments)


def test_a_wrong_query_is_named_with_its_limit():
    index = BM25Index(["a"])
    for wrong, error in ((-1, ValueError), (1.5, TypeError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="k "):
            index.search("a", wrong)
    for wrong in (None, 3, b"a"):
        with pytest.raises(TypeError):
            index.search(wrong, 1)
        with pytest.raises(TypeError, match="query 1 must be a str"):
            index.search_many(["a", wrong], 1)
    for wrong in (0, 257):
        with pytest.raises(ValueError, match="not in 1..256"):
            index.search_many(["a"], 1, threads=wrong)


def test_any_integer_is_a_k():
    """Integers of numpy come from every computation there is."""
    numpy = pytest.importorskip("numpy")
    index = BM25Index(["a", "a b", "b"])
    for k in (numpy.int64(2), numpy.uint8(2), numpy.int64(2**62)):
        assert index.search("a", k) == index.search("a", int(k))
        assert index.search_many(["a"], k) == [index.search("a", int(k))]
    with pytest.raises(ValueError, match="k = -1 is below 0"):
        index.search("a", numpy.int64(-1))


def test_the_signature_shows_the_defaults():
    assert str(inspect.signature(BM25Index)) == "(texts, *, analyzer='plain', k1=1.2, b=0.75, progress=None)"
    assert BM25Index.__doc__.startswith("A BM25 index over texts")
    for name, parameter in inspect.signature(BM25Index).parameters.items():
        if name in ("k1", "b", "analyzer"):
            assert getattr(BM25Index([]), name) == parameter.default


def test_building_reads_any_iterable_once_and_reports_progress():
    seen = []
    index = BM25Index((f"doc {i}" for i in range(1000)), progress=seen.append)
    assert index.n_docs == len(index) == 1000 and index.n_terms == 1001
    assert seen == sorted(seen) and seen[-1] == 1000 and len(seen) > 2


def test_an_error_of_the_iterable_or_of_progress_ends_the_building():
    def texts():
        yield "a"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        BM25Index(texts())
    with pytest.raises(ZeroDivisionError):
        BM25Index(["a"], progress=lambda n: n // 0)


@pytest.mark.skipif(sys.platform == "win32", reason="sends itself a POSIX signal")
def test_building_can_be_interrupted():
    """Ctrl-C stops a long build with KeyboardInterrupt."""
    code = (
        "import os, signal, itertools\nfrom cg.bm25 import BM25Index\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job begins with it ignored
        "def texts():\n"
        "    for i in itertools.count():\n"
        "        if i == 500: os.kill(os.getpid(), signal.SIGINT)\n"
        "        yield 'a'\n"
        "try: BM25Index(texts())\nexcept KeyboardInterrupt: print('stopped')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "stopped\n"


def test_importing_cg_loads_neither_the_core_nor_numpy():
    code = "import sys, cg; print('cg._bm25' in sys.modules, 'numpy' in sys.modules); cg.BM25Index; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False", "False"]
    assert cg.BM25Index is BM25Index


def test_a_query_of_any_length_is_answered():
    """Long queries leave the fixed-size scratch, repeated and unknown terms included."""
    texts = [f"t{i}" for i in range(300)]
    index = BM25Index(texts)
    assert len(index.search(" ".join(texts) + " x" * 5000, 1000)) == 300
    assert index.search("t1 " * 100_000, 5).tolist() == index.search("t1", 5).tolist()
    assert index.search("t1 é " * 5000, 5).tolist() == index.search("t1", 5).tolist()


def test_a_term_of_any_size_is_kept_whole():
    big = "x" * 100_000
    assert BM25Index([big, big + "y", "é" + big]).search("É" + big, 5).docs.tolist() == [2]
