"""Candidates that say nothing, and those that nearly do: every turn at which a wrong one would drop.

Most replies here hold a drop, and near it what must stay as it is: an objection, a later answer, a break.
"""

import pytest
import verdict_oracle
from verdict_replies import in_pieces

from cg.verdicts import decode

ARRAY = "[{i:0,verdict:drop}]"
RUN = "{i:0,verdict:drop}{i:1,verdict:drop}"
KEEP = "{i:0,verdict:keep}"


def reads_as_the_slow_decoder(reply: str) -> tuple[str, str | None, tuple[int, ...]]:
    """Status, reason and drops, after a look that each way of feeding the reply agrees in every detail."""
    want, data = verdict_oracle.decode(reply, [0, 1]), reply.encode()
    assert decode(reply, [0, 1]).to_dict() == want
    for size in (1, 2, 3, 4, 5, 7):
        assert in_pieces(data, [0, 1], [*range(size, len(data), size)]) == want, size
    return want["status"], want["reason"], tuple(want["drops"])


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        pytest.param(RUN + "{i:...}", "unparseable", "no_verdict", id="a run before a template"),
        pytest.param(RUN + "{i:<n>}", "unparseable", "no_verdict", id="a run before a placeholder"),
        pytest.param(ARRAY + "{i:...[]", "ok", None, id="an empty array behind a template"),
        pytest.param("{i:0\u2026 " + ARRAY, "unparseable", "malformed", id="an ellipsis where no value is due"),
        pytest.param("{i:1] " + ARRAY, "unparseable", "malformed", id="a bracket of the other kind"),
        pytest.param("{i\uff1a1] " + ARRAY, "unparseable", "malformed", id="a full-width colon"),
        pytest.param("{i:'" + ARRAY, "truncated", "cut", id="cut in a string behind a name"),
        pytest.param('{i:1,x:"\n' + ARRAY + '\n" y', "unparseable", "malformed", id="a string behind a name"),
    ],
)
def test_a_candidate_that_names_a_verdict_is_content(reply: str, status: str, reason: str | None) -> None:
    """What was shown counts as a template takes back the run before it, as a break bars what may stand in a string."""
    assert reads_as_the_slow_decoder(reply) == (status, reason, ())


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        pytest.param("{i:= [1#[\n" + ARRAY[:-1], "truncated", "cut", id="no comment without a blank before it"),
        pytest.param("[/**/1,/*" + ARRAY + "*/]", "unparseable", "no_verdict", id="behind a block"),
        pytest.param("{/*" + ARRAY[:-1], "truncated", "cut", id="a comment that comes in pieces"),
        pytest.param(ARRAY + "[1,//\r2]" + KEEP, "ok", None, id="a carriage return ends a line"),
        pytest.param(ARRAY + "{i:1,x:/* * ' */2}" + KEEP, "ok", None, id="an asterisk alone ends no block"),
        pytest.param(ARRAY + "{i:1,x:/* * ' **/2}" + KEEP, "ok", None, id="two asterisks end one"),
        pytest.param("[/*/" + ARRAY[1:-1], "truncated", "cut", id="the asterisk that opens a block does not end it"),
        pytest.param(ARRAY + '[//\n{},""\n#', "truncated", "cut", id="a comment before the last one"),
        pytest.param(ARRAY + "{i:1,x:“a\\”,y:' ”}" + KEEP, "ok", None, id="an escaped curly quote"),
        pytest.param(ARRAY + "{i:1,x:““,y:' ”}" + KEEP, "ok", None, id="an opening quote in a curly string"),
    ],
)
def test_a_comment_or_a_curly_string_ends_where_it_is_written_to_end(
    reply: str, status: str, reason: str | None
) -> None:
    """What it hides does not act, and what stands behind it objects."""
    assert reads_as_the_slow_decoder(reply) == (status, reason, ())


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(f'{ARRAY}\n["{KEEP}",{"[" * 64}=', id="a string between brackets given up"),
        pytest.param(f'{ARRAY}\n["[{KEEP}]",{"[" * 64}=', id="an array in it"),
        pytest.param(f'{ARRAY}\n{{i:{"[" * 64}"{KEEP}"=', id="a string behind a name given up"),
    ],
)
def test_an_objection_in_a_string_stands_when_the_bracket_before_it_is_given_up(reply: str) -> None:
    """Its string is read as text then, or again."""
    assert reads_as_the_slow_decoder(reply) == ("ok", None, ())


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        pytest.param("{a:[]}", "ok", id="in a wrapper"),
        pytest.param("{a:[ ]} and more", "ok", id="with a blank in it"),
        pytest.param("rows[]", "unparseable", id="an index"),
        pytest.param("[/**/", "truncated", id="cut behind a comment"),
        pytest.param('["\\', "truncated", id="cut behind a backslash"),
        pytest.param('["\\"x', "truncated", id="cut behind an escaped quote"),
        pytest.param("{a:[]} {i:= ['", "ok", id="one cut in a string, behind a break"),
        pytest.param("{a:[]} {i:= [\n['", "ok", id="its inner bracket the first on a line"),
        pytest.param('{i:x\n[["', "truncated", id="its outer bracket the first on a line"),
        pytest.param('[{},"', "truncated", id="cut behind an element"),
        pytest.param("{i:0,verdict:drop}{i:,\n[{},“", "truncated", id="cut behind an element and a run"),
        pytest.param('{i:0,verdict:drop}{i:,\n[{},"', "truncated", id="the same in straight quotes"),
    ],
)
def test_an_array_without_a_verdict_answers_as_the_slow_decoder_has_it(reply: str, status: str) -> None:
    """An empty one, or one that is cut; never with a drop."""
    found = reads_as_the_slow_decoder(reply)
    assert (found[0], found[2]) == (status, ())


@pytest.mark.parametrize("lead", ["[\u201d", "[1\uff0c\u201c", "{a\uff1a\u201c"], ids=["quote", "comma", "colon"])
def test_what_a_string_holds_behind_wide_punctuation_does_not_act(lead: str) -> None:
    """Curly quotes both ways, full-width comma and colon."""
    reply = lead + ARRAY + "\u201d" + ("}" if lead[0] == "{" else "]")
    assert reads_as_the_slow_decoder(reply) == ("unparseable", "no_verdict", ())
