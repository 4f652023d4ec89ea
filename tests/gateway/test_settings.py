"""What a gateway is started with."""

import os

import pytest

from cg.gateway.settings import MIB, Settings, address, default_state, load, state_named
from cg.sweep.config import ConfigError

TOKEN = "a-token-of-twenty-one"


def test_flags_over_environment_over_file_over_default():
    """The nearest to the user wins."""
    file = '[proxy]\nupstream = "https://file.example"\nbudget_ms = 100\nlisten = "127.0.0.1:1"\n[sweep]\nmin_tokens = 700\n'
    env = {"CG_PROXY_BUDGET_MS": "200", "CG_PROXY_LISTEN": "127.0.0.1:2", "CG_SWEEP_ASK_CAP": "11"}
    settings = load(file, env, {"listen": "127.0.0.1:3", "upstream": None}, defaults={"state": "/s", "budget_ms": 50})
    assert settings.upstream == "https://file.example"
    assert settings.budget_ms == 200 and settings.listen == ("127.0.0.1", 3) and str(settings.state) == "/s"
    assert settings.config.min_tokens == 700 and settings.config.ask_cap == 11


def test_units_are_the_key_s_own():
    """A key says its unit, the field is in bytes."""
    settings = load("[proxy]\nmax_body_mb = 5\nmax_buffered_mb = 10\n")
    assert settings.max_body_bytes == 5 * MIB and settings.max_buffered_bytes == 10 * MIB


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[proxy]\nnope = 1", "nope"),
        ("[proxy]\nbudget_ms = 1", "10 to 60000 milliseconds"),
        ("[proxy]\nbudget_ms = true", "milliseconds"),
        ("[proxy]\nmax_requests = 1.5", "a whole number, 1 to 100000 requests"),
        ("[proxy]\nbudget_ms = nan", "milliseconds"),
        ("[proxy]\nobserve = 1", "true or false"),
        ("[proxy]\nupstream = 5", "text"),
        ("[proxy]\nmax_body_mb = 600", "max_buffered_bytes"),
        ("proxy = 1", "table"),
        ("[proxy", "TOML"),
        ("[sweep]\nnope = 1", "nope"),
        ("[other]", "other"),
        ('[proxy]\nlisten = "0.0.0.0:1"', "token"),
        ('[proxy]\nlisten = "localhost.evil:1"', "token"),
        ('[proxy]\nupstream = "ftp://x"', "http"),
        ('[proxy]\ntoken_file = "/does/not/exist"', "token_file"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(text, said):
    """The message names the key and what may stand there."""
    with pytest.raises(ConfigError if "upstream = " not in text or "5" in text else Exception, match=said):
        load(text)


def test_an_unknown_variable_of_our_prefix_is_refused():
    """A misspelt one would have no effect and no message."""
    with pytest.raises(ConfigError, match="CG_PROXY_LISTN"):
        load(None, {"CG_PROXY_LISTN": "1"})


def test_another_address_needs_a_token():
    """And takes it from the environment or a file, never from a flag that others can see."""
    env = {"CG_PROXY_TOKEN": TOKEN}
    settings = load(None, env, {"listen": "0.0.0.0:80"})
    assert settings.token == TOKEN and not settings.is_loopback
    assert TOKEN not in repr(settings)
    with pytest.raises(ConfigError, match="16"):
        load(None, {"CG_PROXY_TOKEN": "short"})


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_token_file_that_others_can_read_is_refused(tmp_path):
    """A secret that is none protects nothing."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="644"):
        load(None, {}, {"token_file": str(path)})
    path.chmod(0o600)
    assert load(None, {}, {"token_file": str(path)}).token == TOKEN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("8080", ("127.0.0.1", 8080)),
    ],
)
def test_addresses(text, found):
    """A port alone is this machine's."""
    assert address(text) == found


@pytest.mark.parametrize(
    "text", ["", ":80", "localhost", "localhost:", "localhost:x", "localhost:65536", "::1:80", "a:-1", "a:٣"]
)
def test_what_is_no_address_is_refused(text):
    """Rather than listened on somewhere else."""
    with pytest.raises(ConfigError):
        address(text)


def test_the_default_state_is_the_user_s_own(tmp_path):
    """Under the directory that the system gives for it."""
    if os.name == "posix":
        assert default_state({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "cg" / "gateway.db"
        assert default_state({"XDG_STATE_HOME": "relative"}) == default_state({})


@pytest.mark.skipif(os.name != "posix", reason="homes are found another way")
@pytest.mark.parametrize("home", [None, "relative", "."])
def test_without_a_home_folder_a_state_has_to_be_named(home, tmp_path, monkeypatch):
    """A container's user may have none: that is said in words, not met as a traceback or a file wherever we are."""
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    monkeypatch.delenv("HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    with pytest.raises(ConfigError, match="no home folder"):
        state_named(str(default_state({})))
    assert state_named(str(tmp_path / "gw.db")) == tmp_path / "gw.db"
    assert default_state({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "cg" / "gateway.db"


def test_observing_is_a_switch():
    """By flag, file or variable."""
    assert load(None, {"CG_PROXY_OBSERVE": "true"}).observe
    assert load("[proxy]\nobserve = true").observe
    assert load(None, {}, {"observe": True}).observe
    assert not Settings().observe
