"""The closed list of policies and how they are named."""

from pathlib import Path

import pytest

from cg.errors import CgError
from cg.replay.policies import NONE, Mask, Oracle, Replies, parse
from cg.sweep.config import load


def names(*arguments, **named):
    return [policy.name for policy in parse(*arguments, **named)]


def test_all_policies_stand_beside_each_other_by_default():
    """Without a name, what one would switch on is priced, the asking preset with hindsight as judge."""
    assert names() == ["none", "quiet", "cold", "paid/oracle"]


def test_none_is_always_there_and_first():
    """Every other bill stands against it."""
    assert names(["cold"]) == ["none", "cold"]
    assert parse(["cold", "none"])[0] is NONE


def test_asking_policies_are_taken_with_each_judge():
    """Judges multiply what asks; what asks nobody stands alone."""
    assert names(["paid", "cold"], ["oracle:80/10", "index"]) == ["none", "paid/oracle:80/10", "paid/index", "cold"]
    assert names(["paid/recency", "paid"], ["oracle"]) == ["none", "paid/recency", "paid/oracle"]


def test_a_preset_is_replayed_as_it_is_configured():
    """What is priced is what the gateway would run."""
    found = {policy.name: policy for policy in parse(["paid", "classic", "cold"])}
    for preset, name in (("paid", "paid/oracle"), ("classic", "classic/oracle"), ("cold", "cold")):
        assert found[name].config == load(preset=preset)


def test_judges_without_a_model_replace_the_judge_alone():
    """A free judge changes who judges, and recency how many it keeps."""
    index, recency = parse(["paid/index", "paid/recency"], keep=4)[1:]
    assert index.config.judge == "index" and index.config.apply == "paid" and index.judge is None
    assert recency.config.judge == "recency" and recency.config.keep_newest == 4


def test_rates_of_an_imperfect_judge_are_percent():
    """oracle:80/10 drops 80 % of the spent and 10 % of what is still needed."""
    assert parse(["paid/oracle:80/10"])[1].judge == Oracle(0.8, 0.1)
    assert parse(["paid"])[1].judge == Oracle(1.0, 0.0)


def test_masks():
    """K is the caller's; drop-all keeps the newest message's outputs alone."""
    assert [p.mask for p in parse(["mask-all-but-k", "drop-all"], keep=7)[1:]] == [Mask(7), Mask(None)]


@pytest.mark.parametrize(
    "name", ["", "Paid", "paid/", "paid/oracle:101/0", "paid/oracle:8", "cold/oracle", "none/index"]
)
def test_a_name_that_is_none_is_refused_with_the_list(name):
    """A typing error prices nothing."""
    with pytest.raises(CgError, match="must be one of"):
        parse([name])


def test_recorded_replies_need_their_folder():
    """The judge `replies` without a folder is a refused argument."""
    with pytest.raises(CgError, match="--replies"):
        parse(["paid/replies"])
    assert parse(["paid/replies"], replies=Path("r"))[1].judge == Replies(Path("r"))


@pytest.mark.parametrize("keep", [-1, 10_001])
def test_keep_has_a_range(keep):
    with pytest.raises(CgError, match="0 to 10000"):
        parse(["mask-all-but-k"], keep=keep)
