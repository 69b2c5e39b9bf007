"""Analysing part of an upload, by the API and by the form; the page says so, and later requests use the same part."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from scapy.packet import Packet
from web.browsing import OpenPage, Serve
from web.crafted import API, CLIENT, SERVER, segment, settle, upload, written, zero_window_connection
from web.test_journey import check

from tcpwin_web import Settings, create_app

OTHER = (CLIENT[0], 40001)
"""A second client port: its connection begins ten seconds after the other one."""


def second_connection() -> list[Packet]:
    return [
        segment(10.0, OTHER, "S", 1, 0, window=8000),
        segment(10.1, SERVER, "SA", 1, 2, window=8000),
        segment(10.1, OTHER, "A", 2, 2, window=8000),
    ]


def both() -> bytes:
    packets = [*zero_window_connection(), *second_connection()]
    # The server's answers go to the first client port; here they are redirected to the second.
    for packet in packets[-3:]:
        if packet["TCP"].sport == SERVER[1]:
            packet["TCP"].dport, packet["IP"].dst = OTHER[1], OTHER[0]
        else:
            packet["TCP"].dport, packet["IP"].dst = SERVER[1], SERVER[0]
    return written(packets)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=2))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def ports(client: TestClient, id: str) -> list[int]:
    rows = client.get(f"{API}/captures/{id}/connections").json()["connections"]
    return sorted(row["a_port"] for row in rows)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [40000, 40001]),
        ({"filter": "port 40001"}, [40001]),
        ({"filter": "host 198.51.100.2 and not port 40001"}, [40000]),
        ({"from": "10"}, [40001]),
        ({"to": "5"}, [40000]),
        ({"from": "2023-11-14T22:13:29Z", "to": "22:14:00"}, [40001]),
        ({"filter": "port 40000", "from": "9"}, []),
    ],
)
def test_only_the_requested_part_is_examined(served: TestClient, asked: dict[str, str], expected: list[int]) -> None:
    entry = settle(served, upload(served, both(), "both.pcap", **asked)["id"])
    assert (entry["status"], ports(served, entry["id"])) == ("done", expected), entry
    kept = {"filter": asked.get("filter"), "start": asked.get("from"), "end": asked.get("to")}
    assert entry["selection"] == (kept if asked else None)
    page = served.get(f"/captures/{entry['id']}")
    assert page.status_code == 200
    assert ("Selected: " in page.text) == bool(asked)
    if expected:
        # Later requests use the same packets: details, segments with frame numbers of the whole capture, slices.
        last = served.get(f"{API}/captures/{entry['id']}/connections/{len(expected) - 1}/segments").json()["segments"]
        assert [row["frame"] for row in last] == ([11, 12, 13] if expected[-1] == 40001 else list(range(1, 11)))
        assert served.get(f"{API}/captures/{entry['id']}/slice", params={"connection": 0}).status_code == 200
    for form in ("html", "md", "json"):
        report = served.get(f"{API}/captures/{entry['id']}/report", params={"format": form})
        assert report.status_code == 200, report.text


def test_a_capture_that_is_made_first_keeps_it_and_each_database(client: TestClient) -> None:
    new = {"name": "both", "filter": " port 40001 ", "from": "1", "to": ""}
    made = client.post(f"{API}/captures", json=new).json()
    assert made["selection"] == {"filter": "port 40001", "start": "1", "end": None}
    client.put(f"{API}/captures/{made['id']}/files", params={"name": "both.pcap"}, content=both())
    assert client.post(f"{API}/captures/{made['id']}/analysis").status_code == 202
    assert settle(client, made["id"])["status"] == "done"
    assert ports(client, made["id"]) == [40001]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"filter": "host and port"}, "syntax error"),
        ({"filter": "port 99999999"}, "99999999"),
        ({"filter": "x" * 2001}, "2000"),
        ({"filter": "port 80\0"}, "NUL"),
        ({"filter": "ip protochain 6"}, "loops"),
        ({"from": "yesterday"}, "invalid time 'yesterday'; write 12.5"),
        ({"to": "25:00"}, "invalid time"),
        ({"from": "5", "to": "2"}, "the span ends (2) before it begins (5)"),
    ],
)
def test_what_selects_nothing_is_refused_and_leaves_nothing(
    served: TestClient, asked: dict[str, str], said: str
) -> None:
    before = served.get(f"{API}/captures").json()["total"]
    for answer in (
        served.post(f"{API}/uploads", params={"name": "x.pcap", **asked}, content=both()),
        served.post(f"{API}/captures", json={"name": "x", **asked}),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert said in answer.text
    assert served.get(f"{API}/captures").json()["total"] == before


def test_a_filter_of_another_link_type_fails_aloud(served: TestClient) -> None:
    entry = settle(served, upload(served, both(), "both.pcap", filter="wlan type mgt")["id"])
    assert entry["status"] == "failed"
    assert "wlan type mgt" in entry["failure"]
    assert "link type 1" in entry["failure"]


def test_the_form_works_without_a_script(served: TestClient) -> None:
    form = served.get("/upload").text
    token = re.search(r'name="csrf" value="([^"]*)"', form)
    assert token is not None

    def post(**fields: str) -> Any:
        return served.post(
            "/upload", data={"csrf": token[1], **fields}, files={"files": ("both.pcap", both())}, follow_redirects=False
        )

    answer = post(filter="port 40001", **{"from": "", "to": " 11 s"})
    assert answer.status_code == 422
    answer = post(filter="port 40001", to="11s")
    assert answer.status_code == 303, answer.text
    id = answer.headers["location"].rpartition("/")[2]
    assert settle(served, id)["selection"] == {"filter": "port 40001", "start": None, "end": "11s"}
    assert ports(served, id) == [40001]


@pytest.mark.nightly
def test_selected_by_hand(show: Serve, open_page: OpenPage) -> None:
    address, _ = show(both())
    page = open_page(address, width=375)
    page.goto("/upload")
    check(page)
    page.locator("summary").click()
    page.get_by_label("Only packets that match a filter").fill("port 40001")
    page.get_by_label("Only from").fill("5")
    page.set_input_files("#files", {"name": "both.pcap", "mimeType": "", "buffer": both()})
    expect(page.get_by_text("Selected: 3 packets, filter 'port 40001', from 5.")).to_be_visible()
    check(page)
