"""Who may use the gateway."""

import json

import pytest
from live import RawUpstream, ask, status

from cg.gateway.events import Refusal
from cg.gateway.exchange import Outbound
from cg.gateway.http.access import Access, host_name
from cg.gateway.settings import is_loopback_name

TOKEN = b"a-token-of-twenty-one"
LOOPBACK = Access(is_loopback=True, token=TOKEN)


def deny(access, *pairs, is_gateway_route=False, needs_token=False):
    found = access.deny(list(pairs), is_gateway_route=is_gateway_route, needs_token=needs_token)
    return found and found.why


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:8788", b"127.0.0.1", b"127.0.0.1:1", b"[::1]:8788", b"127.9.9.9"]
)
def test_a_loopback_name_is_let_in(host):
    """This machine's own names and addresses, with any port and in any case."""
    assert deny(LOOPBACK, (b"host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"evil.example:8788",
        b"",
        b"localhost@evil.example",
        b"evil.example#localhost",
        b"localhost/evil",
        b"[::1",
        b"::1",
        b"0.0.0.0",
        b"192.168.1.2",
        b"2130706433",
        b"127.1",
        b"localhost:port",
        b"localhost\xe9",
    ],
)
def test_a_name_that_only_resolves_to_loopback_is_kept_out(host):
    """A page whose own name was made to resolve to this machine (DNS rebinding) still says that name."""
    assert deny(LOOPBACK, (b"host", host)) is Refusal.HOST


def test_without_a_host_nobody_is_let_in():
    """Doubt refuses."""
    assert deny(LOOPBACK) is Refusal.HOST


@pytest.mark.parametrize("name", [b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"])
def test_a_loopback_name_that_came_through_a_reverse_proxy_is_not_let_in(name):
    """The proxy stands on this machine and its client need not: that one writes any host name it likes."""
    pairs = [(b"host", b"localhost"), (name, b"203.0.113.7")]
    assert deny(LOOPBACK, *pairs) is Refusal.HOST
    assert deny(LOOPBACK, *pairs, (b"x-cg-token", TOKEN)) is None


def test_the_token_opens_what_the_host_name_does_not():
    """A gateway behind a name of its own is used with the token."""
    assert deny(LOOPBACK, (b"host", b"box.lan"), (b"x-cg-token", TOKEN)) is None
    assert deny(LOOPBACK, (b"host", b"box.lan"), (b"x-cg-token", TOKEN + b"x")) is Refusal.HOST


def test_every_request_from_elsewhere_needs_the_token():
    """On an address that others reach, a loopback host name proves nothing."""
    open_to_others = Access(is_loopback=False, token=TOKEN)
    assert deny(open_to_others, (b"host", b"localhost")) is Refusal.TOKEN
    assert deny(open_to_others, (b"host", b"localhost"), (b"x-cg-token", b"wrong")) is Refusal.TOKEN
    assert deny(open_to_others, (b"host", b"box.lan"), (b"x-cg-token", TOKEN)) is None


def test_two_tokens_are_none():
    """Of two headers nobody can say which one was checked further on."""
    pairs = [(b"host", b"box.lan"), (b"x-cg-token", TOKEN), (b"x-cg-token", b"other")]
    assert deny(LOOPBACK, *pairs) is Refusal.HOST


def test_a_route_with_content_needs_the_token_on_loopback_too():
    """Other users of this machine reach the loopback address as well."""
    assert deny(LOOPBACK, (b"host", b"localhost"), is_gateway_route=True, needs_token=True) is Refusal.TOKEN
    assert (
        deny(LOOPBACK, (b"host", b"localhost"), (b"x-cg-token", TOKEN), is_gateway_route=True, needs_token=True) is None
    )
    without = Access(is_loopback=True)
    found = without.deny([(b"host", b"localhost"), (b"x-cg-token", b"")], is_gateway_route=True, needs_token=True)
    assert found is not None and (found.why, found.status) == (Refusal.TOKEN, 403)  # no token that could be tried out


@pytest.mark.parametrize(
    "origin", [b"https://evil.example", b"http://evil.example", b"null", b"http://localhost.evil.example"]
)
def test_another_origin_is_refused_everywhere(origin):
    """A page from elsewhere can neither read our routes nor spend through the gateway."""
    for is_gateway_route in (True, False):
        assert (
            deny(LOOPBACK, (b"host", b"localhost:1"), (b"origin", origin), is_gateway_route=is_gateway_route)
            is Refusal.ORIGIN
        )


def test_our_own_page_reads_our_routes_and_no_other_local_page_does():
    """Another program's page on this machine is another origin."""
    host = (b"host", b"localhost:8788")
    assert deny(LOOPBACK, host, (b"origin", b"http://localhost:8788"), is_gateway_route=True) is None
    assert deny(LOOPBACK, host, (b"origin", b"http://localhost:3000"), is_gateway_route=True) is Refusal.ORIGIN
    assert deny(LOOPBACK, host, (b"sec-fetch-site", b"same-origin"), is_gateway_route=True) is None
    assert deny(LOOPBACK, host, (b"sec-fetch-site", b"none"), is_gateway_route=True) is None
    assert deny(LOOPBACK, host, (b"sec-fetch-site", b"cross-site"), is_gateway_route=True) is Refusal.ORIGIN
    assert deny(LOOPBACK, host, (b"sec-fetch-site", b"same-site"), is_gateway_route=True) is Refusal.ORIGIN


def test_a_local_page_and_an_editor_may_use_the_gateway():
    """A development server's page and an editor's window are programs of the user's own."""
    for origin in (b"http://localhost:3000", b"http://127.0.0.1:5173", b"vscode-file://vscode-app"):
        assert deny(LOOPBACK, (b"host", b"localhost"), (b"origin", origin)) is None


def test_names_are_read_and_never_resolved():
    """What a name resolves to can change between two questions."""
    assert host_name(b"LocalHost:80") == "localhost"
    assert host_name(b"[::1]:80") == "::1"
    assert not is_loopback_name("localhost.")
    assert not is_loopback_name("")


async def secret(inbound):
    return Outbound(200, [(b"content-type", b"text/plain")], b"figures")


def test_our_routes_over_the_wire(gateway):
    """No route of ours is shown to another name or origin, and none answers with a header that would let one in."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, gateway_routes={b"/stats": secret, b"/expand": secret}, token=TOKEN.decode())
        assert ask(served.port, b"GET /stats").body == b"figures"
        assert ask(served.port, b"GET /stats?x=y").body == b"figures"
        assert status(ask(served.port, b"GET /stats", host=b"evil.example")) == 421
        assert status(ask(served.port, b"GET /stats", b"origin: https://evil.example")) == 403
        assert status(ask(served.port, b"GET /expand?id=0")) == 401
        assert ask(served.port, b"GET /expand?id=0", b"x-cg-token: " + TOKEN).body == b"figures"
        answer = ask(
            served.port, b"OPTIONS /stats", b"origin: http://localhost:3000", b"access-control-request-method: GET"
        )
        assert status(answer) == 403
        assert not [name for name, _ in answer.headers if name.startswith(b"access-control")]
        assert upstream.requests == []
        assert set(served.recorder.of(Refusal)) == {Refusal.HOST, Refusal.ORIGIN, Refusal.TOKEN}


def test_a_path_that_only_resembles_ours_passes(gateway):
    """Nothing is decoded or shortened to find our routes, so nothing of the upstream's is shadowed."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url, gateway_routes={b"/stats": secret})
        paths = [b"/stats/", b"//stats", b"/%73tats", b"/STATS", b"/stats;x", b"/./stats"]
        for path in paths:
            assert ask(served.port, b"GET " + path).body == b"ok"
        assert [request.line.split(b" ")[1] for request in upstream.requests] == paths


def test_a_refusal_says_in_the_api_s_own_shape_who_refused(gateway):
    """Clients show the message to people."""
    with RawUpstream() as upstream:
        served = gateway(upstream.url)
        answer = ask(served.port, b"GET /v1/models", host=b"evil.example")
        said = json.loads(answer.body)
        assert said["type"] == "error" and said["error"]["type"] == "permission_error"
        assert said["error"]["message"].startswith("cg-proxy: ")


def test_a_health_check_needs_no_token_on_another_address():
    """A container's own check and a cluster's probe send none; everything else does."""
    elsewhere = Access(is_loopback=False, token=TOKEN)
    for host in (b"127.0.0.1:8788", b"10.0.0.7:8788", b"cg-proxy"):
        check = elsewhere.deny([(b"host", host)], is_gateway_route=True, is_for_all=True)
        assert check is None
        assert deny(elsewhere, (b"host", host), is_gateway_route=True) is Refusal.TOKEN
    assert LOOPBACK.deny([(b"host", b"evil.example")], is_gateway_route=True, is_for_all=True) is not None


def test_the_health_check_of_a_gateway_with_a_token_is_answered(gateway):
    """And its figures are not."""
    with RawUpstream() as upstream:

        async def fine(inbound):
            return Outbound(200, [], b"ok")

        routes = {b"/healthz": fine, b"/stats": fine}
        served = gateway(upstream.url, gateway_routes=routes, token=TOKEN.decode(), listen=("0.0.0.0", 0))
        assert status(ask(served.port, b"GET /healthz")) == 200
        assert status(ask(served.port, b"GET /stats")) == 401
        assert status(ask(served.port, b"GET /healthz/")) == 401 and upstream.requests == []
