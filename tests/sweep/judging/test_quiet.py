"""The rule quiet: each of its parts by itself, all of it against an oracle, and read message by message as at once."""

import json
import os
import random
from dataclasses import replace
from typing import Any

import pytest
from conversations import call, result, say, transcript, user
from quiet_oracle import Oracle
from recordings import RECORDINGS, whole_histories

from cg.replay.sessions import open_sessions
from cg.sweep.body.transcript import Transcript, read
from cg.sweep.config import load
from cg.sweep.judging.free_judges import by_quiet
from cg.sweep.judging.inventory import eligible
from cg.sweep.judging.paths import named_paths
from cg.sweep.judging.quiet import Quiet, QuietCache, spent
from cg.sweep.judging.run_logs import is_run_log
from cg.sweep.values import Thread

CONFIG = load(preset="quiet")
IS_LONG = os.environ.get("CG_LONG") == "1"
EVERY = 1 if IS_LONG else 8  # of the recorded cold requests


def lines(name: str, n: int = 12) -> str:
    """An output that is large enough, with lines and names that stand nowhere else."""
    return "\n".join(f"{name}_{i} stands on line {i} of the output {name}_text" for i in range(n))


def rest(n: int) -> list:
    """`n` answers about nothing."""
    return [say("on"), user("go")] * n


def dropped(*turns: Any, **settings: Any) -> set[str]:
    """The tool_use ids that the judge drops at the end of a conversation."""
    body = transcript(*turns)
    config = replace(CONFIG, **settings)
    found = eligible(body, Thread(), config, 2.9)[0]
    return {one.text.tool_use_id for one in by_quiet(found, Quiet().read(body), config).drops}


# -- each part of the rule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answers", "goes"), [(39, False), (40, True)])
def test_an_output_goes_when_no_answer_has_used_it_for_quiet_requests(answers: int, goes: bool) -> None:
    """The requests since it arrived are the answers in the body since then."""
    turns = [user("look"), call("t", tool="Grep"), result("t", lines("alpha"))]
    assert dropped(*turns, *rest(answers)) == ({"t"} if goes else set())


@pytest.mark.parametrize("said", ["alpha_3", "alpha_3 stands on line 3 of the output alpha_text"])
def test_an_answer_that_uses_a_name_or_a_line_keeps_an_output(said: str) -> None:
    """One of them is enough."""
    turns = [user("look"), call("t", tool="Grep"), result("t", lines("alpha")), *rest(30), say(said), user("go")]
    assert dropped(*turns, *rest(39)) == set()
    assert dropped(*turns, *rest(40)) == {"t"}


def test_arguments_of_a_call_use_an_output_as_prose_does() -> None:
    """What an edit writes is said by the model."""
    turns = [user("look"), call("t", tool="Grep"), result("t", lines("alpha")), *rest(30)]
    turns += [call("u", tool="Bash", command="grep alpha_3 ."), result("u", "none")]
    assert dropped(*turns, *rest(30)) == set()


def test_a_second_use_of_what_the_model_wrote_out_itself_counts_for_nobody() -> None:
    """The answer carries it last from then on."""
    turns = [user("look"), call("t", tool="Grep"), result("t", lines("alpha")), say("alpha_3"), user("go"), *rest(30)]
    assert dropped(*turns, say("alpha_3"), user("go"), *rest(9)) == {"t"}


@pytest.mark.parametrize(("others", "goes"), [(2, False), (3, True)])
def test_a_name_in_more_than_three_outputs_is_used_from_none_of_them(others: int, goes: bool) -> None:
    """It tells them apart no more."""
    turns = [t for i in range(others) for t in (call(f"o{i}", tool="Grep"), result(f"o{i}", "common_name"))]
    turns += [call("t", tool="Grep"), result("t", lines("alpha") + "\ncommon_name")]
    used = [user("look"), *turns, *rest(30), say("common_name"), user("go"), *rest(9)]
    assert dropped(*used) == ({"t"} if goes else set())


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "str_replace_based_edit_tool", "NotebookEdit"])
def test_a_call_that_reads_or_writes_its_path_keeps_an_output(tool: str) -> None:
    """Whatever that call brings."""
    turns = [user("look"), call("t", file_path="a/b.c"), result("t", lines("alpha")), *rest(30)]
    touched = [call("u", tool=tool, path="a/b.c"), result("u", "done")]
    assert dropped(*turns, *touched, *rest(39)) == set()
    assert dropped(*turns, *touched, *rest(40)) == {"t"}
    assert dropped(*turns, call("u", tool=tool, path="a/b.d"), result("u", "done"), *rest(9)) == {"t"}
    assert dropped(*turns, call("u", tool="Grep", path="a/b.c"), result("u", "done"), *rest(9)) == {"t"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"filePath": "./a/b.c"}),
        ("Read", {"file_path": "/w/a/b.c"}),
        ("Read", {"file_path": "C:\\w\\A\\b.c"}),
        ("mcp__fs__read_file", {"absolute_path": "/w/x/../a//b.c"}),
        ("MultiEdit", {"edits": [{"path": "b.c"}]}),
        ("read_many_files", {"paths": ["z", "a/b.c"]}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a/b.c\n@@"}),
    ],
)
def test_a_path_is_one_path_however_it_is_spelled(tool: str, arguments: dict[str, Any]) -> None:
    """Of the two calls either may name it so."""
    plain, spelled = call("t", file_path="a/b.c"), call("t", tool=tool, **arguments)
    for first, second in ((plain, spelled), (spelled, plain)):
        turns = [user("look"), first, result("t", lines("alpha")), *rest(30)]
        second = second[0], {**second[1], "id": "u"}
        assert dropped(*turns, second, result("u", "done"), *rest(39)) == set()
        assert dropped(*turns, second, result("u", "done"), *rest(40)) == {"t"}


@pytest.mark.parametrize("path", ["a/c.c", "/w/xa/b.c", "/w/a/b.cc", "a/b.c/d", "/a", "a", "."])
def test_another_path_is_another(path: str) -> None:
    """Whole names count, from the end on."""
    turns = [user("look"), call("t", file_path="a/b.c"), result("t", lines("alpha")), *rest(30)]
    assert dropped(*turns, call("u", file_path=path), result("u", "done"), *rest(9)) == {"t"}


def test_a_copy_supersedes_at_once() -> None:
    """The older of two outputs that say the same goes with the next answer."""
    turns = [user("look"), call("t1"), result("t1", lines("alpha")), call("t2"), result("t2", lines("alpha"))]
    assert dropped(*turns, say("on"), user("go")) == {"t1"}


@pytest.mark.parametrize(("left", "goes"), [("", True), ("only_one", True), ("first_name second_name", False)])
def test_an_output_stays_while_two_of_its_names_are_its_own(left: str, goes: bool) -> None:
    """One name is chance."""
    turns = [user("look"), call("t1"), result("t1", lines("alpha") + "\n" + left), call("t2")]
    turns += [result("t2", lines("alpha")), say("on"), user("go")]
    assert dropped(*turns) == ({"t1"} if goes else set())


def test_an_output_stays_while_one_of_its_lines_is_its_own() -> None:
    """Lines do not come back by chance."""
    turns = [user("look"), call("t1"), result("t1", lines("alpha", 13)), call("t2"), result("t2", lines("alpha"))]
    assert dropped(*turns, say("alpha_12"), user("go")) == set()


@pytest.mark.parametrize("newer", [user(lines("alpha")), say(lines("alpha"))])
def test_user_text_and_answers_supersede_too(newer: Any) -> None:
    """Whoever says it, it is said."""
    turns = [user("look"), call("t1"), result("t1", lines("alpha")), say("on"), newer, say("on"), user("and now")]
    assert dropped(*turns) == {"t1"}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_of_several_copies_the_newest_stays(n: int) -> None:
    """From the fourth on all that they say is common, and yet the last does not go with the others."""
    copies = [turn for i in range(n) for turn in (call(f"t{i}"), result(f"t{i}", lines("alpha")))]
    assert dropped(user("look"), *copies, say("on"), user("go")) == {f"t{i}" for i in range(n - 1)}


def test_an_output_that_holds_nothing_recognisable_is_never_superseded() -> None:
    """Nothing newer can be known to say it again."""
    turns = [user("look"), call("t", tool="Grep"), result("t", "1 2 3\n" * 200)]
    assert dropped(*turns, *rest(39)) == set()
    assert dropped(*turns, *rest(40)) == {"t"}


ROWS = "\n".join(f"{i} {i * i % 97}" for i in range(400))
PROSE = (
    "\u8fd9\u4e00\u6bb5\u8bf4\u660e\u914d\u7f6e\u5982\u4f55\u52a0\u8f7d\u3002\n\u6bcf\u4e00\u884c\u90fd\u4e0d\u540c\u3002\n"
    * 20
)
MINIFIED = "[" + ", ".join(f'{{"row": {i}, "of": {i * i % 97}}}' for i in range(200)) + "]"


@pytest.mark.parametrize(
    "text",
    [
        f"alpha_1 alpha_2\n{ROWS}",
        f"alpha_1 {PROSE}",
        f"{MINIFIED}\nalpha_1",
        "alpha_1\n" + "\n".join(f"on|{i % 7}" for i in range(200)),
        "alpha_1\n" + "x = 1\n" * 200,
        "alpha_1\n" + "\u0416" * 25_000,
        lines("alpha") + "\nport 80",
        lines("alpha", 6) + "\n" + "\n".join(f"{i}" for i in range(200)),
        "first words " * 40 + "17\n" + lines("alpha"),
    ],
)
def test_an_output_of_which_little_is_recognisable_is_not_superseded_by_that_little(text: str) -> None:
    """Its other lines have not been said again; the same text is, and then the older goes."""
    turns = [user("look"), call("t", tool="Grep"), result("t", text), say("on"), user("go")]
    told = text[:400] + "\n" + lines("alpha") + "\nalpha_2"
    assert dropped(*turns, say(told), user("go")) == set()
    assert dropped(*turns, call("u", tool="Grep"), result("u", told), say("on"), user("go")) == set()
    assert dropped(*turns, call("u", tool="Grep"), result("u", text), say("on"), user("go")) == {"t"}


def test_short_lines_of_an_output_have_to_be_said_again_too() -> None:
    """By whoever says the rest; their numbers do not count."""
    turns = [user("look"), call("t"), result("t", f"{lines('alpha')}\n  13\u2192x = 7")]
    assert dropped(*turns, say(lines("alpha")), user("go")) == set()
    assert dropped(*turns, say(lines("alpha")), user("x = 7")) == {"t"}


def failed(tool_use_id: str, text: str) -> Any:
    role, block = result(tool_use_id, text)
    return role, {**block, "is_error": True}


@pytest.mark.parametrize(
    ("turn", "made"),
    [
        (call("t", tool="Bash", command="pytest -q"), result("t", lines("alpha"))),
        (call("t", tool="TodoWrite"), result("t", lines("alpha"))),
        (call("t", tool="Read", file_path="a"), failed("t", lines("alpha"))),
    ],
)
def test_logs_of_what_ran_and_failures_go_after_run_log_requests(turn: Any, made: Any) -> None:
    """A touch of the path does not count for them, a use does."""
    turns = [user("look"), turn, made]
    assert dropped(*turns, *rest(9)) == set()
    assert dropped(*turns, *rest(10)) == {"t"}
    assert dropped(*turns, *rest(8), call("u", file_path="a"), result("u", "x"), *rest(1)) == {"t"}
    assert dropped(*turns, *rest(8), say("alpha_2"), user("go"), *rest(9)) == set()
    assert dropped(*turns, *rest(10), run_log_requests=11) == set()


def test_a_line_without_identifiers_names_its_output() -> None:
    """People paste what they mean."""
    line = "plain words that say one thing only"
    turns = [user("look"), call("t", tool="Grep"), result("t", f"{lines('alpha')}\n{line}"), *rest(40), say("on")]
    assert dropped(*turns, user(f"what is\n  {line}\n?")) == set()
    assert dropped(*turns, user("what is plain")) == {"t"}


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("look at b.c again", True),
        ("is a/b.c right?", True),
        ("in b.c.", True),
        ("alpha_3 and alpha_4", True),
        ("alpha_3 stands on line 3 of the output alpha_text", True),
        ("alpha_3", False),
        ("ab.c and b.cc", False),
        ("go on", False),
    ],
)
def test_what_the_newest_task_names_stays_at_this_request(text: str, stays: bool) -> None:
    """Its file, a line, or two names: `rescue`, counted, and only the newest text."""
    turns = [user("look"), call("t", tool="Grep", path="a/b.c"), result("t", lines("alpha")), *rest(40)]
    assert dropped(*turns, say("on"), user(text)) == (set() if stays else {"t"})
    assert dropped(*turns, say("on"), user(text), rescue=False) == {"t"}
    assert dropped(*turns, say("on"), user(text), say("on"), user("never mind")) == {"t"}


@pytest.mark.parametrize("path", ["src\\win\\Thing.py", "src/win/thing.py", "C:\\w\\THING.PY", "re\u0301/thing.py:12"])
@pytest.mark.parametrize("text", ["look at thing.py", "Thing.py?", "in src\\win\\thing.py", "`win/thing.py`"])
def test_a_file_is_named_whatever_slashes_and_letters_its_path_has(path: str, text: str) -> None:
    """By its last part, in any case."""
    turns = [user("look"), call("t", filePath=path), result("t", lines("alpha")), *rest(40), say("on")]
    assert dropped(*turns, user(text)) == set()
    assert dropped(*turns, user("look at things.py and a-thing.py")) == {"t"}


REMINDER = "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>"


@pytest.mark.parametrize(
    "later",
    [
        [call("u", tool="Bash"), result("u", "x"), user(REMINDER)],
        [call("u", tool="Bash"), user("[a note of a hook]"), result("u", "x")],
        [
            call("u", tool="Bash"),
            result("u", "x"),
            user(REMINDER),
            call("v"),
            result("v", "x"),
            user("one more"),
            say("so"),
        ],
        [call("u", tool="Bash"), failed("u", "interrupted"), user("[Request interrupted by user]")],
        [say("done"), user(REMINDER)],
        [say("done"), user(f"{REMINDER}\n{REMINDER}"), user("<command-name>/clear</command-name>")],
        [say("done"), ("system", {"type": "text", "text": "a note"})],
        [call("u", tool="Bash"), ("user", {**result("u", "x")[1], "content": []}), user("a note")],
    ],
)
def test_what_was_asked_stays_in_force_until_something_else_is_asked(later: list) -> None:
    """Texts beside results and texts that the client wrote alone take nobody's place."""
    turns = [user("look"), call("t", tool="Grep", path="a/b.c"), result("t", lines("alpha")), *rest(40), say("on")]
    assert dropped(*turns, user("look at b.c again"), *later) == set()
    assert dropped(*turns, user(f"{REMINDER} look at b.c again"), *later) == set()
    assert dropped(*turns, user("look at b.c again"), *later, say("done"), user(f"{REMINDER} never mind")) == {"t"}
    assert dropped(*turns, user("never mind"), *later) == {"t"}


# -- the oracle ----------------------------------------------------------------------------------------------------------


def check(quiet: Quiet, messages: list[dict[str, Any]], body: Transcript) -> tuple[int, int]:
    """The rule and the oracle agree on every output, whatever its size; how many are spent, and of them named."""
    oracle = Oracle(messages, is_run_log, named_paths)
    n_spent = n_named = 0
    for text in body.tool_texts:
        of = text.tool_use_id, text.block
        found = spent(quiet, text.identity, 40, 10), quiet.is_named(text.identity)
        assert found == (oracle.is_spent(of), oracle.is_named(of)), of
        n_spent += found[0]
        n_named += all(found)
    return n_spent, n_named


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_it_equals_the_oracle_on_recorded_cold_requests(path: Any) -> None:
    """At five minutes, where more prefixes are lost than at any other lifetime; CG_LONG=1 looks at all of them."""
    (session,) = open_sessions(path)
    cache, before, n = QuietCache(), None, 0
    for step, messages in whole_histories(session.steps()):
        is_lost = before is not None and (step.opens or step.at - before > 300)
        before = step.at
        n += is_lost
        if is_lost and n % EVERY == 0:
            body = read(b'{"messages":[%b]}' % b",".join(messages))
            with cache.reading(body) as quiet:
                check(quiet, [json.loads(message) for message in messages], body)


NAMES = [f"{name}_{part}" for name in ("fetch", "store", "parse") for part in ("rows", "page", "key_4", "utf8")]
SENTENCES = [f"the line that says {name} and no more" for name in NAMES]


SPELLED = ["src/{}.py", "./src/{}.py", "/w/src/{}.py", "src\\{}.PY", "{}.py", "/v/src/{}.py"]


def words(rng: random.Random, most: int) -> str:
    return "\n".join(rng.sample(NAMES + SENTENCES, rng.randrange(most + 1)))


def turns_of(rng: random.Random, first: int, n: int) -> list:
    """Calls with results, some failed, some of one path, and prose that repeats some of it."""
    turns = []
    for i in range(first, first + n):
        turns += [say(f"so {words(rng, 2)}")] if rng.random() < 0.5 else []
        turns.append(
            call(
                f"t{i}",
                rng.choice(["Read", "Bash", "Edit"]),
                path=rng.choice(SPELLED).format(rng.randrange(3)),
                command="make",
            )
        )
        made = result(f"t{i}", *(words(rng, 5) for _ in range(rng.choice([1, 1, 2]))))
        turns.append((made[0], {**made[1], "is_error": True}) if rng.random() < 0.1 else made)
        turns += [say("done")] if rng.random() < 0.3 else []
        turns += [user(words(rng, 2) + rng.choice(["", " 1.py", REMINDER]))] if rng.random() < 0.3 else []
        turns += [user(REMINDER)] if rng.random() < 0.1 else []
    return turns


def altered(rng: random.Random, turns: list) -> list:
    """Shorter, edited in the middle, or with a piece of the middle gone, as a client does."""
    at = rng.randrange(1, len(turns) + 1)
    match rng.randrange(4):
        case 0:
            return turns[:at]
        case 1:
            return [*turns[: at - 1], user(words(rng, 3)), *turns[at:]]
        case 2:
            return [turns[0], user("what came before, in short"), *turns[at:]]
    return turns


@pytest.mark.parametrize("seed", range(120 if IS_LONG else 40))
def test_read_as_it_grows_it_says_what_it_says_at_once_and_what_the_oracle_says(seed: int) -> None:
    """Conversations that grow, are rewound, edited and compacted."""
    rng = random.Random(seed)
    cache, turns = QuietCache(), [user("look"), *turns_of(rng, 0, 3)]
    for step in range(1, 8):
        body = transcript(*turns)
        messages = json.loads(body.body)["messages"]
        oracle, at_once = Oracle(messages, is_run_log, named_paths), Quiet().read(body)
        with cache.reading(body) as grown:
            for text in body.tool_texts:
                one, of = text.identity, (text.tool_use_id, text.block)
                for age in (1, 3, 10):
                    assert spent(grown, one, age, 2) == spent(at_once, one, age, 2) == oracle.is_spent(of, age, 2)
            check(grown, messages, body)
        turns = altered(rng, turns) + turns_of(rng, 100 * step, rng.randrange(8))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The messages that are read while the test runs."""
    found: list[int] = []
    take = Quiet._take
    monkeypatch.setattr(Quiet, "_take", lambda self, body, message: found.append(message) or take(self, body, message))
    return found


def test_a_turn_reads_only_what_it_adds(taken: list[int]) -> None:
    """A body that goes on from one that was judged costs its new messages, an equal one none."""
    rng, cache = random.Random(1), QuietCache()
    turns = [user("look"), *turns_of(rng, 0, 50), user("and")]
    longer = transcript(*turns, say("on"), user("go"))
    for body in (transcript(*turns), longer, longer):
        with cache.reading(body):
            pass
    assert taken == list(range(longer.n_messages))


def test_two_branches_of_one_beginning_are_each_read_once_and_then_as_they_grow(taken: list[int]) -> None:
    """A sub-agent beside its parent, say: each of the two is found by its own end."""
    cache, bodies = QuietCache(), []
    for name in ("one", "two"):
        bodies.append([user("look"), say("on"), user(name)])
    for longer in ([], [say("more"), user("go")]):
        for turns in bodies:
            with cache.reading(transcript(*turns, *longer)):
                pass
    assert taken == [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]


def test_what_is_kept_read_is_bounded(taken: list[int]) -> None:
    """Past the bound the longest unused conversation is read again from its start."""
    bodies = [transcript(user(name * 500), say("on"), user("go")) for name in ("a", "b", "c")]
    cache = QuietCache(2000)
    for body in (*bodies, bodies[2], bodies[0]):
        with cache.reading(body):
            pass
    assert taken == [0, 1, 2] * 4


def test_two_readers_at_once_do_not_share_what_they_read_on() -> None:
    """The second reads from the start; the judgement of the first does not move under it."""
    cache = QuietCache()
    body = transcript(user("look"), call("t"), result("t", lines("alpha")), say("on"), user("go"))
    with cache.reading(body):
        pass
    with cache.reading(body) as first, cache.reading(body) as second:
        assert first is not second
