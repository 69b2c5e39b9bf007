"""A window scale set by the API or the form applies to all later reads of the capture."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hosts.test_given_scales import CLIENT, SHIFT, SYNS, TRANSFER, write
from web.crafted import API, settle, upload

from tcpwin_web import Settings, create_app

GIVEN = f"{CLIENT}={SHIFT}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=2))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.fixture
def capture(tmp_path: Path) -> bytes:
    return write(TRANSFER, tmp_path / "joined.pcap").read_bytes()


def window_of(client: TestClient, id: str) -> dict[str, Any]:
    answer = client.get(f"{API}/captures/{id}/connections/0")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["b_to_a"]
    return found


def test_an_upload_with_it_is_scaled_in_rows_and_details(served: TestClient, capture: bytes) -> None:
    entry = settle(served, upload(served, capture, "joined.pcap", window_scale=GIVEN)["id"])
    assert (entry["status"], entry["window_scales"]) == ("done", {CLIENT: SHIFT})
    window = window_of(served, entry["id"])
    assert (window["window_scale_state"], window["window_scale_shift"]) == ("given", SHIFT)
    assert window["receive_window_max_bytes"] == 500 << SHIFT
    rows = served.get(f"{API}/captures/{entry['id']}/connections/0/segments").json()["segments"]
    assert 500 << SHIFT in {row["window"] for row in rows}
    page = served.get(f"/captures/{entry['id']}/connections/0").text
    assert re.search(r"64(\.0)? kB", page)


def test_without_it_nothing_is_scaled(served: TestClient, capture: bytes) -> None:
    entry = settle(served, upload(served, capture, "joined.pcap")["id"])
    assert entry["window_scales"] is None
    assert window_of(served, entry["id"])["window_scale_state"] == "unknown"


def test_a_capture_that_is_made_first_keeps_it(served: TestClient, capture: bytes) -> None:
    made = served.post(f"{API}/captures", json={"name": "joined", "window_scales": [GIVEN]}).json()
    served.put(f"{API}/captures/{made['id']}/files", params={"name": "joined.pcap"}, content=capture)
    assert served.post(f"{API}/captures/{made['id']}/analysis").status_code == 202
    assert settle(served, made["id"])["status"] == "done"
    assert window_of(served, made["id"])["window_scale_state"] == "given"


def test_the_form_works_without_a_script(served: TestClient, capture: bytes) -> None:
    form = served.get("/upload").text
    token = re.search(r'name="csrf" value="([^"]*)"', form)
    assert 'name="window_scales"' in form
    answer = served.post(
        "/upload",
        data={"csrf": token[1], "window_scales": f" {GIVEN}  10.0.0.9=3 "},
        files={"files": ("joined.pcap", capture)},
        follow_redirects=False,
    )
    assert answer.status_code == 303, answer.text
    id = answer.headers["location"].rpartition("/")[2]
    assert settle(served, id)["window_scales"] == {CLIENT: SHIFT, "10.0.0.9": 3}
    assert window_of(served, id)["window_scale_state"] == "given"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["10.0.0.1"], "is not a host with its window scale"),
        (["10.0.0.1=x"], "is not a host with its window scale"),
        (["10.0.0.1=15"], "0 to 14"),
        (["server=7"], "not an IP address"),
        (["10.0.0.1=7", "10.0.0.1=8"], "both 7 and 8"),
    ],
)
def test_an_invalid_scale_is_refused_and_leaves_nothing(
    served: TestClient, capture: bytes, given: list[str], said: str
) -> None:
    before = served.get(f"{API}/captures").json()["total"]
    answer = served.post(f"{API}/uploads", params={"name": "joined.pcap", "window_scale": given}, content=capture)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert served.get(f"{API}/captures").json()["total"] == before


def test_a_handshake_that_says_otherwise_wins_aloud(served: TestClient, tmp_path: Path) -> None:
    whole = write([*SYNS, *TRANSFER], tmp_path / "whole.pcap").read_bytes()
    entry = settle(served, upload(served, whole, "whole.pcap", window_scale=f"{CLIENT}=3")["id"])
    assert entry["status"] == "failed"
    assert CLIENT in entry["failure"]
