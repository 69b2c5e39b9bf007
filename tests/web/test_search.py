"""Searches over all captures, and the history of a pair of hosts and of a tag: rows, words, pages."""

import html
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from web.browsing import OpenPage, Serve
from web.crafted import API, CLIENT, SERVER, many_connections, segment, settle, upload, written, zero_window_connection
from web.postgres import ON_BOTH
from web.test_journey import check

from tcpwin_web.history import Point, judge_change
from tcpwin_web.results import host_pairs
from tcpwin_web.storage.models import Capture

ZERO = written(zero_window_connection())


def healthy(day: int) -> bytes:
    """The same data, acknowledged in a tenth of the time, this many days later."""
    packets = [*zero_window_connection()[:5], segment(0.21, SERVER, "A", 5000, 3000, window=2000)]
    packets += [
        segment(0.4, CLIENT, "FA", 3000, 5000, window=8000),
        segment(0.5, SERVER, "FA", 5000, 3001, window=2000),
        segment(0.5, CLIENT, "A", 3001, 5001, window=8000),
    ]
    for packet in packets:
        packet.time += day * 86_400
    return written(packets)


def add(client: TestClient, data: bytes, name: str, *tags: str) -> str:
    entry = settle(client, upload(client, data, name, tag=list(tags))["id"])
    assert entry["status"] == "done", entry
    return str(entry["id"])


def search(client: TestClient, **asked: Any) -> list[tuple[str, str, str, int]]:
    answer = client.get(f"{API}/search", params=asked)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["total"] >= len(found["found"])
    return sorted((row["capture"], row["client"], row["server"], row["port"]) for row in found["found"])


@ON_BOTH
def test_findings_present_and_absent(client: TestClient) -> None:
    id = add(client, ZERO, "zero", "before")
    add(client, many_connections(3), "many", "scan")
    zero = ("zero", "192.0.2.1", "198.51.100.2", 80)
    many = [("many", f"10.0.0.{number}", "198.51.100.2", 80) for number in range(3)]
    assert search(client) == [*many, zero]
    assert search(client, address="192.0.2.1") == [zero]
    # A complete address matches only itself, not longer ones that begin with it.
    assert search(client, address="10.0.0.") == many
    assert search(client, address="0.0.") == []
    assert search(client, address="10.0.0.1") == [many[1]]
    assert search(client, address="198.51.100.2", port=80) == [*many, zero]
    assert search(client, port=40000) == []
    assert search(client, tag="Before") == [zero]
    assert search(client, tag="before", address="10.0.0.1") == []
    assert search(client, limited_by="sender_application", port=80) == [zero]
    assert search(client, limited_by="path_loss") == []
    assert len(client.get(f"{API}/search", params={"limit": 2, "offset": 3}).json()["found"]) == 1
    (row,) = client.get(f"{API}/search", params={"address": "192.0.2.1"}).json()["found"]
    # All data was acknowledged before the window closed: nothing to fix.
    assert (row["connections"], row["problems"], row["data_bytes"], row["worst"]) == (1, 0, 2000, 0)
    assert (row["duration_ns"], row["start_ns"]) == (3_000_000_000, 1_700_000_000_000_000_000)
    (own,) = client.get(f"{API}/captures/{id}/connections").json()["connections"]
    assert (row["lost_ns"], row["rtt_ns"]) == (own["verdict"]["lost_ns"], own["path_rtt_ns"])
    assert row["rate_bps"] == pytest.approx(own["goodput_bps"], abs=1)


@ON_BOTH
def test_a_host_is_found_by_its_name(client: TestClient) -> None:
    id = client.post(f"{API}/captures", json={"name": "a case"}).json()["id"]
    counters = b"t,PruneCalled,TCPRcvCollapsed\n1700000000.0,0,0\n1700000003.0,90,9000\n"
    for name, content in (("nstat_db-prod-7.csv", counters), ("zero.pcap", ZERO)):
        assert client.put(f"{API}/captures/{id}/files", params={"name": name}, content=content).status_code == 201
    client.post(f"{API}/captures/{id}/analysis")
    assert settle(client, id)["status"] == "done"
    assert [row[0] for row in search(client, host="DB-prod")] == ["a case"]
    assert search(client, host="%") == search(client, host="other") == []


def test_a_wrong_question_is_answered_in_words(client: TestClient) -> None:
    for path, asked, said in (
        ("search", {"address": "server"}, "neither an address such as 10.0.0.1"),
        ("search", {"address": "x."}, "not the beginning of an address"),
        ("search", {"address": "10.0.0.256"}, "is neither an address"),
        ("search", {"limited_by": "weather"}, "receiver_window"),
        ("search", {"port": 70000}, "65535"),
        ("history", {"a": "10.0.0.1"}, "two hosts"),
        ("history", {}, "two hosts"),
        ("history", {"a": "10.0.0.1", "b": "10.0.0.2", "tag": "x"}, "two hosts"),
        ("history", {"a": "10.0.0.1", "b": "me"}, "is neither an address"),
    ):
        answer = client.get(f"{API}/{path}", params=asked)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), asked
        assert said in answer.text
        if "address" in asked:
            # The page shows it next to the field during typing.
            page = client.get("/search", params=asked)
            assert (page.status_code, said in html.unescape(page.text)) == (200, True)


@ON_BOTH
def test_it_got_better_after_the_change(client: TestClient) -> None:
    after = add(client, healthy(2), "after", "shop")
    before = add(client, ZERO, "before", "shop")
    add(client, many_connections(2), "other")
    pair = {"a": SERVER[0], "b": CLIENT[0]}
    points = client.get(f"{API}/history", params=pair).json()["points"]
    # Ordered by packet time, not by upload; either end may be named first.
    assert [(point["capture_id"], point["change"]) for point in points] == [(before, None), (after, "better")]
    assert points[1]["rate_bps"] > 5 * points[0]["rate_bps"]
    assert client.get(f"{API}/history", params={"tag": "shop"}).json()["points"] == points
    assert client.get(f"{API}/history", params={**pair, "port": 443}).json()["points"] == []
    # A repeated analysis is listed once, and a deleted one is gone.
    assert client.post(f"{API}/captures/{after}/analysis").status_code == 202
    settle(client, after)
    assert client.get(f"{API}/history", params=pair).json()["points"] == points
    assert client.delete(f"{API}/captures/{after}").status_code == 204
    assert [point["capture_id"] for point in client.get(f"{API}/history", params=pair).json()["points"]] == [before]


@pytest.mark.parametrize(
    ("lost", "rates", "said"),
    [
        ((0.2, 0.5), (100, 150), "better"),
        ((0.5, 0.2), (100, 80), "worse"),
        ((0.5, 0.2), (100, 105), "better"),
        ((0.2, 0.5), (100, 95), "worse"),
        ((0.2, 0.25), (100, 105), "about the same"),
        ((0.5, 0.2), (None, 80), "better"),
        ((0.2, 0.2), (None, 80), "about the same"),
    ],
)
def test_better_is_a_higher_rate_else_less_time_lost(
    lost: tuple[float, float], rates: tuple[int | None, int], said: str
) -> None:
    def point(share: float, rate: int | None) -> Point:
        return Point(Capture(), 0, 1, 0, int(share * 1000), 1000, 0, rate, None, ["none"])

    assert judge_change(point(lost[0], rates[0]), point(lost[1], rates[1])) == said


def test_of_too_many_pairs_those_that_lost_most_are_kept(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(host_pairs, "MOST_PAIRS", 2)
    id = add(client, many_connections(5), "many")
    folder = next(each for each in tmp_path.rglob(id) if each.is_dir())
    rows, total = host_pairs.group_by_hosts(folder)
    assert (len(rows), total) == (2, 5)


@pytest.mark.nightly
def test_searched_by_hand(serve: Serve, open_page: OpenPage) -> None:
    address, (before, after, _) = serve(ZERO, healthy(2), many_connections(3))
    page = open_page(address, width=375)
    page.goto("/")
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("Address").fill("192.0.2.1")
    page.get_by_label("Limited by").select_option("sender_application")
    rows = page.get_by_role("region", name="Search results").locator("tbody tr")
    expect(rows).to_have_count(2)
    check(page)
    page.get_by_label("Address").fill("nobody")
    expect(page.get_by_role("alert")).to_contain_text("'nobody' is neither an address")
    page.goto("/search?address=192.0.2.1")
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="history of 192.0.2.1 and 198.51.100.2").first.click()
    expect(page.locator(".lead")).to_contain_text("better")
    expect(page.locator(".trend rect")).to_have_count(4)
    check(page)
    page.get_by_role("link", name="Compare both").click()
    assert page.url.endswith(f"/compare?old={before}&new={after}")
