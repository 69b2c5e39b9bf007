"""The page of a recorder shows its rounds, and reports when it is gone."""

import gzip
import re
import subprocess
import time
from pathlib import Path

import httpx2
import pytest
from cli.command import CAPTURES, TCPWIN
from fastapi.testclient import TestClient
from live import until
from playwright.sync_api import expect
from pydantic import ValidationError
from watch.test_live import free_port
from web.browsing import OpenPage
from web.running import Host
from web.test_axe import found_by_axe

import tcpwin
from tcpwin_web import Settings

STALLED = CAPTURES / "lab" / "zero-window-stall.pcap.gz"
PIECE_BYTES = 2000


def test_a_recorder_is_followed(host: Host, open_page: OpenPage, tmp_path: Path) -> None:
    path, port = tmp_path / "growing.pcap", free_port()
    data = gzip.decompress(STALLED.read_bytes())
    path.write_bytes(data[:PIECE_BYTES])
    recorder = subprocess.Popen(
        [TCPWIN, "watch", "--follow", path, "--every", "1s", "--metrics", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        page = open_page(host(watch=f"http://127.0.0.1:{port}"))
        page.goto("/")
        page.get_by_role("link", name="Live").click()
        status = page.get_by_role("status").filter(has_text="growing.pcap")
        expect(page.get_by_role("heading", name="Live")).to_be_visible()
        table = page.get_by_role("table")
        for written in range(PIECE_BYTES, len(data), PIECE_BYTES):
            with path.open("ab") as file:
                file.write(data[written : written + PIECE_BYTES])
            # At the original pace: otherwise everything would be sent before anybody listens.
            time.sleep(0.05)
        expect(status).to_contain_text("packets; the last")
        row = table.get_by_role("row").nth(1)
        expect(row).to_contain_text("client ")
        expect(row).to_contain_text("Fix: ")
        assert (row.locator("svg.sketch path.window").get_attribute("d") or "").startswith("M")
        expect(page.get_by_role("listitem").filter(has_text="TW201")).to_be_visible()
        assert found_by_axe(page) == []
        recorder.kill()
        expect(page.get_by_role("status").first).to_contain_text("does not answer")
    finally:
        recorder.kill()
        recorder.wait()


@pytest.mark.nightly
def test_a_file_that_was_complete_before_anybody_looked_is_shown(
    host: Host, open_page: OpenPage, tmp_path: Path
) -> None:
    path, port = tmp_path / "complete.pcap", free_port()
    path.write_bytes(gzip.decompress(STALLED.read_bytes()))
    recorder = subprocess.Popen(
        [TCPWIN, "watch", "--follow", path, "--every", "1s", "--metrics", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        packets = f"tcpwin_watch_packets_total {tcpwin.analyze(path).capture.packets}\n"
        until(lambda: packets in metrics(port))
        page = open_page(host(watch=f"http://127.0.0.1:{port}"))
        page.goto("/watch")
        expect(page.get_by_role("status").first).to_contain_text("complete.pcap")
        row = page.get_by_role("table").get_by_role("row").nth(1)
        expect(row).to_contain_text("Fix: ")
        expect(row.locator("svg.sketch path.window")).to_have_attribute("d", re.compile("^M"))
    finally:
        recorder.kill()
        recorder.wait()


def metrics(port: int) -> str:
    """Return the recorder's metrics; empty until it listens."""
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=None).text
    except httpx2.ConnectError:
        return ""


def test_without_a_recorder_there_is_no_page(client: TestClient) -> None:
    for path in ("/watch", "/watch/events"):
        assert client.get(path).status_code == 404
    assert "/watch" not in client.get("/").text


def test_an_invalid_address_of_a_recorder_is_refused() -> None:
    for address in ("127.0.0.1:9464", "https://x:1", "http://x", "http://x:1/path", "http://x:99999"):
        with pytest.raises(ValidationError, match=r"not an address such as http://127\.0\.0\.1:9464"):
            Settings(watch=address)
