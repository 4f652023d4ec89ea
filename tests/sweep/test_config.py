"""The sweep's configuration: presets, precedence, strictness, and messages that say what may stand there."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cg.errors import CgError
from cg.sweep.config import KEYS, PRESETS, Config, ConfigError, describe, load

SHARED = {
    "window_s": 60,
    "cold_margin_s": 60,
    "min_later_turns": 8,
    "block_fallback": False,
    "ask_timeout_s": 90,
    "fallback_timeout_s": 90,
    "payload_ttl_h": 168,
    "store_max_mb": 2048,
    "spare_breakpoint": True,
    "lifetime": "client",
    "quiet_requests": 40,
    "run_log_requests": 10,
    "protected_tools": (),
    "protected_paths": (),
}
PRESET_TABLE = {
    "quiet": {
        "ask": "off",
        "apply": "free",
        "judge": "quiet",
        "min_tokens": 100,
        "min_inventory": 1,
        "ask_cap": 12,
        "select": "oldest",
        "keep_newest": 0,
        "pings": 0,
        "rescue": True,
        "evidence": True,
        "head_line": False,
    },
    "paid": {
        "ask": "idle",
        "apply": "paid",
        "judge": "model",
        "min_tokens": 500,
        "min_inventory": 10,
        "ask_cap": 12,
        "select": "oldest",
        "keep_newest": 0,
        "pings": 0,
        "rescue": True,
        "evidence": True,
        "head_line": False,
    },
    "cold": {
        "ask": "off",
        "apply": "free",
        "judge": "recency",
        "min_tokens": 250,
        "min_inventory": 1,
        "ask_cap": 12,
        "select": "oldest",
        "keep_newest": 10,
        "pings": 1,
        "rescue": False,
        "evidence": True,
        "head_line": False,
    },
    "classic": {
        "ask": "on-request",
        "apply": "at-once",
        "judge": "model",
        "min_tokens": 1000,
        "min_inventory": 10,
        "ask_cap": 12,
        "select": "largest",
        "keep_newest": 0,
        "pings": 0,
        "rescue": False,
        "evidence": False,
        "head_line": True,
    },
}
OLDER = [
    "strategy",
    "rewrite",
    "aggressiveness",
    "max_chars",
    "model",
    "context",
    "context_messages",
    "max_calls",
    "economic_gate",
    "per_output",
    "cold_cache",
    "recall",
]
NUMBERS = [key for key in KEYS if key.unit]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_the_published_table_says(preset: str) -> None:
    """All keys of each preset, spelt out a second time."""
    assert load(preset=preset).to_dict() == PRESET_TABLE[preset] | SHARED


def test_quiet_is_the_default() -> None:
    """No file, no flag: the preset `quiet`, which is also what the bare class holds, and which makes no call."""
    assert load() == Config() == load(preset="quiet")
    assert Config().ask == "off" and Config().judge != "model" and Config().pings == 0


def test_flags_win_over_environment_over_file_over_preset() -> None:
    """Each source overrides the ones below it, key by key."""
    text = "[sweep]\npreset = 'cold'\nmin_tokens = 300\nkeep_newest = 7\npings = 0\n"
    env = {"CG_SWEEP_MIN_TOKENS": "400", "CG_SWEEP_KEEP_NEWEST": "8", "PATH": "/bin"}
    config = load(text, env, {"min_tokens": 600, "pings": None})
    assert (config.min_tokens, config.keep_newest, config.pings, config.judge) == (600, 8, 0, "recency")


@pytest.mark.parametrize(
    ("preset", "env", "text", "judge"),
    [
        ("classic", {"CG_SWEEP_PRESET": "cold"}, "[sweep]\npreset = 'cold'", "classic"),
        (None, {"CG_SWEEP_PRESET": "cold"}, "[sweep]\npreset = 'classic'", "cold"),
        (None, {}, "[sweep]\npreset = 'classic'", "classic"),
        (None, {}, "", "quiet"),
    ],
)
def test_the_preset_is_chosen_by_the_same_precedence(preset: str, env: dict, text: str, judge: str) -> None:
    """Named by flag, else environment, else file, else `quiet`."""
    assert load(text, env, preset=preset) == load(preset=judge)


def test_environment_values_are_read_in_the_key_s_own_type() -> None:
    """Whole numbers, fractions, switches and words."""
    env = {"CG_SWEEP_ASK_CAP": "40", "CG_SWEEP_WINDOW_S": "30.5", "CG_SWEEP_RESCUE": "FALSE", "CG_SWEEP_ASK": "off"}
    config = load(env=env)
    assert (config.ask_cap, config.window_s, config.rescue, config.ask) == (40, 30.5, False, "off")


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_a_number_is_taken_up_to_its_bounds_and_refused_past_them(key) -> None:
    """Both ends belong to the range; the message names value, unit and range."""
    for value in (key.low, key.high):
        assert getattr(load(flags={key.name: int(value)}), key.name) == value
    for value in (int(key.low) - 1, int(key.high) + 1):
        with pytest.raises(ConfigError, match=re.escape(f"{key.name} is {value}; ")) as refused:
            load(flags={key.name: value})
        assert f"{int(key.low)} to {int(key.high)} {key.unit}" in str(refused.value)


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
@pytest.mark.parametrize(
    "value",
    [True, "12", [1], float("nan"), float("inf"), -float("inf"), 10**400, -(10**5000)],
    ids=lambda v: type(v).__name__,
)
def test_a_number_of_another_kind_is_refused(key, value: object) -> None:
    """Switches, text, lists and what is no finite number."""
    with pytest.raises(ConfigError, match=key.name):
        load(flags={key.name: value})


@pytest.mark.parametrize("key", [k for k in NUMBERS if k.is_whole], ids=lambda key: key.name)
def test_a_count_is_a_whole_number(key) -> None:
    """1.5 outputs are a slip, not a setting."""
    with pytest.raises(ConfigError, match="whole number"):
        load(f"[sweep]\n{key.name} = {key.low + 0.5}")


@pytest.mark.parametrize("key", [k for k in KEYS if k.choices], ids=lambda key: key.name)
def test_a_word_is_one_of_its_choices(key) -> None:
    """Any other word, or another kind of value, is refused with the choices."""
    for value in key.choices:
        assert getattr(load(flags={key.name: value}), key.name) == value
    for value in ("", "IDLE", 1, True, ["off"]):
        with pytest.raises(ConfigError, match=f"one of {', '.join(key.choices)}"):
            load(flags={key.name: value})


@pytest.mark.parametrize("key", [k for k in KEYS if not (k.unit or k.choices or k.is_list)], ids=lambda key: key.name)
def test_a_switch_is_true_or_false(key) -> None:
    """Numbers and words are no switches, in the file or in the environment."""
    assert getattr(load(f"[sweep]\n{key.name} = true"), key.name) is True
    for text in ("1", "'true'", "[]"):
        with pytest.raises(ConfigError, match="true or false"):
            load(f"[sweep]\n{key.name} = {text}")
    with pytest.raises(ConfigError, match="true or false"):
        load(env={f"CG_SWEEP_{key.name.upper()}": "yes please"})


@pytest.mark.parametrize("name", ["protected_tools", "protected_paths"])
def test_a_list_holds_names(name: str) -> None:
    """In a variable they are separated by commas; anything else than a list of texts is refused."""
    assert getattr(load(f"[sweep]\n{name} = ['Read', 'mcp__*']"), name) == ("Read", "mcp__*")
    assert getattr(load(env={f"CG_SWEEP_{name.upper()}": "Read, mcp__*,"}), name) == ("Read", "mcp__*")
    assert getattr(load(env={f"CG_SWEEP_{name.upper()}": ""}), name) == ()
    for text in ("'Read'", "[1]", "['']", "true", "3", "[['Read']]"):
        with pytest.raises(ConfigError, match=f"{name} is .* a list of names or globs"):
            load(f"[sweep]\n{name} = {text}")


@pytest.mark.parametrize("name", OLDER)
def test_a_key_of_the_older_design_is_refused_with_its_reason(name: str) -> None:
    """The message says why and what to use instead, wherever the key stands; it never says just "unknown"."""
    for load_it in (
        lambda: load(f"[sweep]\nzzz = 1\n{name} = 1"),
        lambda: load(env={"CG_SWEEP_ZZZ": "1", f"CG_SWEEP_{name.upper()}": "1"}),
        lambda: load(flags={"zzz": 1, name: 1}),
    ):
        with pytest.raises(ConfigError, match=f"{name}.*older design: .*(use|says|bounds|there is)") as refused:
            load_it()
        assert "unknown" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["[sweep]\nmin_token = 5", "min_tokens = 5", "[sweeep]", "[sweep", "sweep = 3", "[sweep.deep]\nx = 1"],
)
def test_an_unknown_key_or_table_is_refused(text: str) -> None:
    """A slip is an error, never a setting that silently does nothing."""
    with pytest.raises(ConfigError):
        load(text)


def test_unknown_environment_variables_of_our_prefix_are_refused() -> None:
    """Other programs' variables are none of our business."""
    with pytest.raises(ConfigError, match="CG_SWEEP_MIN_TOKEN"):
        load(env={"CG_SWEEP_MIN_TOKEN": "5"})
    assert load(env={"CG_SWEEPER": "5", "CG_SWEEP_STATE": "/x"}) == Config()


@pytest.mark.parametrize("preset", ["", "Paid", "warm"])
def test_an_unknown_preset_is_refused(preset: str) -> None:
    """By name, with the four that exist; an empty name is none."""
    with pytest.raises(ConfigError, match="quiet, cold, paid, classic"):
        load(f"[sweep]\npreset = '{preset}'" if preset else "[sweep]\npreset = 1")


def test_tables_of_other_readers_are_left_alone() -> None:
    """One file may serve the gateway too."""
    assert load("[proxy]\nlisten = 'x'\n[sweep]\nmin_tokens = 9").min_tokens == 9
    assert load("[mine]\n", other_tables=["mine"]) == Config()


@pytest.mark.parametrize("name", ["min_tokens", "min_inventory"])
def test_u42_a_floor_changes_no_trigger(name: str) -> None:
    """One key sets one thing: every other key stays as it was."""
    plain, changed = load().to_dict(), load(flags={name: 3}).to_dict()
    assert {k for k in plain if plain[k] != changed[k]} == {name}


def test_u26_there_is_no_mode_without_a_way_back() -> None:
    """The older design could leave no marker; asking for that is an error, so no replay can lose its marker later."""
    with pytest.raises(ConfigError, match="marker_mode.*can always be undone"):
        load("[sweep]\nmarker_mode = 'off'")


@given(st.text(max_size=40), st.one_of(st.text(max_size=40), st.integers(), st.floats(), st.booleans(), st.none()))
def test_any_flag_is_taken_or_refused_by_name(name: str, value: object) -> None:
    """Nothing else ever escapes."""
    try:
        config = load(flags={name: value})
    except CgError as error:
        assert name in str(error) or repr(name) in str(error)
    else:
        assert value is None or getattr(config, name) == value


@given(st.text(max_size=200))
def test_any_file_is_read_or_refused(text: str) -> None:
    """Whatever the text, the answer is a configuration or a ConfigError."""
    try:
        assert isinstance(load(text), Config)
    except ConfigError as error:
        assert str(error)


def test_the_reference_has_a_row_for_every_key() -> None:
    """Name, meaning, range, variable and the value in each preset, all as text."""
    rows = {row["key"]: row for row in describe()}
    assert list(rows) == list(Config().to_dict())
    assert rows["min_tokens"] == {
        "key": "min_tokens",
        "meaning": "smallest output that is a candidate",
        "range": "1 to 1000000 tokens",
        "environment": "CG_SWEEP_MIN_TOKENS",
        "quiet": "100",
        "cold": "250",
        "paid": "500",
        "classic": "1000",
    }
    assert (rows["head_line"]["paid"], rows["head_line"]["classic"]) == ("false", "true")


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ({"ask": "off"}, "no model is ever asked"),
        ({"judge": "index"}, "asks nobody"),
        ({"ask_cap": 5}, "no ask is ever made"),
        ({}, None),
        ({"judge": "recency", "ask": "off", "ask_cap": 5}, None),
    ],
)
def test_settings_that_cancel_each_other_are_noted(flags: dict, part: str | None) -> None:
    """They are valid, and the user is told what they amount to."""
    notes = load(flags=flags, preset="paid").notes
    assert (not notes) if part is None else (len(notes) == 1 and part in notes[0])
