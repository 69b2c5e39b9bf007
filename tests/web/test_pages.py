"""What the pages can do, in Debian's chromium: every theme and width, deep links, keys, tables that follow."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from web.crafted import API, many_connections
from web.test_journey import WAIT_MS, check
from web.test_process import MakeServer

START_NS = 1_700_000_000 * 10**9
TOKEN = "a token of these tests"


@pytest.fixture(scope="module")
def browser(tool: Callable[[str], str]) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=tool("chromium"), args=["--no-sandbox"], timeout=WAIT_MS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open pages that say nothing on their console; all are closed with the test."""
    said: list[str] = []
    pages: list[Page] = []

    def make(address: str, *, width: int = 1280, scheme: str = "light", zone: str = "Asia/Kathmandu") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            base_url=address,
            color_scheme=scheme,
            timezone_id=zone,
        )
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.context.close()
    assert said == []


@pytest.fixture
def serve(make_server: MakeServer, tmp_path: Path) -> Callable[..., tuple[str, list[str]]]:
    """Start a service with the given captures; returns its address and their ids, in order."""

    def start(*captures: bytes, **environment: str) -> tuple[str, list[str]]:
        names = []
        for number, content in enumerate(captures):
            names.append(f"capture-{number}.pcap")
            (tmp_path / names[-1]).write_bytes(content)
        _, address = make_server(*(tmp_path / name for name in names), **environment)
        headers = {"Authorization": f"Bearer {TOKEN}"} if environment else {}
        while True:
            found = httpx2.get(f"{address}{API}/captures", headers=headers, timeout=None).json()["captures"]
            if len(found) == len(captures) and all(each["status"] == "done" for each in found):
                by_name = {each["name"]: each["id"] for each in found}
                return address, [by_name[name] for name in names]
            time.sleep(0.05)

    return start


@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1280, "dark"), (2560, "light")])
def test_every_page_is_accessible_and_fits(
    serve: Callable[..., tuple[str, list[str]]],
    open_page: Callable[..., Page],
    capture: bytes,
    width: int,
    scheme: str,
) -> None:
    address, (first, second) = serve(capture, many_connections(150), TCPWIN_TOKEN=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    made = httpx2.post(f"{address}{API}/captures", json={"name": "without files"}, headers=headers, timeout=None)
    page = open_page(address, width=width, scheme=scheme)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    check(page)
    page.get_by_label("token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Captures")
    for path in (
        *("/", "/upload", "/rules", "/rules/TW201", "/compare", f"/compare?old={first}&new={first}"),
        *(f"/captures/{first}", f"/captures/{second}", f"/captures/{made.json()['id']}"),
        *(f"/captures/{first}/connections/0", f"/references?capture={first}&connection=0"),
    ):
        page.goto(path)
        for figure in page.locator("#figure").all():
            expect(figure).to_have_attribute("data-drawn", "true")
        check(page)


def test_links_lead_to_a_frame_and_a_span(
    serve: Callable[..., tuple[str, list[str]]], open_page: Callable[..., Page], capture: bytes
) -> None:
    address, (id,) = serve(capture)
    page = open_page(address)
    place = f"/captures/{id}/connections/0"
    page.goto(f"{place}?frame=6")
    expect(page.locator("#segments tr.marked th")).to_have_text("6")
    page.get_by_role("textbox", name="Frame").fill("7")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#segments tr.marked th")).to_have_text("7")

    page.goto(f"{place}?start_ns={START_NS + 250_000_000}&end_ns={START_NS + 2_850_000_000}")
    expect(page.locator("#segments tbody tr")).to_have_count(2)
    expect(page.locator("#span")).to_contain_text("0.250000 to 2.850000 s")
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    names = page.evaluate("document.getElementById('figure').data.filter((t) => t.customdata).map((t) => t.name)")
    assert {"receive window", "window closed"} <= set(names)
    # Keys: the whole life, and half of it.
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("0")
    expect(page.locator("#segments tbody tr")).to_have_count(10)
    expect(page).to_have_url(re.compile(r"connections/0$"))
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"start_ns=\d+&end_ns=\d+"))
    # A figure more; its address leads to it again.
    page.keyboard.press("0")
    page.get_by_label("Time and sequence").check()
    expect(page).to_have_url(re.compile("panel=time-sequence"))
    page.reload()
    expect(page.get_by_label("Time and sequence")).to_be_checked()
    expect(figure).to_have_attribute("data-shows", re.compile("time-sequence"))
    # What the evidence names is one click away.
    page.locator(".finding summary").first.click()
    page.locator(".finding a[data-frame]").first.click()
    expect(page.locator("#segments tr.marked")).to_have_count(1)


def test_theme_and_clock_are_chosen_and_kept(
    serve: Callable[..., tuple[str, list[str]]], open_page: Callable[..., Page], capture: bytes
) -> None:
    address, (id,) = serve(capture)
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


def test_a_table_is_sorted_and_searched_in_its_place(
    serve: Callable[..., tuple[str, list[str]]], open_page: Callable[..., Page]
) -> None:
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
    page.get_by_label("Show").select_option("held back by a window")
    expect(page.locator("#rows")).to_contain_text("No connection fits")
    assert page.evaluate("window.isSame")


def test_both_connections_of_a_pair_on_the_same_axes(
    serve: Callable[..., tuple[str, list[str]]], open_page: Callable[..., Page], capture: bytes
) -> None:
    address, (first, second) = serve(capture, capture)
    page = open_page(address)
    page.goto(f"/compare?old={first}&new={second}")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    assert page.evaluate("document.getElementById('figure').layout.yaxis4.matches") == "y2"
    expect(page.get_by_role("region", name="Pairs of connections").locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("region", name="Findings of both captures")).to_contain_text("stays")
    page.get_by_label("Figure").select_option("throughput")
    expect(page.locator("#figure")).to_have_attribute("data-shows", "throughput throughput")
