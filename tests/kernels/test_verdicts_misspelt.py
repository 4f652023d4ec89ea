"""A criterion under another key: whatever stands there may be an obligation, so the drop is not carried out (R11)."""

import json

import pytest
import verdict_oracle
from verdict_replies import drop, drops, in_pieces

from cg.verdicts import Action, Counter, Status, decode

MISSPELT = [
    "needed\\_by",
    "needed-by",
    "neededBy",
    "needed by",
    "neededby",
    "need_by",
    "NEEDED-BY",
    " needed_by",
    "needed_by ",
    "needed_by:",
    "**needed_by**",
    "`needed_by`",
    "needed__by",
    "needed_by\u200b",
    "needed\u200b_by",
    "\ufeffneeded_by",
    "needed\u00ad_by",
    "needed_by\x00",
    "n\u0435eded_by",
    "needed\uff3fby",
    "\uff4e\uff45\uff45\uff44\uff45\uff44_\uff42\uff59",
    "needed_b\u00fd",
    "\u017feeded_by",
    "criterion",
    "n",
    "",
]


def read(reply: str, labels: list[int]) -> dict[int, Action]:
    """Each named label's action, after a look that the slow decoder and every way of feeding agree."""
    want, data = verdict_oracle.decode(reply, labels), reply.encode()
    found = decode(reply, labels)
    assert found.to_dict() == want == in_pieces(data, labels, [*range(len(data))])
    return {verdict.i: verdict.action for verdict in found.verdicts}


@pytest.mark.parametrize("key", MISSPELT, ids=ascii)
@pytest.mark.parametrize("value", ["b", "", "none", None, 2, {"id": "b"}], ids=repr)
def test_a_drop_whose_criterion_is_misspelt_is_unusable(key: str, value: object) -> None:
    """Before the verdict or behind it, in an array, a wrapper or one a line; its neighbour is read."""
    rows = [{"i": 0, key: value, "verdict": "drop"}, {"verdict": "drop", "i": 1, "quote": "q", key: value}]
    other = drop(2)
    for row in (json.dumps(rows[0]), json.dumps(rows[1], ensure_ascii=False)):
        label = json.loads(row)["i"]
        for reply in (f"[{row},{other}]", f'{{"verdicts":[{other},{row}]}}', f"{other}\n{row}"):
            assert read(reply, [0, 1, 2]) == {label: Action.UNUSABLE, 2: Action.DROP}


@pytest.mark.parametrize(
    "key", ["needed-by", "neededBy", "needed.by", "NeededBy", "by", "\u201cneeded by\u201d", "'needed by'"]
)
def test_the_same_without_quotes_or_in_others(key: str) -> None:
    """A bare word, curly quotes, single ones."""
    assert read(f"[{{i: 0, {key}: 'the tests', verdict: drop}}, {drop(1)}]", [0, 1]) == {
        0: Action.UNUSABLE,
        1: Action.DROP,
    }


@pytest.mark.parametrize(
    ("members", "action"),
    [
        ('"needed_by":null,"needed-by":"b"', Action.UNUSABLE),
        ('"needed_by":" ","needed-by":"b"', Action.UNUSABLE),
        ('"meta":{"needed_by":"b"}', Action.UNUSABLE),
        ('"reason":"old"', Action.UNUSABLE),
        ('"needed_by":"none","needed-by":"b"', Action.DROP),
        ('"needed_by":"b","needed-by":"none"', Action.REFUSED),
        ('"needed_by":null,"needed_by":"b"', Action.REFUSED),
        ('"Needed_By":"b"', Action.REFUSED),
        ('"needed\\u005fby":"b"', Action.REFUSED),
        ('"needed_by":"none"', Action.DROP),
        ('"needed_by":null', Action.DROP),
        ('"quote":"q"', Action.DROP),
        ('"QUOTE":"q","I":0', Action.DROP),
    ],
)
def test_only_an_answered_criterion_makes_other_keys_harmless(members: str, action: Action) -> None:
    """Null and blank answer nothing; a key is the criterion whatever its case and its escapes."""
    assert read(f'[{{"i":0,{members},"verdict":"drop"}}]', [0]) == {0: action}


def test_an_unusable_drop_takes_back_a_readable_one_of_the_same_label() -> None:
    """Mentions that differ are a conflict, in either order."""
    rows = [drop(0), '{"i":0,"needed by":"c","verdict":"drop"}']
    for order in (rows, rows[::-1]):
        assert read(f"[{','.join(order)}]", [0]) == {0: Action.CONFLICT}


def test_a_cut_reply_carries_out_no_drop_with_a_misspelt_criterion() -> None:
    """Wherever it ends: behind the object, in it, in the key."""
    reply = '[{"i":0,"verdict":"drop","needed\\_by":"b"},{"i":1,"needed-by":"c","verdict":"drop"}]'
    for end in range(len(reply)):
        assert drops(reply[:end]) == ()
        assert decode(reply[:end], [0, 1]).to_dict() == verdict_oracle.decode(reply[:end], [0, 1])


def test_a_missing_criterion_is_counted_whether_the_drop_is_carried_out_or_not() -> None:
    """`criterion_missing` is of labels, `unusable` says which were kept for it."""
    found = decode('[{"i":0,"verdict":"drop","note":1},{"i":1,"verdict":"drop"}]', [0, 1])
    assert (found.status, found.drops) == (Status.OK, (1,))
    assert found.counters == {Counter.UNUSABLE: 1, Counter.DROP: 1, Counter.CRITERION_MISSING: 2}
