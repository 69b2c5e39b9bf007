"""Wording of pages for captures that are small, one-sided, or nearly empty."""

import html
import re
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from scapy.packet import Packet
from spread import some_by_day
from web.crafted import API, CLIENT, SERVER, segment, settle, upload, written, zero_window_connection

PAGE = {"accept": "text/html"}


def words(client: TestClient, place: str) -> str:
    """Return the text of a page, with markup replaced by spaces."""
    page = client.get(place, headers=PAGE)
    assert page.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page.text)))


def pages(client: TestClient, packets: Sequence[Packet]) -> tuple[str, str, str]:
    """Return the id of a capture of these packets, and the texts of its page and of its first connection's page."""
    id = settle(client, upload(client, written(packets))["id"])["id"]
    return id, words(client, f"/captures/{id}"), words(client, f"/captures/{id}/connections/0")


def test_uncaptured_data_is_not_shown_as_zero(client: TestClient) -> None:
    """The acknowledging side was not captured: 2,000 bytes were sent, and no ACK shows how much arrived."""
    *one_sided, last_ack = [each for each in zero_window_connection() if each["TCP"].sport == CLIENT[1]]
    id, capture, connection = pages(client, one_sided)
    assert re.search(r"192\.0\.2\.1:40000 → 198\.51\.100\.2:80 (not known|nothing) .*– 2 kB sent .* 2\.9 s ", capture)
    assert "half closed" in capture
    assert "half_closed" not in capture
    # The last ACK is one higher: the server's FIN.
    assert "half closed" not in pages(client, [*one_sided, last_ack])[1]
    assert "Capture quality: 1 connection with only one side captured." in capture
    assert "sent 2 kB – acknowledged not captured" in connection
    assert "goodput" not in connection.partition("Measured client's data")[2].partition("segments")[0]
    assert "capture point unknown" in connection
    share = client.post(f"{API}/captures/{id}/shares", json={}).json()
    assert "2 kB sent" in words(client, share["path"])


def test_one_item_is_singular(client: TestClient) -> None:
    id, capture, connection = pages(client, zero_window_connection()[:1])
    assert "1 packet 1 connection" in capture
    assert "Where the time went Too short to judge." in connection
    # A SYN alone shows what b may send, but nothing about a.
    assert "largest segment – 1 kB" in connection
    text = client.get(f"{API}/captures/{id}/connections/1").json()["detail"]
    assert text == "This capture has 1 connection, numbered from 0."


def test_a_whole_capture_is_said_to_be_whole(client: TestClient) -> None:
    _, capture, connection = pages(client, zero_window_connection())
    assert "Capture quality: no drops, gaps, duplicates or damage found." in capture
    assert any(f"captured {where}" in connection for where in ("near", "in between", "on the host of both ends"))
    assert "near between" not in connection


def test_a_clock_that_starts_in_1970_has_a_time(client: TestClient) -> None:
    packets = zero_window_connection()
    for packet in packets:
        packet.time -= 1_700_000_000
    _, capture, _ = pages(client, packets)
    assert "1970-01-01 00:00" in capture


@pytest.mark.parametrize("options", some_by_day([[], [("MSS", 0)]], of=2))
def test_an_unknown_segment_size_is_not_shown_as_zero(client: TestClient, options: list[tuple[str, int]]) -> None:
    refused = [
        segment(0.0, CLIENT, "S", 999, 0, window=8000, options=options),
        segment(0.1, SERVER, "RA", 0, 1000, window=0),
    ]
    _, _, connection = pages(client, refused)
    assert "largest segment 0 B" not in connection


def test_behind_the_end_of_a_list_nothing_is_denied(client: TestClient) -> None:
    """For example after the last entry of the second page was deleted."""
    id, _, _ = pages(client, zero_window_connection())
    for place in ("/", f"/captures/{id}"):
        text = words(client, f"{place}?offset=50")
        assert "The list ends at 1." in text
        assert "No captures yet" not in text
        assert "No TCP connection" not in text
