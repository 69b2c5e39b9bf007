"""Every page with the keyboard only: Tab order, visible focus, and the documented keys."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from web.browsing import OpenPage, Serve
from web.crafted import many_connections
from web.test_smooth import scroll_through, settle
from web.test_weight import SLOW_READER

import tcpwin

TOLD = re.compile(r"start_ns=(\d+)&end_ns=(\d+)")
# HTML 6.6.3: elements reached by the keyboard, in document order.
REACHED = """() => {
  const kinds = ["a[href]", "button:not(:disabled)", "input:not(:disabled, [type=hidden])", "select", "textarea",
    "summary", "[tabindex='0']"];
  window.reached = [...document.querySelectorAll(kinds.join())].filter((each) => each.checkVisibility());
  return window.reached.length;
}"""
FOCUSED = """() => {
  const here = document.activeElement, style = getComputedStyle(here), box = here.getBoundingClientRect();
  return {
    place: window.reached.indexOf(here),
    is_shown: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0,
    is_marked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    markup: here.outerHTML.slice(0, 120),
  };
}"""


def walk(page: Page) -> list[dict[str, Any]]:
    """Press Tab until the last focusable element has the focus."""
    count = page.evaluate(REACHED)
    stops = []
    for _ in range(count):
        page.keyboard.press("Tab")
        stops.append(page.evaluate(FOCUSED))
    return stops


@pytest.mark.nightly
def test_tab_goes_through_every_page_in_its_order(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (first, many) = show(capture, many_connections(150))
    page = open_page(address)
    for path in (
        *("/", "/upload", "/rules", "/rules/TW201", "/compare", f"/compare?old={first}&new={first}"),
        *(f"/captures/{first}", f"/captures/{many}", f"/captures/{first}/connections/0", "/references"),
        f"/captures/{first}/connections/0/whatif",
    ):
        page.goto(path)
        settle(page)
        scroll_through(page)
        stops = walk(page)
        assert len(stops) > 5, path
        assert [each["place"] for each in stops] == list(range(len(stops))), (path, stops)
        assert [each for each in stops if not (each["is_shown"] and each["is_marked"])] == [], path


@pytest.mark.nightly
def test_the_first_key_skips_to_the_content(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    page.goto(f"/captures/{id}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")


@pytest.mark.nightly
def test_a_slash_leads_to_the_search(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    for path in ("/", f"/captures/{id}"):
        page.goto(path)
        search = page.get_by_role("searchbox")
        page.keyboard.press("/")
        expect(search).to_be_focused()
        # Typed into a field, it is a character.
        page.keyboard.type("a/b")
        expect(search).to_have_value("a/b")


def span_ns(page: Page) -> tuple[int, int] | None:
    found = TOLD.search(page.url)
    return (int(found[1]), int(found[2])) if found else None


def press(page: Page, key: str) -> tuple[int, int]:
    """Press a key and return the resulting span."""
    before = page.url
    page.keyboard.press(key)
    expect(page).not_to_have_url(before)
    span = span_ns(page)
    assert span is not None
    return span


def test_the_keys_of_a_connection_do_as_its_page_says(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    settle(page)
    expect(page.locator(".hint")).to_contain_text("Keys: + − ← → 0.")
    figure = page.locator("#figure")
    start_ns, end_ns = (int(figure.get_attribute(name) or 0) for name in ("data-start", "data-end"))
    quarter_ns = (end_ns - start_ns) // 4
    assert press(page, "+") == (start_ns + quarter_ns, end_ns - quarter_ns)
    assert press(page, "ArrowLeft") == (start_ns, start_ns + 2 * quarter_ns)
    assert press(page, "ArrowRight") == (start_ns + quarter_ns, end_ns - quarter_ns)
    assert press(page, "=") == (start_ns + 3 * quarter_ns // 2, end_ns - 3 * quarter_ns // 2)
    assert press(page, "-") == (start_ns + quarter_ns, end_ns - quarter_ns)
    # Typed into a field, they are characters.
    page.get_by_role("link", name="Segments", exact=True).click()
    page.get_by_role("textbox", name="Frame", exact=True).press_sequentially("70")
    assert span_ns(page) == (start_ns + quarter_ns, end_ns - quarter_ns)
    page.get_by_role("button", name="Whole life").focus()
    page.keyboard.press("0")
    expect(page).to_have_url(re.compile(r"connections/0\?tab=segments$"))


@pytest.mark.nightly
def test_figures_and_spans_are_chosen_by_keys(show: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, (id,) = show(capture)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    settle(page)
    page.locator(".menu summary").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Time and sequence").focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("panel=time-sequence"))
    page.get_by_role("button", name="Zoom in").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(TOLD)
    # plotly.js shows its buttons only for the mouse; focus must show them too.
    page.locator("#figure .modebar-btn").first.focus()
    expect(page.locator("#figure .modebar-group").first).to_have_css("opacity", "1")
    page.get_by_label("Data from").focus()
    # In a list, arrow keys select and do not move the figure.
    before = span_ns(page)
    page.keyboard.press("ArrowDown")
    expect(page).to_have_url(re.compile("direction=b_to_a"))
    assert span_ns(page) == before


@pytest.mark.nightly
def test_evidence_is_copied_shown_and_sliced_by_keys(show: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    address, (id,) = show(SLOW_READER)
    page = open_page(address)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/captures/{id}/connections/0")
    settle(page)
    finding = page.locator(".finding").first
    finding.locator("summary").focus()
    page.keyboard.press("Enter")
    copy = finding.get_by_role("button", name="Copy display filter")
    wanted = copy.get_attribute("data-copy")
    copy.focus()
    page.keyboard.press("Enter")
    expect(finding.get_by_role("button", name="Copied")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == wanted
    finding.get_by_role("link", name="Download slice (pcapng)").focus()
    with page.expect_download() as came:
        page.keyboard.press("Enter")
    out = tmp_path / "slice.pcapng"
    came.value.save_as(out)
    assert len(tcpwin.analyze(out)) == 1
    # A finding's span and frames, then the same from the address alone.
    finding.get_by_role("link", name="show in the figures").focus()
    page.keyboard.press("Enter")
    figure = page.locator("#figure")
    expect(figure).not_to_have_attribute("data-marked", "")
    marked, place = figure.get_attribute("data-marked") or "", page.url
    assert span_ns(page) is not None
    assert [f"frame={each}" in place for each in marked.split()] == [True] * len(marked.split())
    other = open_page(address)
    other.goto(place)
    settle(other)
    expect(other.locator("#figure")).to_have_attribute("data-marked", marked)
    expect(other.locator("#span")).not_to_have_text("")
