"""Features of the pages in chromium: themes, deep links, keys, tables that update in place."""

import re

import httpx2
import pytest
from live import until
from playwright.sync_api import Page, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.crafted import API, many_connections
from web.test_journey import check, drag

from tcpwin.client import Client

START_NS = 1_700_000_000 * 10**9


@pytest.mark.nightly
def test_short_names_and_long_settings_are_accessible(serve: Serve, open_page: OpenPage, capture: bytes) -> None:
    """Links in text differ by more than colour, and wide content can be scrolled on a phone without a mouse."""
    bundle = (ROOT / "captures" / "bundles" / "slow-reader.zip").read_bytes()
    address, _ = serve(capture)
    with Client(address) as client:
        for name, data in (("a.pcap", many_connections(2)), ("slow.zip", bundle)):
            answer = httpx2.post(f"{address}{API}/uploads", params={"name": name}, content=data, timeout=None)
            client.wait(answer.json()["id"])
    page = open_page(address)
    page.goto("/")
    # One of them has a finding for which `check` fails.
    expect(page.locator(".badge").filter(has_text="no TCP problem")).to_have_count(1)
    expect(page.locator(".badge.warning").filter(has_text="warning")).to_have_count(1)
    check(page)
    page = open_page(address, width=375)
    page.goto("/")
    page.get_by_role("link", name="slow.zip").click()
    expect(page.locator("pre").filter(has_text="tcp_notsent_lowat")).to_be_visible()
    check(page)


@pytest.mark.nightly
def test_links_lead_to_a_frame_and_a_span(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    place = f"/captures/{id}/connections/0"
    page.goto(f"{place}?frame=6")
    expect(page.locator("#segments tr.marked th")).to_have_text("6")
    page.get_by_role("textbox", name="Frame", exact=True).fill("7")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#segments tr.marked th")).to_have_text("7")

    page.goto(f"{place}?start_ns={START_NS + 250_000_000}&end_ns={START_NS + 2_850_000_000}")
    expect(page.locator("#segments tbody tr")).to_have_count(2)
    expect(page.locator("#span")).to_contain_text("0.250000 to 2.850000 s")
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    names = page.evaluate("document.getElementById('figure').data.filter((t) => t.customdata).map((t) => t.name)")
    assert {"receive window", "window closed"} <= set(names)
    # Keys: the whole connection, and half of it.
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("0")
    expect(page.locator("#segments tbody tr")).to_have_count(10)
    expect(page).to_have_url(re.compile(r"connections/0$"))
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"start_ns=\d+&end_ns=\d+"))
    # An additional figure, with its address.
    page.keyboard.press("0")
    page.locator(".menu summary").click()
    page.get_by_label("Time and sequence").check()
    expect(page).to_have_url(re.compile("panel=time-sequence"))
    page.reload()
    expect(page.get_by_label("Time and sequence")).to_be_checked()
    expect(figure).to_have_attribute("data-shows", re.compile("time-sequence"))
    # One click shows the frames of the evidence.
    page.locator(".finding summary").first.click()
    page.locator(".finding a[data-frame]").first.click()
    expect(page.locator("#segments tr.marked")).to_have_count(1)
    expect(page).to_have_url(re.compile("tab=segments"))


@pytest.mark.nightly
def test_theme_and_clock_are_chosen_and_kept(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    moment = page.locator("time").first
    expect(moment).to_have_text("2023-11-14 22:13 UTC")
    page.get_by_label("Times").select_option("local")
    expect(moment).to_have_text("2023-11-15 03:58 +05:45")
    page.get_by_label("Theme").select_option("dark")
    expect(page.locator("#figure")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("document.getElementById('figure').layout.paper_bgcolor") == "#12161b"
    page.goto(f"/captures/{id}")
    expect(page.locator("time").first).to_have_text("2023-11-15 03:58 +05:45")
    assert page.evaluate("getComputedStyle(document.querySelector('.bar')).backgroundColor") == "rgb(18, 22, 27)"


@pytest.mark.nightly
def test_a_table_is_sorted_and_searched_in_its_place(serve: Serve, open_page: OpenPage) -> None:
    address, (id,) = serve(many_connections(3000))
    page = open_page(address)
    page.goto(f"/captures/{id}")
    page.evaluate("window.isSame = true")
    first = page.locator("#rows tbody tr").first
    page.get_by_role("link", name="#", exact=True).last.click()
    expect(first.locator("th")).to_have_text("2999")
    expect(page.get_by_role("link", name="# ↓")).to_be_focused()
    page.keyboard.press("Enter")
    expect(first.locator("th")).to_have_text("0")
    page.get_by_role("link", name="Next").click()
    expect(first.locator("th")).to_have_text("100")
    page.keyboard.press("/")
    page.keyboard.type("10.0.1.7:40000")
    expect(page.locator("#rows tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("search=10.0.1.7"))
    page.get_by_label("Show").select_option("with a problem")
    expect(page.locator("#rows")).to_contain_text("No connections match")
    assert page.evaluate("window.isSame")


@pytest.mark.nightly
def test_both_connections_of_a_pair_on_the_same_axes(serve: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (first, second) = serve(capture, capture)
    page = open_page(address)
    page.goto(f"/compare?old={first}&new={second}")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    assert page.evaluate("document.getElementById('figure').layout.yaxis4.matches") == "y2"
    expect(page.get_by_role("region", name="Pairs of connections").locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("region", name="Findings of both captures")).to_contain_text("stays")
    page.get_by_label("Figure").select_option("throughput")
    expect(page.locator("#figure")).to_have_attribute("data-shows", "throughput throughput")


def is_of_single_segments(page: Page) -> bool:
    """Return whether the figure shows each segment of the span with its frame number."""
    told = (
        "document.getElementById('figure').data.some((each) => /frame %\\{customdata/.test(each.hovertemplate ?? ''))"
    )
    return bool(page.evaluate(told))


def middle_of_a_segment(page: Page) -> tuple[float, float]:
    """Return the position of a point with a frame number in the window."""
    found: tuple[float, float] = page.evaluate(
        """() => {
          const figure = document.getElementById("figure"), all = figure._fullLayout;
          for (const each of figure._fullData) {
            if (!/frame %\\{customdata/.test(each.hovertemplate ?? "")) continue;
            const x = all["xaxis" + each.xaxis.slice(1)], y = all["yaxis" + each.yaxis.slice(1)];
            for (let i = 0; i < each.x.length; i++) {
              const left = x.d2p(each.x[i]), top = y.d2p(each.y[i]);
              if (left < 5 || left > x._length - 5 || top < 5 || top > y._length - 5) continue;
              const box = figure.getBoundingClientRect();
              return [box.x + x._offset + left, box.y + y._offset + top];
            }
          }
        }"""
    )
    return found[0], found[1]


@pytest.mark.nightly
@pytest.mark.parametrize("width", [pytest.param(375, marks=pytest.mark.nightly), 1280])
def test_the_mouse_zooms_down_to_single_segments(show: Serve, open_page: OpenPage, width: int) -> None:
    address, (id,) = show((ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes())
    page = open_page(address, width=width)
    page.goto(f"/captures/{id}/connections/0")
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    assert not is_of_single_segments(page)
    total = page.locator("#segments .pager span")
    expect(total).to_have_text("1–50 of 4,586")
    drags = 0
    while not is_of_single_segments(page):
        drags += 1
        assert drags < 10
        before = page.url
        drag(page, 0.4, 0.6)
        expect(page).not_to_have_url(before)
        expect(figure).not_to_have_attribute("aria-busy", "true")
    expect(total).not_to_have_text("1–50 of 4,586")
    marked = page.locator("#segments tr.marked")

    # If the figure is redrawn for a new size after the mouse arrives or before the click, no point is hovered.
    def click() -> bool:
        page.mouse.move(0, 0)
        page.mouse.move(*middle_of_a_segment(page))
        page.wait_for_timeout(200)
        if re.search(r"frame [\d,]+", page.locator("#figure .hoverlayer").text_content() or ""):
            page.mouse.down()
            page.mouse.up()
            page.wait_for_timeout(500)
        return marked.count() == 1

    until(click)


@pytest.mark.nightly
def test_fingers_move_the_page_and_zoom_by_buttons(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show((ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes())
    page = open_page(address, width=375, has_touch=True)
    page.goto(f"/captures/{id}/connections/0")
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    expect(page.locator(".hint")).not_to_contain_text("Drag", use_inner_text=True)
    # A finger moved up over a figure scrolls the page and does not zoom.
    figure.evaluate("(figure) => figure.scrollIntoView()")
    page.evaluate(
        """() => { window.kept = []; for (const kind of ["touchstart", "touchmove"])
          addEventListener(kind, (event) => window.kept.push(event.defaultPrevented), { passive: true }); }"""
    )
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *points: dict[str, int]) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before_px = page.evaluate("scrollY")
    touch("touchStart", {"x": 200, "y": 600})
    for step in range(1, 11):
        touch("touchMove", {"x": 200, "y": 600 - 30 * step})
    # A finger that leaves a scrolling page flings it, and Chromium takes the next tap as the one that stops it.
    page.wait_for_timeout(500)
    touch("touchMove", {"x": 200, "y": 299})
    touch("touchEnd")
    kept = page.evaluate("window.kept")
    assert (len(kept) > 1, any(kept)) == (True, False)
    until(lambda: page.evaluate("scrollY") > before_px)

    def rests() -> bool:
        at_px = page.evaluate("scrollY")
        page.wait_for_timeout(300)
        return bool(page.evaluate("scrollY") == at_px)

    until(rests)
    expect(page).to_have_url(re.compile("connections/0$"))
    taps = 0
    while not is_of_single_segments(page):
        taps += 1
        assert taps < 20
        before = page.url
        page.get_by_role("button", name="Zoom in").tap()
        expect(page).not_to_have_url(before)
        expect(figure).not_to_have_attribute("aria-busy", "true")
    page.get_by_role("button", name="Whole life").tap()
    expect(page).to_have_url(re.compile("connections/0$"))
