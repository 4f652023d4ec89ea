"""Where a state on a server stands: what a URL may say, and that nothing secret in it is told on."""

import pytest

from cg.sweep.config import ConfigError
from cg.sweep.storage.redis.address import is_address, parse

SECRET = "correct%20horse"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h", "redis://h:6379/0"),
        ("valkey://h:7000/3", "valkey://h:7000/3"),
        ("rediss://u:p@h/2?prefix=team-a", "rediss://h:6379/2"),
        ("valkeys://[::1]:7000", "valkeys://[::1]:7000/0"),
        ("redis://h?db=4&timeout_ms=250", "redis://h:6379/4"),
        ("unix:///run/valkey/s.sock", "unix:///run/valkey/s.sock?db=0"),
        ("unix:///run/a%20b/s?db=1", "unix:///run/a b/s?db=1"),
    ],
)
def test_a_url_says_where_the_state_is(url: str, shown: str) -> None:
    """Redis's own scheme and Valkey's mean the same server."""
    assert is_address(url)
    assert str(parse(url)) == shown


def test_all_parts_are_read() -> None:
    """Credentials are decoded, options have units, files of TLS have the client's names."""
    found = parse(
        "rediss://cg:p%40%2F@h:1/2?prefix=a.b&timeout_ms=250&assume=persistence,noeviction&tls_ca=/ca&tls_cert=/c&tls_key=/k"
    )
    assert (found.username, found.password, found.host, found.port, found.database) == ("cg", "p@/", "h", 1, 2)
    assert (found.prefix, found.timeout_s, found.assumed) == ("a.b", 0.25, {"persistence", "noeviction"})
    assert found.tls_files == {"ssl_ca_certs": "/ca", "ssl_certfile": "/c", "ssl_keyfile": "/k"}
    assert found.is_tls and not parse("redis://h").is_tls


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h", "scheme 'http' is not known"),
        ("redis://", "needs a host"),
        ("redis:///0", "needs a host"),
        ("unix://", "needs the path"),
        ("redis://h:x", "host or port"),
        ("redis://h:99999", "host or port"),
        ("redis://h/x", "database is 'x'"),
        ("redis://h/-1", "database is '-1'"),
        ("redis://h/1?db=2", "stands in the URL's path and"),
        ("redis://h?db=1&db=2", "stands twice"),
        ("redis://h?colour=red", "option 'colour' is not known"),
        ("redis://h?x", "name=value"),
        ("redis://h?prefix=", "prefix is ''"),
        ("redis://h?prefix=a*", "prefix is 'a*'"),
        ("redis://h?timeout_ms=49", "timeout_ms is '49'; it must be 50 to 60000 milliseconds"),
        ("redis://h?timeout_ms=nan", "timeout_ms is 'nan'"),
        ("redis://h?assume=luck", "assume has 'luck'"),
        ("redis://h?tls_ca=/ca", "has no TLS"),
        (f"redis://u:{SECRET}#x@h", "must be written %23"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(url: str, words: str) -> None:
    """The part and what may stand there; never the credential."""
    with pytest.raises(ConfigError) as refused:
        parse(url)
    assert words in str(refused.value)
    assert "correct" not in str(refused.value)


@pytest.mark.parametrize("url", [f"redis://u:{SECRET}@h", f"redis://{SECRET}@h", f"redis://:{SECRET}@h"])
def test_no_credential_is_shown(url: str) -> None:
    """Neither by the address nor by what holds it."""
    found = parse(url)
    assert "correct" in f"{found.username}{found.password}"
    assert "correct" not in f"{found} {found!r} {[found]}"


@pytest.mark.parametrize("name", ["state.db", "/var/lib/cg/state.db", "redis", "C:\\cg\\state.db"])
def test_a_file_is_not_taken_for_a_server(name: str) -> None:
    """Only what has '://' in it is a URL."""
    assert not is_address(name)
