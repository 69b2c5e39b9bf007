"""The overview of the whole connection below the zoomed figures, in Chromium: it shows and moves the span."""

from urllib.parse import parse_qs, urlsplit

import pytest
from live import until
from playwright.sync_api import Locator, Page, expect
from web.browsing import OpenPage, Serve
from web.crafted import many_connections
from web.test_journey import check
from web.test_weight import SLOW_READER

WIDTHS = pytest.mark.parametrize(
    "width", [375, *(pytest.param(each, marks=pytest.mark.nightly) for each in (1440, 2560))]
)


@pytest.fixture
def address(show: Serve) -> tuple[str, str]:
    address, (slow, _) = show(SLOW_READER, many_connections(150))
    return address, f"/captures/{slow}/connections/0"


def opened(open_page: OpenPage, address: tuple[str, str], **options: object) -> Page:
    page = open_page(address[0], **options)
    page.goto(address[1])
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    page.wait_for_load_state("networkidle")
    return page


def box(place: Locator) -> dict[str, float]:
    found = place.bounding_box()
    assert found is not None
    return {**found}


def life_s(page: Page) -> float:
    start, end = (page.locator("#figure").get_attribute(f"data-{each}") for each in ("start", "end"))
    return (int(end or 0) - int(start or 0)) / 1e9


def shown_s(page: Page) -> tuple[float, float]:
    """Return the span in the address, from the connection's start."""
    asked = parse_qs(urlsplit(page.url).query)
    start = int(page.locator("#figure").get_attribute("data-start") or 0)
    if "start_ns" not in asked:
        return 0.0, life_s(page)
    return (int(asked["start_ns"][0]) - start) / 1e9, (int(asked["end_ns"][0]) - start) / 1e9


def drawn_s(page: Page) -> tuple[float, float]:
    """Return the span shown as selected, by its pixels between the dimmed parts."""
    whole, before = box(page.locator("#life .drawn:visible")), box(page.locator("#life .before"))
    after = box(page.locator("#life .after"))
    scale = life_s(page) / whole["width"]
    return before["width"] * scale, life_s(page) - after["width"] * scale


def drag(page: Page, start: float, end: float) -> None:
    """Drag over the overview between two positions, as shares of its width."""
    page.locator("#life").scroll_into_view_if_needed()
    whole = box(page.locator("#life .drawn:visible"))
    y = whole["y"] + whole["height"] / 2
    page.mouse.move(whole["x"] + start * whole["width"], y)
    page.mouse.down()
    page.mouse.move(whole["x"] + (start + end) / 2 * whole["width"], y)
    page.mouse.move(whole["x"] + end * whole["width"], y)
    page.mouse.up()


def about(page: Page, start: float, end: float) -> None:
    """Wait until address, figure and overview show this span, as shares, within two pixels and a handle."""
    life = life_s(page)
    near = 3 / box(page.locator("#life .drawn:visible"))["width"] * life
    wanted = (pytest.approx(start * life, abs=near), pytest.approx(end * life, abs=near))
    until(lambda: (shown_s(page), drawn_s(page)) == (wanted, wanted))
    page.wait_for_function(
        f"() => Math.abs(document.getElementById('figure').layout?.xaxis?.range?.[0] - {start * life}) < {near}"
    )
    page.wait_for_load_state("networkidle")
    assert (shown_s(page), drawn_s(page)) == (wanted, wanted)


@WIDTHS
def test_a_span_is_dragged_moved_and_undone(open_page: OpenPage, address: tuple[str, str], width: int) -> None:
    page = opened(open_page, address, width=width)
    height = box(page.locator("#life"))["height"]
    drag(page, 0.25, 0.5)
    about(page, 0.25, 0.5)
    # Dragging inside moves the whole span, within the connection.
    drag(page, 0.375, 0.625)
    about(page, 0.5, 0.75)
    drag(page, 0.6, 0.99)
    about(page, 0.75, 1)
    # A click outside centres the span there.
    whole = box(page.locator("#life .drawn:visible"))
    page.mouse.click(whole["x"] + 0.25 * whole["width"], whole["y"] + whole["height"] / 2)
    about(page, 0.125, 0.375)
    assert box(page.locator("#life"))["height"] == height
    for start, end in ((0.75, 1), (0.5, 0.75), (0.25, 0.5)):
        page.go_back()
        about(page, start, end)
    check(page)


@pytest.mark.nightly
def test_its_ends_are_sliders(open_page: OpenPage, address: tuple[str, str]) -> None:
    page = opened(open_page, address, scheme="dark")
    start, end = (
        page.get_by_role("slider", name="Start of the span"),
        page.get_by_role("slider", name="End of the span"),
    )
    life = life_s(page)
    assert float(end.get_attribute("aria-valuenow") or 0) == pytest.approx(life)
    start.focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    page.keyboard.press("ArrowLeft")
    about(page, 0.29, 1)
    assert float(start.get_attribute("aria-valuenow") or 0) == pytest.approx(0.29 * life)
    page.keyboard.press("Tab")
    expect(end).to_be_focused()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowDown")
    about(page, 0.29, 0.89)
    assert end.get_attribute("aria-valuemin") == start.get_attribute("aria-valuenow")
    # Keys that move the whole span have no effect here, and one end does not pass the other.
    page.keyboard.press("Home")
    page.wait_for_function(
        "() => { const [from, to] = [...document.querySelectorAll('#life [data-end]')].map((of) => of.ariaValueNow);"
        " return to - from < 1e-5; }"
    )
    page.keyboard.press("End")
    about(page, 0.29, 1)
    page.locator("#life").scroll_into_view_if_needed()
    handle = box(start)
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()
    page.mouse.move(0, handle["y"], steps=3)
    page.mouse.up()
    page.wait_for_function("() => !location.search")
    check(page)


@pytest.mark.nightly
def test_it_follows_what_is_chosen_elsewhere(open_page: OpenPage, address: tuple[str, str]) -> None:
    page = opened(open_page, address)
    page.get_by_role("button", name="Zoom in").click()
    about(page, 0.25, 0.75)
    page.set_viewport_size({"width": 700, "height": 900})
    about(page, 0.25, 0.75)
    shown = page.locator("#life .drawn:visible")
    assert shown.get_attribute("data-direction") == page.locator("#direction").input_value()
    page.locator("#direction").select_option(
        index=1 - page.locator("#direction").evaluate("(each) => each.selectedIndex")
    )
    assert shown.get_attribute("data-direction") == page.locator("#direction").input_value()
    # It lies below the figures, and covers nothing of them.
    figure, life = box(page.locator("#figure")), box(page.locator("#life"))
    assert figure["y"] + figure["height"] <= life["y"]
