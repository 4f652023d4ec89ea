"""The dashboard, in a real browser: it shows what the figures say, also when there are none, and to everybody."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from browser import Browser, binary
from figures_sample import START, busy, removal

from cg.gateway.events import TurnProjected
from cg.gateway.exchange import Inbound
from cg.gateway.telemetry.dashboard import dashboard
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.routes import TelemetryRoutes
from cg.gateway.telemetry.stats import GatewayInfo, Stats

needs_browser = pytest.mark.skipif(binary() is None, reason="no Chromium (CG_CHROMIUM names one)")
READY = "document.body.dataset.ready || document.body.dataset.error"


class Site:
    """Our own routes on a port; the figures can be exchanged and the server can be made to fail."""

    def __init__(self, metrics: Metrics, **about: Any) -> None:
        self.show(metrics, **about)
        self.token: str | None = None
        self.fails = False
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.split("?")[0].encode()
                if path == b"/stats" and site.fails:
                    self.close_connection = True
                    self.connection.close()
                    return
                if path == b"/stats" and site.token and self.headers.get("x-cg-token") != site.token:
                    self.send_error(401)
                    return
                handler = site.own.handlers.get(path)
                if handler is None:
                    self.send_error(404)
                    return
                answer = asyncio.run(handler(Inbound("GET", path, [])))  # type: ignore[arg-type]
                self.send_response(answer.status)
                for name, value in answer.headers:
                    self.send_header(name.decode(), value.decode())
                self.end_headers()
                self.wfile.write(answer.body)  # type: ignore[arg-type]

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/dashboard"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def show(self, metrics: Metrics, **about: Any) -> None:
        self.own = TelemetryRoutes(
            Stats(metrics, GatewayInfo(START, **about), lambda: START + 600, store_totals=lambda: TOTALS)
        )

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


TOTALS = {"reasons": {"removed": 40.0, "warm": 2.0}, "savings": {"net_usd": 1.25, "unique_bytes": 1e6}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as found:
        yield found


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site(busy())
    yield found
    found.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Browser:
    browser.errors.clear()
    browser.open(site.url, READY)
    return browser


def text(page: Browser, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def rows(page: Browser, table: str) -> list[list[str]]:
    script = (
        f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.cells].map(c => c.textContent.trim()))"
    )
    found: list[list[str]] = page.run(script)
    return found


# -- without a browser -----------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_from_outside() -> None:
    """No address in it leads anywhere but to this gateway, so it works without a network and tells nobody."""
    html = dashboard()[0].decode()
    assert set(re.findall(r"https?://[^\s\"'<>)]+", html)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(link|img|iframe|script src)", html)
    assert not re.search(r"\bon[a-z]+=|style=\"|innerHTML|eval\(|document\.write", html)


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2 for two colours as #rrggbb."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_their_ground(scheme: int) -> None:
    """4.5 to 1 for text, 3 to 1 for what bars and outlines are seen against, in both colour schemes."""
    blocks = re.findall(r":root \{(.*?)\}", dashboard()[0].decode(), re.DOTALL)
    colours = dict(re.findall(r"--([a-z_0-9-]+): (#[0-9a-f]{6})", " ".join(blocks[: scheme + 1])))
    for ink in ("ink", "soft", "good", "bad", "link"):
        for ground in ("ground", "card"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert contrast(colours["warn"], colours["warn-ground"]) >= 4.5


# -- in a browser ----------------------------------------------------------------------------------------------------


@needs_browser
def test_the_page_shows_the_figures(page: Browser) -> None:
    """Money, turns, removals, asks, recoveries, faults: what was counted is what stands there."""
    tiles = text(page, "#tiles")
    assert "$0.0389" in tiles or "Net" in tiles
    assert rows(page, "reasons")[0][:2] == ["removed", "2"]
    assert ["outputs removed", "4"] in rows(page, "removals")
    assert ["hidden", "1", "the original came back"] in rows(page, "recoveries")
    assert ["store", "1", "ours: the state could not be read or written"] in rows(page, "faults")
    assert [row[:2] for row in rows(page, "asks")] == [["dropped", "1"], ["failed", "1"]]
    assert ["turns", "42"] in rows(page, "lifetime")
    assert page.errors == []


@needs_browser
def test_cost_is_drawn_by_tier_over_time_and_stands_in_a_table_too(page: Browser) -> None:
    """The drawing has a description, and the same figures can be read without it."""
    assert page.run("document.querySelectorAll('#chart rect').length") >= 4
    label = page.run("document.getElementById('chart-title').textContent")
    assert "cache reads $" in label
    heads = page.run("[...document.querySelectorAll('#cost th[scope=col]')].map(h => h.textContent)")
    assert heads == [
        "from",
        "cache reads",
        "fresh input",
        "cache writes, 5 minutes",
        "output",
        "asks",
        "recoveries",
        "in all",
        "turns",
        "removed",
        "asks",
    ]
    assert sum(int(row[8]) for row in rows(page, "cost")) == 3


@needs_browser
def test_a_shorter_range_draws_finer(page: Browser) -> None:
    """An hour has bars of a minute; the range follows the running time until somebody chooses one."""
    assert page.run("$('range').value") == "60"  # it runs for ten minutes
    assert len(rows(page, "cost")) == 5
    page.run("$('range').value = '1440', $('range').dispatchEvent(new Event('change'))")
    assert len(rows(page, "cost")) == 1
    page.run("refresh()")
    assert page.run("$('range').value") == "1440"


@needs_browser
def test_before_the_first_request_the_page_says_how_to_begin(browser: Browser, site: Site) -> None:
    """Nothing is unknown money, not zero money, and there is a way on."""
    site.show(Metrics())
    browser.errors.clear()
    browser.open(site.url, READY)
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:" in text(browser, "#empty")
    assert "unknown" in text(browser, "#tiles")
    assert text(browser, "#reasons caption") == "No turn yet."
    assert browser.errors == []


@needs_browser
def test_projected_figures_stand_apart_and_only_while_observing(browser: Browser, site: Site) -> None:
    """Nobody takes them for real ones."""
    browser.open(site.url, READY)
    assert browser.run("document.getElementById('projected').hidden") is True
    metrics = Metrics()
    metrics.tell(TurnProjected(removal(2), START))
    site.show(metrics, observing=True)
    browser.open(site.url, READY)
    assert browser.run("document.getElementById('projected').hidden") is False
    assert "Projected, not real" in text(browser, "#projected")
    assert "$0.0400" in text(browser, "#projected-tiles")
    assert "$0.0400" not in text(browser, "#tiles")
    assert "observing only" in text(browser, "#about")


@needs_browser
def test_when_the_gateway_is_gone_the_page_says_so_and_keeps_the_last_figures(page: Browser, site: Site) -> None:
    """Old figures are marked as old."""
    site.fails = True
    page.run("refresh()")
    page.wait_for("document.getElementById('state').className === 'failing'")
    assert "has not answered since" in text(page, "#state")
    assert rows(page, "reasons")
    site.fails = False
    page.run("refresh()")
    page.wait_for("document.getElementById('state').textContent.startsWith('Up to date')")


@needs_browser
def test_where_a_token_is_needed_the_page_asks_for_it(browser: Browser, site: Site) -> None:
    """It is sent as a header, never in an address."""
    site.token = "letmein"
    browser.open(site.url, "!document.getElementById('access').hidden")
    assert "need the access token" in text(browser, "#state")
    browser.run("document.getElementById('token').value = 'wrong'; document.getElementById('access').requestSubmit()")
    browser.wait_for("document.getElementById('state').textContent.includes('not accepted')")
    browser.run("document.getElementById('token').value = 'letmein'; document.getElementById('access').requestSubmit()")
    browser.wait_for("document.body.dataset.ready")
    assert browser.run("document.getElementById('access').hidden") is True
    assert "letmein" not in browser.run("location.href")


@needs_browser
def test_updates_can_be_paused_with_the_keyboard(page: Browser) -> None:
    """The button is reached by the tab key and says whether it is pressed."""
    page.run("document.getElementById('range').focus()")
    page.press("Tab", 9)
    assert page.run("document.activeElement.id") == "pause"
    page.press("Enter", 13, "\r")
    assert page.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert text(page, "#state") == "Paused."


@needs_browser
def test_a_screen_reader_is_told_everything(page: Browser) -> None:
    """Names for every control and drawing, captions for every table, headings in order, one status line."""
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    for node in tree:
        role = (node.get("role") or {}).get("value")
        if role in ("button", "combobox", "img", "table", "region", "link") and not node.get("ignored"):
            assert (node.get("name") or {}).get("value"), role
    levels = page.run("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    assert page.run("document.querySelectorAll('[role=status]').length") == 1
    assert page.run("document.documentElement.lang") == "en"
    unscoped = "[...document.querySelectorAll('th')].filter(h => !h.scope).length"
    assert page.run(unscoped) == 0


@needs_browser
@pytest.mark.parametrize("width", [320, 768, 1400])
def test_the_page_fits_its_window(page: Browser, width: int) -> None:
    """Nothing has to be scrolled sideways; wide tables scroll in a region of their own."""
    page.resize(width, 800)
    assert page.run("document.documentElement.scrollWidth") <= width


@needs_browser
def test_hostile_figures_are_only_text(browser: Browser, site: Site) -> None:
    """Should a name ever hold markup, it is shown and not run."""
    site.show(busy(), upstream="<img src=x onerror=alert(1)>", config={"judge": "</script><b id=gotcha>"})
    browser.errors.clear()
    browser.open(site.url, READY)
    assert "<img src=x" in text(browser, "#about")
    assert browser.run("document.querySelector('#gotcha, main img') === null") is True
    assert browser.errors == []
