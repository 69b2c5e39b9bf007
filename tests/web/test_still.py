"""Pages on paper, and in a browser without scripts."""

import re

import pytest
from playwright.sync_api import Browser, expect
from web.browsing import WAIT_MS, OpenPage, Serve
from web.crafted import many_connections
from web.test_capture_page import many_stalls
from web.test_weight import SLOW_READER

CUT = """() => [...document.querySelectorAll("main *")].filter((each) => {
  const style = getComputedStyle(each);
  return each.scrollHeight > each.clientHeight + 1 && ["auto", "scroll"].includes(style.overflowY);
}).map((each) => each.className)"""
WIDTH = "() => document.querySelector('#figure .main-svg').getBoundingClientRect().width"
SHOWN = """() => [...document.querySelectorAll("main button, main form, .switches")]
  .filter((each) => each.checkVisibility()).map((each) => each.outerHTML.slice(0, 80))"""


def test_every_page_prints_whole(show: Serve, open_page: OpenPage) -> None:
    address, (slow, many) = show(SLOW_READER, many_connections(150))
    page = open_page(address, scheme="dark")
    for path in (
        *("/", "/search", "/rules", "/rules/TW201", "/references", f"/compare?old={slow}&new={slow}"),
        *(f"/captures/{slow}", f"/captures/{many}", f"/captures/{slow}/connections/0"),
    ):
        page.emulate_media(media="screen")
        page.goto(path)
        if "connections" in path:
            expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
        page.emulate_media(media="print")
        assert page.evaluate(CUT) == [], path
        assert page.evaluate(SHOWN) == [], path
        # Black on white, whatever the screen's theme.
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(27, 31, 36)"


@pytest.mark.nightly
def test_a_figure_fits_on_paper_and_then_on_the_screen_again(show: Serve, open_page: OpenPage) -> None:
    address, (slow, _) = show(SLOW_READER, many_connections(150))
    page = open_page(address, width=1440)
    page.goto(f"/captures/{slow}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    wide = page.evaluate(WIDTH)
    assert wide > 1000
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({WIDTH})(); }})")
    assert page.pdf(format="A4").startswith(b"%PDF")
    # A4 has 794 pixels of 1/96 inch.
    assert 500 < page.evaluate("window.printed") < 794
    page.wait_for_function(f"({WIDTH})() === {wide}")


PANEL_TITLES = """() => [...document.querySelectorAll("#figure .annotation-text")].map((each) => {
  const box = each.getBoundingClientRect();
  return [each.textContent, box.left, box.right];
})"""
# A title of one line has no spans of lines.
WRAPPED = """() => {
  const lines = [...document.querySelectorAll("#figure .gtitle tspan.line")];
  return (lines.length ? lines : [document.querySelector("#figure .gtitle")]).map((each) => each.textContent);
}"""


@pytest.mark.nightly
@pytest.mark.parametrize("width", [375, 2560])
def test_texts_of_figures_use_the_available_space(show: Serve, open_page: OpenPage, width: int) -> None:
    address, (slow, _) = show(SLOW_READER, many_stalls())
    page = open_page(address, width=width)
    page.goto(f"/captures/{slow}/connections/0?panel=window&panel=throughput&panel=path&panel=budget")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    titles = page.evaluate(PANEL_TITLES)
    assert any("Steps of" in text for text, _, _ in titles)
    for text, left, right in titles:
        assert 0 <= left < right <= page.evaluate("document.documentElement.clientWidth"), text
    lines = page.evaluate(WRAPPED)
    whole = "Limited by a slow reader on the client (93 % of the time, certain)"
    # On a wide page, all sentences are on one line.
    assert any(whole in line for line in lines) == (width > 640)
    assert any(line.strip() == whole.removesuffix(" certain)") for line in lines) == (width <= 640)
    if width > 640:
        # No part of a wide screen stays empty.
        assert page.locator("main").evaluate("(main) => main.clientWidth") > 0.9 * width


@pytest.mark.nightly
def test_a_tall_figure_is_whole_on_one_page(show: Serve, open_page: OpenPage) -> None:
    address, (slow, _) = show(SLOW_READER, many_stalls())
    page = open_page(address, width=1440)
    page.goto(f"/captures/{slow}/connections/0?panel=window&panel=path&panel=time-sequence&panel=throughput&panel=rtt")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    high = "() => document.querySelector('#figure .main-svg').getBoundingClientRect().height"
    before = page.evaluate(high)
    assert before > 1033
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({high})(); }})")
    assert page.pdf(format="A4").startswith(b"%PDF")
    # A4 has 1,123 pixels of 1/96 inch, minus two margins of 12 mm.
    assert 500 < page.evaluate("window.printed") < 1033
    page.wait_for_function(f"() => ({high})() === {before}")


ON_PAPER = """() => [...document.querySelectorAll(".figure")].filter((each) => each.checkVisibility()).map((each) => [
  each.getAttribute("aria-label"),
  each.querySelectorAll(".main-svg").length > 0,
  getComputedStyle(each.querySelector(".xtick text, .gtitle, text") ?? each).fill,
  Math.round(each.querySelector(".main-svg")?.getBoundingClientRect().width ?? 0),
])"""


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.nightly), "dark"])
def test_figures_print_dark_on_white_also_where_nobody_scrolled_to_them(
    show: Serve, open_page: OpenPage, scheme: str
) -> None:
    address, (slow, _) = show(SLOW_READER, many_connections(150))
    page = open_page(address, scheme=scheme, width=1440)
    page.goto(f"/captures/{slow}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    far = page.locator("[data-figure]").last
    # Paper shows the chosen tab.
    page.goto(f"{page.url}?tab={far.evaluate('each => each.closest(`.tab`).dataset.part')}")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    assert far.get_attribute("data-drawn") is None
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({ON_PAPER})(); }})")
    assert page.pdf(format="A4").startswith(b"%PDF")
    printed = page.evaluate("window.printed")
    assert len(printed) == 1 + page.locator("[data-figure]").count() > 1
    for label, is_drawn, colour, width in printed:
        assert is_drawn, label
        assert sum(int(each) for each in re.findall(r"\d+", colour)[:3]) < 3 * 0x80, (label, colour)
        assert width < 794, label
    # The screen is unchanged.
    expect(page.locator("#figure")).to_have_attribute("data-theme", scheme)
    page.wait_for_function("() => document.querySelector('#figure .main-svg').getBoundingClientRect().width > 1000")


@pytest.mark.nightly
def test_a_figure_that_cannot_be_drawn_in_time_says_so_on_paper(show: Serve, open_page: OpenPage) -> None:
    address, (_, many) = show(SLOW_READER, many_stalls())
    page = open_page(address, width=1440)
    page.goto(f"/captures/{many}")
    assert page.evaluate("self.Plotly === undefined")
    page.emulate_media(media="print")
    label = "getComputedStyle(document.querySelector('[data-figure]'), '::after').content"
    assert "not drawn" in page.evaluate(label)


@pytest.mark.nightly
@pytest.mark.parametrize("comes_into_view", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_the_print_key_draws_missing_figures_first(show: Serve, open_page: OpenPage, *, comes_into_view: bool) -> None:
    address, (_, many) = show(SLOW_READER, many_stalls())
    page = open_page(address, width=1440, scheme="dark")
    page.goto(f"/captures/{many}")
    figure = page.locator("[data-figure]")
    assert figure.get_attribute("data-drawn") is None
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = ({ON_PAPER})(); }})")
    # Wrapped in a function, because a function as the result would be called at once.
    page.evaluate(f"() => {{ window.print = () => {{ window.toPrint = ({ON_PAPER})(); }}; }}")
    if comes_into_view:
        # Then it is drawn for two reasons at once.
        page.evaluate(
            """() => {
              document.querySelector("[data-figure]").scrollIntoView();
              document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "p", ctrlKey: true, bubbles: true }));
            }"""
        )
    else:
        page.keyboard.press("Control+p")
    page.wait_for_function("() => window.toPrint")
    assert [is_drawn for _, is_drawn, _, _ in page.evaluate("window.toPrint")] == [True]
    assert page.pdf(format="A4").startswith(b"%PDF")
    printed = page.evaluate("window.printed")
    assert [is_drawn for _, is_drawn, _, _ in printed] == [True]
    # Once, whatever requested it.
    expect(page.locator("[data-figure] > .plot-container")).to_have_count(1)


PICTURES = """() => [...document.querySelectorAll("main picture.still img")].map((each) => ({
  name: each.alt, source: each.currentSrc, is_loaded: each.complete && each.naturalWidth > 0,
  width: each.getBoundingClientRect().width, height: each.getBoundingClientRect().height,
  is_within: each.getBoundingClientRect().right <= document.documentElement.clientWidth,
}))"""
DEAD = """() => [...document.querySelectorAll("main button, main select, main input, .switches select")]
  .filter((each) => each.checkVisibility() && !each.form?.querySelector("[name]"))
  .map((each) => each.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(375, "light"), *(pytest.param(*view, marks=pytest.mark.nightly) for view in ((1440, "dark"), (2560, "light")))],
)
def test_without_scripts_figures_are_pictures(show: Serve, browser: Browser, width: int, scheme: str) -> None:
    address, (slow, many) = show(SLOW_READER, many_stalls())
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=False, base_url=address, color_scheme=scheme
    )
    said: list[str] = []
    try:
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.set_default_timeout(WAIT_MS)
        for path, first, count in (
            (f"/captures/{slow}/connections/0", "Figures of connection 0 over time", 2),
            (f"/captures/{many}", "All connections: round trip and goodput", 1),
            (f"/compare?old={slow}&new={slow}", "Both connections over time", 1),
        ):
            page.goto(path)
            pictures = page.evaluate(PICTURES)
            assert len(pictures) >= count, path
            assert pictures[0]["name"] == first
            for each in pictures:
                assert each["is_loaded"], each
                assert each["is_within"], each
                assert each["width"] > 300, each
                assert each["height"] > 150, each
                assert ("theme=dark" in each["source"]) == (scheme == "dark")
            expect(page.locator(".figure").first).to_be_hidden()
            assert page.evaluate(DEAD) == [], path
        page.goto(f"/captures/{slow}")
        expect(page.locator(".worst svg.sketch")).to_be_visible()
        expect(page.locator("#rows tbody tr")).to_have_count(1)
    finally:
        context.close()
    assert said == []
