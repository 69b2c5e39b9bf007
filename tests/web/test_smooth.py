"""Pages in Chromium: nothing jumps while one loads, nothing blocks while it is used."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, Request, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.crafted import many_connections

MOST_SHIFT = 0.05
"""Cumulative layout shift: web.dev/cls calls 0.1 good."""
MOST_NODES, MOST_BYTES = 5_000, 200_000
"""Limits for a page with a hundred rows and for an answer; a thousand rows exceed them."""
CONNECTIONS = 100_000
ROWS = 100
LAB = ROOT / "captures" / "lab"

# https://web.dev/articles/cls: shifts within 500 ms of a key or a click are expected by the user.
SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput)
    window.shifts.push([shift.value, shift.sources.map((source) => source.node?.id || source.node?.nodeName)]);
}).observe({ type: "layout-shift", buffered: true });"""
# Until the following part was exchanged, and the frame after it was drawn.
FOLLOWED = """() => { window.followed = new Promise((done) => {
  new MutationObserver((changes, observer) => {
    if (!changes.some((change) => [...change.addedNodes].some((node) => node.id === "rows"))) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(done));
  }).observe(document.getElementById("main"), { childList: true, subtree: true });
}); }"""


def settle(page: Page) -> None:
    """Wait until everything that a page requests is loaded and drawn."""
    page.wait_for_load_state("networkidle")
    for figure in page.locator("#figure").all():
        expect(figure).to_have_attribute("data-drawn", "true")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def scroll_through(page: Page) -> None:
    """Scroll through a page and its tabs, so that content drawn on view is drawn."""
    for tab in [*page.locator("[data-tab]").all(), None]:
        place, step = 0, 600
        while place < page.evaluate("document.documentElement.scrollHeight"):
            place += step
            page.mouse.wheel(0, step)
            settle(page)
        if tab is not None:
            tab.click()
    for figure in page.locator("[data-figure]").all():
        expect(figure).to_have_attribute("data-drawn", "true")


@pytest.mark.nightly
@pytest.mark.parametrize("width", [375, pytest.param(1280, marks=pytest.mark.nightly)])
def test_nothing_jumps_while_a_page_loads(show: Serve, open_page: OpenPage, capture: bytes, width: int) -> None:
    reader = (LAB / "slow-reader.pcap.gz").read_bytes()
    address, (first, many, slow) = show(capture, many_connections(150), reader)
    for path in (
        *("/", "/upload", "/rules", "/rules/TW201", "/references", "/compare", f"/compare?old={first}&new={first}"),
        *(f"/captures/{first}", f"/captures/{many}", f"/captures/{many}/connections/77"),
        *(f"/captures/{first}/connections/0", f"/captures/{slow}/connections/0"),
        *(f"/captures/{slow}/connections/0?frame=2000", f"/captures/{slow}/connections/0?panel=rtt"),
        "/references?" + urlencode({"capture": slow, "connection": 0}),
    ):
        # A separate context has an empty cache.
        page = open_page(address, width=width)
        page.add_init_script(SHIFTS)
        page.goto(path)
        settle(page)
        scroll_through(page)
        shifts = page.evaluate("window.shifts")
        assert sum(value for value, _ in shifts) < MOST_SHIFT, (path, shifts)
        page.context.close()


MARGINS = """() => { const place = document.getElementById("figure"), { l, r, b } = place.layout.margin;
return [[l, r, b], ["l", "r", "b"].map((side) => place._fullLayout._size[side])]; }"""


@pytest.mark.nightly
def test_every_axis_is_drawn_once(show: Serve, open_page: OpenPage) -> None:
    """Margins are predicted: if plotly.js needs more, it draws all axes twice, half of its time."""
    lossy, reader = ((LAB / name).read_bytes() for name in ("loss-1-percent.pcap.gz", "slow-reader.pcap.gz"))
    address, ids = show(lossy, reader)
    for width in (1280, 375):
        page = open_page(address, width=width)
        for id in ids:
            page.goto(f"/captures/{id}/connections/0")
            settle(page)
            given, taken = page.evaluate(MARGINS)
            assert taken == given, (width, id)
    # On a rotated phone the legend has more columns and needs less space.
    page.set_viewport_size({"width": 812, "height": 375})
    page.wait_for_function("(before) => document.getElementById('figure').layout.margin.b < before", arg=given[2])
    settle(page)
    given, taken = page.evaluate(MARGINS)
    assert taken == given


@pytest.mark.nightly
def test_a_hundred_thousand_connections_are_searched_without_standing_still(serve: Serve, open_page: OpenPage) -> None:
    """The page never has more than a hundred rows, so a key or click costs no more than that."""
    address, (id,) = serve(many_connections(CONNECTIONS))
    page = open_page(address)
    asked: list[Request] = []
    page.on("requestfinished", lambda request: asked.append(request))
    page.goto(f"/captures/{id}")
    settle(page)
    first = page.locator("#rows tbody th").first
    rows = page.locator("#rows tbody tr")
    search = page.get_by_role("searchbox")
    for act, shown, count in (
        (lambda: page.get_by_role("link", name="#", exact=True).last.click(), CONNECTIONS - 1, ROWS),
        (lambda: page.keyboard.press("Enter"), 0, ROWS),
        (lambda: page.get_by_role("link", name="Next").click(), ROWS, ROWS),
        (lambda: search.press_sequentially("10.1.134.159"), CONNECTIONS - 1, 1),
        (lambda: search.fill("10.0.3."), 768, ROWS),
        (lambda: page.locator("#only").select_option("reset"), None, 0),
        (lambda: page.locator("#only").select_option(""), 768, ROWS),
        (lambda: search.fill(""), 0, ROWS),
    ):
        page.evaluate(FOLLOWED)
        act()
        page.evaluate("window.followed")
        expect(rows).to_have_count(count)
        if shown is not None:
            expect(first).to_have_text(str(shown))
        assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    answers = [request.response() for request in asked if "/static/" not in request.url]
    assert max(len(answer.body()) for answer in answers if answer is not None) < MOST_BYTES
