"""Transfer size of pages in chromium, and caching: nothing is fetched twice."""

import gzip
import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.conftest import MakeClient
from web.crafted import API, many_connections

SLOW_READER = (ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes()
FIRST_PAGE_BYTES, FIRST_FIGURE_BYTES = 30_000, 700_000
ANOTHER_BYTES = 60_000
PACKED = {"Accept-Encoding": "gzip"}


class Wire:
    """Counts a page's network traffic, including heads."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        self.urls: dict[str, str] = {}
        session = page.context.new_cdp_session(page)
        session.on("Network.responseReceived", self._came)
        session.on("Network.loadingFinished", self._ended)
        session.send("Network.enable")

    def _came(self, event: dict[str, Any]) -> None:
        self.urls[event["requestId"]] = event["response"]["url"]

    def _ended(self, event: dict[str, Any]) -> None:
        self.bytes += int(event["encodedDataLength"])


def test_the_first_page_and_the_first_figure_are_light(serve: Serve, open_page: OpenPage) -> None:
    address, (slow, many) = serve(SLOW_READER, many_connections(50))
    page = open_page(address)
    wire = Wire(page)
    page.goto("/")
    page.wait_for_load_state("networkidle")
    assert 5_000 < wire.bytes < FIRST_PAGE_BYTES, wire.urls
    page.goto(f"/captures/{slow}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    page.wait_for_load_state("networkidle")
    assert wire.bytes < FIRST_FIGURE_BYTES, wire.urls
    # Another page with a figure loads nothing that is already cached.
    before = wire.bytes
    page.goto(f"/captures/{many}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    page.wait_for_load_state("networkidle")
    assert wire.bytes - before < ANOTHER_BYTES


def test_assets_with_their_hash_in_the_address_are_cached_for_good(make_client: MakeClient) -> None:
    client = make_client()
    links = re.findall(r'(?:href|src)="(/static/[^"]+)"', client.get("/").text)
    assert links
    for link in links:
        answer = client.get(link, headers=PACKED)
        assert (answer.status_code, answer.headers["content-encoding"]) == (200, "gzip")
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        plain = client.get(link.partition("?")[0], headers={"Accept-Encoding": "identity"})
        assert (plain.content, "content-encoding" in plain.headers) == (answer.content, False)
        assert plain.headers["cache-control"] == "no-cache"
        again = client.get(link, headers={**PACKED, "If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    # Another version's address gets the newest file, which is not cached under it.
    assert client.get("/static/page.css?v=0").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("wanted", ["gzip", "identity"])
def test_pages_and_documents_are_compressed_where_the_client_takes_it(show: Serve, wanted: str) -> None:
    address, (slow, _) = show(SLOW_READER, many_connections(50))
    place = f"{API}/captures/{slow}"
    for path, is_text in (
        (f"/captures/{slow}", True),
        (f"{place}/connections/0/figures/timeline", True),
        (f"{place}/report?format=md", True),
        (f"{place}/slice?connection=0", False),
        (f"{place}/connections/0/series/flight?format=arrow", False),
        ("/healthz", False),
    ):
        with httpx2.stream("GET", f"{address}{path}", headers={"Accept-Encoding": wanted}, timeout=None) as answer:
            content = b"".join(answer.iter_raw())
        is_packed = answer.headers.get("content-encoding") == "gzip"
        assert (answer.status_code, is_packed) == (200, is_text and wanted == "gzip"), path
        assert len(content) == int(answer.headers["content-length"])
        if is_packed:
            assert len(gzip.decompress(content)) > 2 * len(content)
