"""The page of captures of both ends in Chromium: zooming reads the span, buttons go from loss to loss."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect
from reference import ROOT
from web.browsing import OpenPage, Serve

WILD = ROOT / "captures" / "wild"
LOST = 12
"""Data packets dropped between the two points (captures/wild/lossy-path.toml)."""
SHOWN = """() => ({ from: span.from, to: span.to, losses, whole: whole.to - whole.from,
  crosses: Array.from(place._fullData.find((trace) => trace.name === "lost")?.x ?? []).filter(Number.isFinite) })"""


@pytest.fixture
def page(show: Serve, open_page: OpenPage) -> Page:
    both = [(WILD / f"lossy-path{name}").read_bytes() for name in (".pcapng.gz", "-receiver.pcap.gz")]
    address, (a, b) = show(*both)
    page = open_page(address)
    page.goto(f"/pair?a={a}&b={b}")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    return page


def redraw(page: Page, act: str) -> Request:
    """Press a button or key, and wait until the result is drawn."""
    with page.expect_request(lambda request: "/pair/figure" in request.url and "start_ns" in request.url) as asked:
        if len(act) == 1:
            page.keyboard.press(act)
        else:
            page.get_by_role("button", name=act, exact=True).click()
    request = asked.value
    answer = request.response()
    assert answer.ok
    # The previous figure stays until the answer is drawn.
    page.wait_for_function(
        "() => [span.from, span.to].every((end, at) => Math.abs(place.layout.xaxis.range[at] - end) < 1e-9)"
    )
    return request


@pytest.mark.nightly
def test_buttons_go_from_loss_to_loss(page: Page) -> None:
    expect(page.get_by_text(f"Lost between a and b: {LOST} of")).to_be_visible()
    first = page.evaluate(SHOWN)
    assert len(first["losses"]) == LOST
    seen = []
    for _ in range(3):
        redraw(page, "Next loss")
        shown = page.evaluate(SHOWN)
        [middle] = [each for each in first["losses"] if abs(each - (shown["from"] + shown["to"]) / 2) < 1e-9]
        # The line ends in the middle, less than the relay's 15 ms after the packet left.
        assert any(0 <= cross - middle <= 0.015 for cross in shown["crosses"])
        seen.append(middle)
    assert seen == sorted(set(seen))
    redraw(page, "Previous loss")
    shown = page.evaluate(SHOWN)
    assert abs((shown["from"] + shown["to"]) / 2 - seen[1]) < 1e-9


@pytest.mark.nightly
def test_zooming_reads_the_packets_of_the_span(page: Page) -> None:
    redraw(page, "0")
    whole = page.evaluate(SHOWN)
    assert whole["to"] - whole["from"] == pytest.approx(whole["whole"])
    expect(page.locator("#span")).to_be_empty()
    widths = [whole["whole"]]
    for act in ("+", "Zoom in"):
        asked = parse_qs(urlsplit(redraw(page, act).url).query)
        shown = page.evaluate(SHOWN)
        width_s = (int(asked["end_ns"][0]) - int(asked["start_ns"][0])) / 1e9
        assert width_s == pytest.approx(shown["to"] - shown["from"], abs=1e-8)
        assert width_s == pytest.approx(widths[-1] / 2, abs=1e-8)
        expect(page.locator("#span")).not_to_be_empty()
        widths.append(width_s)
    plot = page.locator("#figure .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = box["y"] + min(box["height"] / 2, 100)
    with page.expect_request(lambda request: "/pair/figure" in request.url):
        page.mouse.move(box["x"] + box["width"] * 0.4, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
        page.mouse.up()
    dragged = page.evaluate(SHOWN)
    assert dragged["to"] - dragged["from"] == pytest.approx(widths[-1] / 5, rel=0.05)
