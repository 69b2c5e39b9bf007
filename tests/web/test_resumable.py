"""Uploads that resume after a cut connection: tus 1.0.0 by the API on both databases, and pages in Chromium."""

import base64
import gzip
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import until
from playwright.sync_api import Browser, Page, expect
from reference import ROOT
from web.browsing import WAIT_MS, Serve
from web.conftest import MakeClient
from web.crafted import API, settle
from web.running import Host

from tcpwin_web import Settings, create_app

TUS = {"Tus-Resumable": "1.0.0"}
PART = {**TUS, "Content-Type": "application/offset+octet-stream"}


def new_capture(client: Any) -> str:
    return str(client.post(f"{API}/captures", json={"name": "a.pcap"}).json()["id"])


def begin(client: Any, capture_id: str, length: int, name: str = "a.pcap", **headers: str) -> Any:
    upload = {"Upload-Length": str(length), "Upload-Metadata": f"filename {base64.b64encode(name.encode()).decode()}"}
    return client.post(f"{API}/captures/{capture_id}/uploads", headers={**TUS, **upload, **headers})


def begun(client: Any, length: int) -> tuple[str, str]:
    """Create a capture and start an upload to it; return its address."""
    id = new_capture(client)
    return id, begin(client, id, length).headers["location"]


def patch(client: Any, place: str, offset: int, content: bytes) -> Any:
    return client.patch(place, headers={**PART, "Upload-Offset": str(offset)}, content=content)


def offset(client: Any, place: str) -> int:
    return int(client.head(place, headers=TUS).headers["upload-offset"])


def test_a_file_in_parts_is_the_file_in_one(client: TestClient, capture: bytes) -> None:
    id = new_capture(client)
    made = begin(client, id, len(capture))
    assert (made.status_code, made.headers["upload-offset"]) == (201, "0")
    place = made.headers["location"]
    for start in range(0, len(capture), 100):
        part = capture[start : start + 100]
        answer = patch(client, place, start, part)
        assert answer.status_code == 204, answer.text
        assert (answer.headers["upload-offset"], answer.headers["tus-resumable"]) == (str(start + len(part)), "1.0.0")
        assert answer.headers["upload-expires"].endswith("GMT")
    # A client that missed the final answer can ask.
    assert offset(client, place) == len(capture)
    assert patch(client, place, len(capture), b"").status_code == 204
    (file,) = client.get(f"{API}/captures/{id}").json()["files"]
    whole = new_capture(client)
    client.put(f"{API}/captures/{whole}/files", params={"name": "a.pcap"}, content=capture)
    (same,) = client.get(f"{API}/captures/{whole}").json()["files"]
    assert {**file, "id": ""} == {**same, "id": ""}
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["packets"] == 10
    assert client.delete(place, headers=TUS).status_code == 204
    assert client.get(f"{API}/captures/{id}").json()["files"]
    actions = [(each["action"], each["subject"]) for each in client.get(f"{API}/audit").json()["entries"]]
    assert actions.count(("file.upload", id)) == 1


def test_what_it_says_it_knows(client: TestClient) -> None:
    answer = client.options(f"{API}/captures/{new_capture(client)}/uploads")
    assert (answer.status_code, answer.headers["tus-version"]) == (204, "1.0.0")
    assert answer.headers["tus-extension"] == "creation,termination,expiration"
    assert int(answer.headers["tus-max-size"]) == 4 << 30


def test_invalid_protocol_requests_are_refused_and_break_nothing(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(max_upload_bytes=100_000)
    id, place = begun(client, len(capture))
    old = client.head(place)
    assert (old.status_code, old.headers["tus-version"]) == (412, "1.0.0")
    assert begin(client, id, 100_001).status_code == 413
    assert begin(client, id, 0).status_code == 422
    assert client.post(f"{API}/captures/{id}/uploads", headers=TUS).status_code == 400
    assert begin(client, id, 5, **{"Upload-Metadata": "filename *"}).status_code == 400
    assert begin(client, id, 5, **{"Upload-Metadata": "kind cm9vdA=="}).status_code == 400
    assert begin(client, "none", 5).status_code == 404
    assert client.head(f"{API}/captures/{new_capture(client)}/uploads/{place.rsplit('/')[-1]}", headers=TUS).is_error
    plain = client.patch(place, headers={**TUS, "Upload-Offset": "0"}, content=capture)
    assert (plain.status_code, plain.headers["tus-resumable"]) == (415, "1.0.0")
    assert client.patch(place, headers=PART, content=capture).status_code == 400
    assert patch(client, place, 7, capture[7:]).status_code == 409
    assert patch(client, place, 0, capture + b"more").status_code == 413
    # Bytes received before stay, and the file can be completed.
    there = offset(client, place)
    assert patch(client, place, there, capture[there:]).status_code == 204
    assert len(client.get(f"{API}/captures/{id}").json()["files"]) == 1
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    settle(client, id)
    assert begin(client, id, 5).status_code == 409


def test_a_file_of_another_kind_is_refused_once_complete(client: TestClient) -> None:
    content = b"\xd4\xc3\xb2\xa1 no capture" * 100
    id, place = begun(client, len(content))
    answer = patch(client, place, 0, content)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["detail"].startswith("a.pcap: ")
    assert client.head(place, headers=TUS).status_code == 404
    assert not client.get(f"{API}/captures/{id}").json()["files"]


def test_what_comes_after_the_end_of_a_capture_is_taken_too(client: TestClient, capture: bytes) -> None:
    content = capture + bytes(300_000)
    id, place = begun(client, len(content))
    for start in range(0, len(content), 100_000):
        assert patch(client, place, start, content[start : start + 100_000]).status_code == 204
    assert offset(client, place) == len(content)
    assert len(client.get(f"{API}/captures/{id}").json()["files"]) == 1


def test_unfinished_ones_are_bounded_and_deleted_ones_make_room(
    make_client: MakeClient, capture: bytes, tmp_path: Path
) -> None:
    client = make_client(uploads=4)
    id = new_capture(client)
    places = [begin(client, id, len(capture)).headers["location"] for _ in range(3)]
    assert patch(client, places[0], 0, capture[:50]).status_code == 204
    full = begin(client, id, len(capture))
    assert (full.status_code, "unfinished" in full.json()["detail"]) == (503, True)
    assert "retry-after" in full.headers
    # Uploads in one request have their own slots.
    assert client.post(f"{API}/uploads", params={"name": "b.pcap"}, content=capture).status_code == 202
    override = {**TUS, "X-HTTP-Method-Override": "DELETE"}
    assert client.post(places[0], headers=override).status_code == 204
    assert client.head(places[0], headers=TUS).status_code == 404
    assert begin(client, id, len(capture)).status_code == 201
    until(lambda: len(list((tmp_path / "data" / "incoming").iterdir())) == 3)


def test_one_that_is_not_resumed_in_time_leaves_nothing(
    make_client: MakeClient, capture: bytes, tmp_path: Path
) -> None:
    client = make_client(resume_minutes=0.001)
    id, place = begun(client, len(capture))
    until(lambda: client.head(place, headers=TUS).status_code == 404)
    until(lambda: client.get(f"{API}/captures/{id}").status_code == 404)
    assert not list((tmp_path / "data" / "incoming").iterdir())


def test_a_service_ends_while_one_is_unfinished(database_url: str | None, capture: bytes, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "data", workers=1, database_url=database_url)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        id, place = begun(client, len(capture))
        assert patch(client, place, 0, capture[:100]).status_code == 204
    assert not list((tmp_path / "data" / "incoming").iterdir())
    with TestClient(create_app(settings), base_url="http://localhost") as again:
        assert again.head(place, headers=TUS).status_code == 404
        assert again.get(f"{API}/captures/{id}").json()["status"] == "failed"


# ---- cut connections -----------------------------------------------------------------------------------------------


PAUSE_S, HELD_S = 0.005, 0.3


class Cutter:
    """A slow network between client and service that cuts each connection after a number of client bytes.

    Attributes:
        cut_after: bytes; None cuts nothing.
    """

    def __init__(self, address: str, cut_after: int | None) -> None:
        place = urlsplit(address)
        self._service = (str(place.hostname), int(place.port or 0))
        self.cut_after = cut_after
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with ExitStack() as stack, suppress(OSError):
            stack.enter_context(client)
            service = stack.enter_context(socket.create_connection(self._service))
            sent = 0
            while True:
                for source in select.select([client, service], [], [])[0]:
                    data = source.recv(1 << 14)
                    if not data:
                        return
                    if source is client:
                        sent += len(data)
                        time.sleep(PAUSE_S)
                    (service if source is client else client).sendall(data)
                if self.cut_after is not None and sent > self.cut_after:
                    # Bytes that the service has not read by then are lost with the connection.
                    time.sleep(HELD_S)
                    return


@pytest.fixture
def cutters() -> Iterator[list[Cutter]]:
    made: list[Cutter] = []
    yield made
    for each in made:
        each.close()


def test_what_came_before_a_cut_stays(host: Host, cutters: list[Cutter]) -> None:
    content = gzip.decompress((ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes())
    address = host()
    cutters.append(Cutter(address, 200_000))
    with httpx2.Client(base_url=address, timeout=None) as client:
        id, place = begun(client, len(content))
        through = f"{cutters[0].address}{place}"
        there = 0
        while not there:
            with pytest.raises(httpx2.TransportError):
                httpx2.patch(through, headers={**PART, "Upload-Offset": "0"}, content=content, timeout=None)
            there = offset(client, place)
        assert there < len(content)
        assert patch(client, place, there, content[there:]).status_code == 204
        (file,) = client.get(f"{API}/captures/{id}").json()["files"]
        whole = new_capture(client)
        client.put(f"{API}/captures/{whole}/files", params={"name": "a.pcap"}, content=content)
        assert file["sha256"] == client.get(f"{API}/captures/{whole}").json()["files"][0]["sha256"]


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A capture that needs many connections if each is cut early."""
    path = tmp_path / "big.pcap"
    path.write_bytes(gzip.decompress((ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes()))
    return path


def choose(page: Page, file: Path) -> None:
    page.goto("/upload")
    page.get_by_label(re.compile("^Captures")).set_input_files(file)


def through(browser: Browser, address: str) -> tuple[Page, list[int]]:
    """Return a page, and the file offsets of its requests so far."""
    # A separate page: the browser reports cut connections on the console.
    page = browser.new_page(base_url=address)
    page.set_default_timeout(WAIT_MS)
    offsets: list[int] = []
    page.on("request", lambda sent: offsets.append(int(sent.headers.get("upload-offset", 0))))
    return page, offsets


NOTE_STATUS = """
new MutationObserver(() => document.querySelectorAll("[role=status]").forEach((each) => noteStatus(each.textContent)))
  .observe(document, { subtree: true, childList: true, characterData: true });
"""


def test_a_page_recovers_from_cut_connections(
    serve: Serve, browser: Browser, capture: bytes, big: Path, cutters: list[Cutter]
) -> None:
    address, _ = serve(capture)
    # More than one connection passes.
    cutters.append(cutter := Cutter(address, big.stat().st_size // 2))
    page, offsets = through(browser, cutter.address)
    # It is shown for a second, which a slow machine may miss.
    statuses: list[str] = []
    page.expose_function("noteStatus", lambda text: statuses.append(text))
    page.add_init_script(NOTE_STATUS)
    choose(page, big)
    expect(page.get_by_role("heading", level=1)).to_contain_text("big.pcap")
    page.wait_for_url(re.compile("/captures/"))
    assert "The connection to the service was lost. Trying again in 1 s." in statuses
    assert max(offsets) > 0
    # The page reloads at the end of the analysis; a waiting upload must survive that.
    page.wait_for_function("() => !Object.keys(localStorage).some((key) => key.startsWith('tcpwin-upload'))")
    page.close()


@pytest.mark.nightly
def test_a_reloaded_page_continues_with_the_same_file(
    serve: Serve, browser: Browser, capture: bytes, big: Path, cutters: list[Cutter]
) -> None:
    address, _ = serve(capture)
    cutters.append(cutter := Cutter(address, big.stat().st_size // 5))
    page, offsets = through(browser, cutter.address)
    choose(page, big)
    while not any(offsets):
        page.wait_for_event("request")
    # The previous page would continue while it is shown and, without cuts, finish at once.
    page.goto("about:blank")
    (waiting,) = httpx2.get(f"{address}{API}/captures", params={"status": "open"}).json()["captures"]
    cutter.cut_after = None
    offsets.clear()
    choose(page, big)
    page.wait_for_url(re.compile(f"/captures/{waiting['id']}"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("big.pcap")
    assert max(offsets) > 0
    page.close()


@pytest.mark.nightly
def test_cancelling_while_the_connection_is_away_leaves_nothing(
    serve: Serve, browser: Browser, capture: bytes, big: Path, cutters: list[Cutter]
) -> None:
    address, _ = serve(capture)
    # Each connection passes so little that the upload is mostly offline.
    cutters.append(cutter := Cutter(address, big.stat().st_size // 50))
    page, _ = through(browser, cutter.address)
    choose(page, big)
    expect(page.get_by_role("region", name="Upload").get_by_role("status")).to_contain_text("Trying again")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_have_text("Cancelled.")
    until(lambda: len(httpx2.get(f"{address}{API}/captures").json()["captures"]) == 1)
    page.close()
