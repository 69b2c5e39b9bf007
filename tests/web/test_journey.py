"""The dashboard in Chromium as people use it, from dropping a file to deleting it, on a phone and a desk."""

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from live import HANG_S
from playwright.sync_api import Browser, Page, expect
from web.browsing import WAIT_MS, Serve
from web.crafted import API, capture_bytes
from web.workers import held_analysis

SIZES = {"phone": (375, 800), "desk": (1280, 900)}
ON_A_PHONE = pytest.mark.parametrize("page", ["phone", pytest.param("desk", marks=pytest.mark.nightly)], indirect=True)
ON_A_DESK = pytest.mark.parametrize("page", [pytest.param("phone", marks=pytest.mark.nightly), "desk"], indirect=True)

# Dropped files, as a browser passes them to a page.
DROP = """([place, files]) => {
  const transfer = new DataTransfer();
  for (const [name, data] of files)
    transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name));
  for (const kind of ["dragover", "drop"])
    document.querySelector(place).dispatchEvent(
      new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def address(serve: Serve) -> str:
    """Return the address of a service that shows one capture and runs one analysis at a time."""
    return serve(capture_bytes(), workers=1)[0]


@pytest.fixture(params=SIZES)
def page(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """Open a page that writes nothing to its console and contacts no other host."""
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, base_url=address)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    asked: set[str] = set()
    page.on("request", lambda sent: asked.add(sent.url))
    yield page
    context.close()
    assert said == []
    own = urlsplit(address).netloc
    assert {url for url in asked if urlsplit(url).netloc != own and not url.startswith(("data:", "blob:"))} == set()


def check(page: Page) -> None:
    """Check that axe finds nothing serious and that the page is no wider than its window."""
    found = Axe().run(page).response["violations"]
    bad = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["target"] for node in each["nodes"]]) for each in bad] == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def drag(page: Page, start: float, end: float) -> None:
    """Drag the mouse over the uppermost figure between two positions, as shares of its width."""
    plot = page.locator("#figure .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, middle, steps=5)
    page.mouse.up()


def drag_times(page: Page, start_s: float, end_s: float) -> None:
    """Drag the mouse between two times."""
    first_s, last_s = page.evaluate("document.getElementById('figure').layout.xaxis.range")
    drag(page, *((time_s - first_s) / (last_s - first_s) for time_s in (start_s, end_s)))


@ON_A_PHONE
def test_from_dropping_a_file_to_deleting_it(page: Page, capture: bytes) -> None:
    page.goto("/")
    check(page)
    page.get_by_role("link", name="Upload a capture").click()
    check(page)
    page.evaluate(DROP, ["#drop", [["after <b>.pcap", base64.b64encode(capture).decode()]]])
    expect(page.get_by_role("heading", level=1)).to_contain_text("after <b>.pcap")
    expect(page.get_by_role("heading", name="Connections")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("% of the time")
    check(page)
    place = page.url

    # The worst connection: its figure, and a span down to single segments.
    page.get_by_role("link", name="0", exact=True).first.click()
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    expect(page.locator("#figure")).to_contain_text("bytes in flight")
    assert "Share chart" not in page.content()
    expect(page.locator("#segments tbody tr")).to_have_count(10)
    check(page)
    drag_times(page, 0.25, 2.85)
    expect(page.locator("#segments tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"start_ns=\d+&end_ns=\d+"))
    # The address of a span opens it again.
    page.reload()
    expect(page.locator("#segments tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Whole life").click()
    expect(page.locator("#segments tbody tr")).to_have_count(10)

    page.goto(place)
    page.get_by_role("button", name="Create a link").click()
    expect(page.locator("#said")).to_contain_text("/shared/")
    link = page.locator("#said").inner_text().rpartition(" ")[2]
    expect(page.get_by_role("button", name="Copy link")).to_have_attribute("data-copy", link)
    expect(page.get_by_role("link", name="See what it shows")).to_have_attribute("href", link)
    guest = page.context.new_page()
    guest.goto(link)
    expect(guest.get_by_role("heading", level=1)).to_have_text("a capture")
    assert "192.0.2.1" not in guest.content()
    check(guest)
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("#said")).to_have_text("The link is revoked.")
    answer = guest.goto(link)
    assert answer.status == 404
    guest.close()

    page.get_by_label("Name", exact=True).fill("the slow backup")
    page.get_by_label("Tags", exact=True).fill("backup, night")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("the slow backup")
    expect(page.get_by_role("link", name="night")).to_be_visible()

    page.get_by_role("link", name="Compare with another").click()
    page.get_by_label("After").select_option(label="capture-0.pcap")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("same")
    check(page)

    page.goto(place)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".captured tbody tr")).to_have_count(1)


@ON_A_DESK
def test_the_progress_of_an_analysis_is_watched(page: Page, address: str, tmp_path: Path, capture: bytes) -> None:
    """While another is suspended, it waits, runs and shows its answer automatically, and another can be cancelled."""

    def send(data: bytes) -> str:
        answer = httpx2.post(f"{address}{API}/uploads", params={"name": "large.pcap"}, content=data, timeout=HANG_S)
        return str(answer.json()["id"])

    with held_analysis(os.getpid(), tmp_path / "served", send) as (large, _):
        page.goto("/upload")
        page.evaluate(DROP, ["#drop", [["watched.pcap", base64.b64encode(capture).decode()]]])
        expect(page.get_by_role("heading", level=1)).to_contain_text("watched.pcap")
        expect(page.get_by_role("status")).to_contain_text("analysis is queued")
        expect(page.get_by_role("progressbar")).to_be_visible()
        check(page)
        listed = page.context.new_page()
        listed.goto("/")
        expect(listed.locator(".captured .badge.queued")).to_have_count(1)
        other = page.context.new_page()
        other.goto(f"/captures/{large}")
        expect(other.get_by_role("status")).to_contain_text(re.compile("analysis (is running|has read)"))
        check(other)
        other.get_by_role("button", name="Cancel").click()
        expect(other.locator("main")).to_contain_text("analysis was cancelled")
        other.close()
    # The list updates automatically.
    expect(listed.locator(".captured .badge:is(.queued, .running)")).to_have_count(0)
    listed.close()
    expect(page.locator(".lead")).to_contain_text("% of the time")


@ON_A_DESK
def test_the_worst_finding_leads_to_its_segments(page: Page) -> None:
    page.goto("/")
    page.locator(".captured tbody tr").first.get_by_role("link").first.click()
    worst = page.locator(".finding").first
    expect(worst).to_contain_text("window")
    link = worst.get_by_role("link", name="connection 0")
    asked = parse_qs(urlsplit(link.get_attribute("href")).query)
    assert sorted(asked) == ["direction", "end_ns", "frame", "start_ns"]
    link.click()
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    expect(page).to_have_url(re.compile(r"/connections/0\?.*start_ns=\d+&end_ns=\d+"))
    expect(page.locator("#direction")).to_have_value(asked["direction"][0])
    expect(page.locator("#figure")).to_have_attribute("data-marked", " ".join(asked["frame"]))
    # The finding's span: the window closed in frame 6 and opened in frame 7.
    expect(page.locator("#segments tbody")).to_contain_text("6")
    check(page)


@pytest.mark.nightly
@ON_A_DESK
def test_rules_have_pages(page: Page) -> None:
    page.goto("/rules")
    check(page)
    page.get_by_role("link", name="TW201").click()
    expect(page.get_by_role("heading", name="What to do")).to_be_visible()
    check(page)


@pytest.mark.nightly
@ON_A_DESK
def test_the_references_have_a_page(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="References").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("References")
    check(page)
    page.get_by_text("cloudflare-oscil-300ms").click()
    expect(page.get_by_role("region", name="Runs of cloudflare-oscil-300ms")).to_be_visible()
    check(page)
