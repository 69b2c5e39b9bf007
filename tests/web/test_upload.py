"""Uploads in Chromium: dropped on any page, several together, with progress, cancelled, refused."""

import base64
import re

import pytest
from playwright.sync_api import Browser, Page, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.test_journey import DROP, check

SETTINGS = b"net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_window_scaling = 1\n"
SLOW_BYTES_S = 60_000
PROGRESS = re.compile(r"Sending big\.pcap: [\d.]+ k?B of [\d.]+ [kM]B, [\d.]+ k?B/s, \d+ s left")


def drop(page: Page, place: str, *files: tuple[str, bytes]) -> None:
    page.evaluate(DROP, [place, [[name, base64.b64encode(data).decode()] for name, data in files]])


def slow_down(page: Page) -> None:
    """Limit the browser's upload rate."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": SLOW_BYTES_S}
    session.send("Network.emulateNetworkConditions", conditions)


def test_files_dropped_on_a_page_are_analysed_together(serve: Serve, open_page: OpenPage, capture: bytes) -> None:
    address, _ = serve(capture)
    page = open_page(address)
    for place in ("/", "/rules"):
        page.goto(place)
        drop(page, "main", ("both.pcap", capture), ("sysctl.txt", SETTINGS))
        expect(page.get_by_role("heading", level=1)).to_contain_text("both.pcap")
        expect(page.get_by_role("heading", name="Hosts")).to_be_visible()
    page.goto("/")
    expect(page.locator(".captured tbody tr").filter(has_text="both.pcap")).to_have_count(2)


@pytest.mark.nightly
def test_an_upload_shows_progress_accepts_more_files_and_can_be_cancelled(
    serve: Serve, open_page: OpenPage, capture: bytes
) -> None:
    address, _ = serve(capture)
    big = (ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes() + bytes(400_000)
    page = open_page(address)
    page.goto("/")
    slow_down(page)
    drop(page, "main", ("big.pcap", big))
    status = page.get_by_role("region", name="Upload").get_by_role("status")
    expect(status).to_have_text(PROGRESS)
    drop(page, "main", ("more.pcap", bytes(600_000)))
    expect(status).to_contain_text(re.compile(r"of 1\.\d+ MB"))
    check(page)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_have_text("Cancelled.")
    page.reload()
    expect(page.locator(".captured tbody tr")).to_have_count(1)


@pytest.mark.nightly
def test_a_refused_file_is_reported_where_it_was_dropped(serve: Serve, browser: Browser, capture: bytes) -> None:
    address, _ = serve(capture)
    # A separate page: the browser reports failed requests on the console.
    page = browser.new_page(base_url=address, viewport={"width": 375, "height": 800})
    page.goto("/")
    drop(page, "main", ("empty.pcap", b""))
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("empty.pcap: an empty file.")
    expect(alert).to_be_in_viewport()
    check(page)
    # Another try is a new upload.
    drop(page, "main", ("whole.pcap", capture))
    expect(page.get_by_role("heading", level=1)).to_contain_text("whole.pcap")
    page.close()
