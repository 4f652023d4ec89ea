"""The rules that stand between a reply and a wrong drop, one test each."""

from verdict_replies import drop, drops, keep

from cg.verdicts import Action, Counter, Status, decode


def test_the_last_array_answers() -> None:
    """A final array that leaves a label out takes back the draft's drop."""
    assert drops(f"[{drop(0)},{drop(1)}]\nNo:\n[{drop(0)}]") == (0,)


def test_a_keep_anywhere_vetoes_a_drop() -> None:
    """Lone objects, earlier arrays and objects behind a break can only object."""
    assert drops(f"[{keep(1)}]\n[{drop(0)},{drop(1)}]") == (0,)
    assert drops(f"{keep(1)} is sure.\n[{drop(0)},{drop(1)}]") == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] as {{"note":{keep(1)}}}') == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] as {{"note":{keep(1)} and so on') == (0,)
    assert drops(f'[{drop(0)},{drop(1)}] then [{{"i":5,"quote":"a "b"}}] {keep(1)}') == (0,)


def test_a_refused_drop_vetoes_as_well() -> None:
    """A drop that names an obligation objects to the same label elsewhere."""
    refused = drop(1, needed_by="a")
    assert drops(f"[{refused}]\n[{drop(0)},{drop(1)}]") == (0,)


def test_labels_counted_from_one_drop_nothing() -> None:
    """max + 1 named and min not: every label is off by one."""
    found = decode(f"[{drop(1)},{drop(3)}]", [0, 1, 2])
    assert (found.drops, found.counters[Counter.LABEL_SHIFT]) == ((), 1)
    assert drops(f"[{drop(0)},{drop(3)}]") == (0,)


def test_a_template_neither_answers_nor_objects() -> None:
    """An array or a run that breaks off in an ellipsis shows the form only."""
    for dots in ("...", "\u2026", "<more>"):
        assert decode(f"[{drop(0)}, {dots}]", [0, 1]).status is Status.UNPARSEABLE
        assert drops(f"[{keep(0)}, {dots}]\n[{drop(0)}]") == (0,)


def test_nothing_inside_reasoning_is_read() -> None:
    """Closed, never opened or never closed: a draft in reasoning is no answer and no objection."""
    assert drops(f"<think>[{keep(0)}]</think>[{drop(0)}]") == (0,)
    assert drops(f"[{keep(0)}]</thinking>[{drop(0)}]") == (0,)
    assert drops(f"<THINK>[{drop(0)}]") == ()


def test_an_object_without_a_label_is_not_label_zero() -> None:
    """Absent, null or two different labels: counted, never acted on."""
    for label in ("", '"i":null,', '"i":0,"i":1,'):
        found = decode(f'[{{{label}"needed_by":"none","verdict":"drop"}}]', [0, 1])
        assert (found.drops, found.counters[Counter.NO_LABEL]) == ((), 1)


def test_a_drop_that_names_an_obligation_is_refused() -> None:
    """Whatever stands in needed_by except none, null and nothing."""
    for need in ("a", "nothing", "n/a", 0, False, [], {}):
        found = decode(f"[{drop(0, needed_by=need)}]", [0])
        assert (found.drops, found.verdicts[0].action) == ((), Action.REFUSED), need


def test_behind_a_break_a_clean_array_in_the_line_does_not_act() -> None:
    """It may come out of a string; one at the start of a line may answer."""
    broken = '[{"i":0,"verdict":"keep","quote":"it says "x'
    assert drops(f"{broken} [{drop(1)}]") == ()
    assert drops(f"{broken}\n  [{drop(1)}]") == (1,)


def test_an_array_inside_a_verdict_is_data() -> None:
    """Also when the verdict's own fields come after it."""
    assert drops(f'[{{"x":[{drop(1)}],"i":0,"verdict":"keep"}}]') == ()


def test_lone_surrogates_in_text_read_as_damage() -> None:
    """A str that is no Unicode text is a reply like any other."""
    found = decode('[{"i":0,"quote":"a\ud800b","verdict":"drop"}]', [0])
    assert found.drops == (0,) and found.verdicts[0].quote == "a\ufffd\ufffd\ufffdb"


def test_u32_one_object_a_line_is_an_answer_and_one_object_alone_is_none() -> None:
    """No bracket is needed where several lines are verdicts; a cut last line is left out; one bare object may be an
    example."""
    line = '{"i": %d, "needed_by": "none", "verdict": "drop"}'
    whole = decode("\n".join(line % i for i in range(3)), range(3))
    assert (whole.status, whole.drops) == ("ok", (0, 1, 2))
    cut = decode("\n".join(line % i for i in range(3))[:-10], range(3))
    assert (cut.status, cut.drops) == ("truncated", (0, 1))
    assert decode(line % 0, range(3)).status == "unparseable"


def test_d4_a_cut_reply_is_cut_whatever_brackets_stand_before_the_answer() -> None:
    """A closing bracket in the prose does not turn a lack of room into a reply in the wrong form."""
    cut = decode('By [a] and [b]: [{"i": 0, "needed_by": "none", "verdict": "drop"}, {"i": 1, "nee', range(2))
    assert (cut.status, cut.reason, cut.drops) == ("truncated", "cut", (0,))
