"""The API with captures whose numbers are known, on SQLite and PostgreSQL."""

import asyncio
import base64
import io
import json
import logging
import zipfile
from math import inf, nan
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import polars
import pytest
from fastapi.testclient import TestClient
from pairing.packets import read, write
from pairing.pairs import captures
from reference import ROOT
from web.crafted import API, HOSTILE_NAME, SECRET, analysed, many_connections, settle, upload

from tcpwin_web.api.captures import watch_analysis
from tcpwin_web.api.parts import json_text
from tcpwin_web.results import queries

START_NS = 1_700_000_000 * 10**9


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(f"{API}{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_upload_is_analysed_and_the_answer_matches_its_packets(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    entry = get(client, f"/captures/{id}")
    assert (entry["name"], entry["packets"], entry["connections"]) == ("zero.pcap", 10, 1)
    assert entry["uploaded_bytes"] == len(capture)
    answer = get(client, f"/captures/{id}/analysis")
    assert (answer["capture"]["packets"], answer["capture"]["packets_snapped"]) == (10, 0)
    # Everything was sent before the window closed, so closing it cost nothing.
    assert answer["problem_count"] == 0
    assert (answer["verdict"]["limit"], answer["verdict"]["side"]) == ("sender_application", "client")

    listed = get(client, f"/captures/{id}/connections")
    (row,) = listed["connections"]
    assert (row["a_address"], row["a_port"], row["b_address"], row["b_port"]) == (
        "192.0.2.1",
        40000,
        "198.51.100.2",
        80,
    )
    # 2.8 s − 0.3 s, of the direction that was limited
    assert (row["a_to_b.zero_window_ns"], row["b_to_a.zero_window_ns"]) == (2_500_000_000, 0)
    assert row["duration_ns"] == 3_000_000_000

    place = f"/captures/{id}/connections/0"
    whole = get(client, place)
    assert whole["a_to_b"]["payload_bytes"] == 2000
    assert sum(whole["budget"]["a_to_b"]["items_ns"].values()) == 3_000_000_000
    series = get(client, f"{place}/series/receive_window", direction="a_to_b")
    points = {(time_ns - START_NS, value) for time_ns, value in zip(series["time_ns"], series["last"], strict=True)}
    assert {(300_000_000, 0), (2_800_000_000, 2000)} <= points
    flight = get(client, f"{place}/series/flight", direction="a_to_b")
    assert max(flight["max"]) == 2000


def test_a_span_of_a_series_begins_with_the_value_in_force(client: TestClient, capture: bytes) -> None:
    place = f"/captures/{analysed(client, capture)}/connections/0/series/receive_window"
    span = get(client, place, start_ns=START_NS + 10**9, end_ns=START_NS + 2 * 10**9)
    assert ([time - START_NS for time in span["time_ns"]], span["last"]) == ([300_000_000], [0])
    # In one bucket, the extremes are those of the whole.
    whole, one = get(client, place), get(client, place, points=1)
    assert (one["min"], one["max"], one["last"]) == ([min(whole["min"])], [max(whole["max"])], [whole["last"][-1]])


def test_a_span_that_ends_before_it_begins_is_refused(client: TestClient, capture: bytes) -> None:
    place = f"{API}/captures/{analysed(client, capture)}/connections/0"
    for what in ("events", "segments", "series/receive_window", "snapshots", "stalls"):
        answer = client.get(f"{place}/{what}", params={"start_ns": START_NS + 1, "end_ns": START_NS})
        assert answer.status_code == 422, what
        assert answer.headers["content-type"] == "application/problem+json"
        assert "ends before it begins" in answer.json()["detail"], what
    assert client.get(f"{place}/events", params={"start_ns": START_NS, "end_ns": START_NS}).status_code == 200


def test_segments_of_a_span(client: TestClient, capture: bytes) -> None:
    place = f"/captures/{analysed(client, capture)}/connections/0/segments"
    found = get(client, place, start_ns=START_NS + 250_000_000, end_ns=START_NS + 2_850_000_000)
    assert found["total"] == 2
    assert [(row["frame"], row["window"]) for row in found["segments"]] == [(6, 0), (7, 2000)]
    assert get(client, place, start_ns=START_NS + 10**11)["segments"] == []
    assert [row["frame"] for row in get(client, place, offset=8, limit=1)["segments"]] == [9]


def test_tables_and_series_come_as_arrow_too(client: TestClient, capture: bytes) -> None:
    place = f"{API}/captures/{analysed(client, capture)}/connections"
    for path in ("", "/0/segments", "/0/series/flight"):
        answer = client.get(f"{place}{path}", headers={"accept": "application/vnd.apache.arrow.stream"})
        assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
        assert polars.read_ipc_stream(io.BytesIO(answer.content)).height > 0
    rows = polars.read_ipc_stream(io.BytesIO(client.get(f"{place}/0/segments", params={"format": "arrow"}).content))
    assert rows["frame"].to_list() == list(range(1, 11))


def test_events_stalls_findings_and_the_report(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    place = f"/captures/{id}/connections/0"
    names = {name for event in get(client, f"{place}/events")["events"] for name in event["names"]}
    assert "zero_window" in names
    (stall,) = get(client, f"{place}/stalls")["stalls"]
    assert (stall["before_frame"], stall["after_frame"]) == (6, 7)
    assert get(client, f"{place}/stalls", start_ns=START_NS + 3 * 10**9 - 1)["stalls"] == []
    findings = get(client, f"/captures/{id}/findings")
    assert findings["total"] == len(findings["findings"])
    if findings["total"]:
        first = findings["findings"][0]
        rule = get(client, f"/rules/{first['code']}")
        assert rule["name"] == first["name"]
    assert get(client, f"/captures/{id}/findings", connection=7)["total"] == 0
    report = client.get(f"{API}/captures/{id}/report")
    assert "client 192.0.2.1:40000 → server 198.51.100.2:80" in report.text
    assert get(client, f"{place}/snapshots") == {"total": 0, "snapshots": []}


def points_of(figure: dict[str, Any], name: str, mode: str) -> list[tuple[float, float]]:
    """Return the points of a figure's trace, which are typed arrays in base64."""

    def values(packed: Any) -> Any:
        if isinstance(packed, dict):
            return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"]).tolist()
        return packed

    (trace,) = [each for each in figure["data"] if (each["name"], each.get("mode")) == (name, mode)]
    return list(zip(np.round(values(trace["x"]), 6).tolist(), values(trace["y"]), strict=True))


@pytest.mark.parametrize("name", ["window", "timeline"])
def test_a_figure_shows_the_window_closing(client: TestClient, capture: bytes, name: str) -> None:
    """The figure is the package's: single segments of a short connection, each with its frame."""
    place = f"/captures/{analysed(client, capture)}/connections/0/figures"
    figure = get(client, f"{place}/{name}", direction="a_to_b")
    window = points_of(figure, "receive window", "lines")
    assert (0.3, 0) in window
    assert (2.8, 2000) in window
    flight = points_of(figure, "in flight", "lines")
    assert (0.2, 2000) in flight
    assert (0.3, 0) in flight
    # The stored figure of the whole connection is returned.
    assert get(client, f"{place}/{name}", direction="a_to_b") == figure
    span = {"start_ns": START_NS + 250_000_000, "end_ns": START_NS + 2_850_000_000}
    zoomed = get(client, f"{place}/{name}", direction="a_to_b", **span)
    assert points_of(zoomed, "receive window", "markers") == [(0.3, 0), (2.8, 2000)]
    assert zoomed["layout"]["meta"]["start_ns"] == str(span["start_ns"])


def test_unknown_figures_are_errors(client: TestClient, capture: bytes) -> None:
    place = f"{API}/captures/{analysed(client, capture)}"
    known = {each["name"]: each["scope"] for each in client.get(f"{API}/figures").json()["figures"]}
    assert (known["window"], known["overview"]) == ("connection", "capture")
    assert client.get(f"{place}/figures/overview", params={"theme": "dark"}).status_code == 200
    for path in ("figures/window", "connections/0/figures/overview", "connections/0/figures/..%2f..", "figures/x"):
        assert client.get(f"{place}/{path}").status_code == 404, path
    figure = f"{place}/connections/0/figures"
    for query in ({"panel": "messages"}, {"points": 1}, {"start_ns": 5, "end_ns": 5}):
        assert client.get(f"{figure}/timeline", params=query).status_code == 422, query


def test_the_rows_around_a_frame(client: TestClient, capture: bytes) -> None:
    place = f"/captures/{analysed(client, capture)}/connections/0/segments"
    found = get(client, place, frame=7, limit=4)
    assert (found["offset"], [row["frame"] for row in found["segments"]]) == (4, [5, 6, 7, 8])
    assert get(client, place, frame=1, limit=4)["offset"] == 0
    assert client.get(f"{API}{place}", params={"frame": 11}).status_code == 422


def test_connections_are_filtered_sorted_and_paged(client: TestClient) -> None:
    id = analysed(client, many_connections(3000), "many.pcap")
    place = f"/captures/{id}/connections"
    page = get(client, place, sort="id", offset=10, limit=3)
    assert (page["total"], [row["id"] for row in page["connections"]]) == (3000, [10, 11, 12])
    assert [row["id"] for row in get(client, place, sort="-id", limit=2)["connections"]] == [2999, 2998]
    found = get(client, place, search="10.0.1.7:40000")
    assert [row["a_address"] for row in found["connections"]] == ["10.0.1.7"]
    assert get(client, place, where=["id>=2990", "close!=refused"])["total"] == 10
    assert list(get(client, place, column=["close"], limit=1)["connections"][0]) == ["id", "close"]


def test_a_question_that_cannot_be_answered_is_a_problem(client: TestClient, capture: bytes) -> None:
    place = f"{API}/captures/{analysed(client, capture)}/connections"
    for query in ("sort=nothing", "where=nothing>1", "where=id>x", "column=../x", "limit=0"):
        answer = client.get(f"{place}?{query}")
        assert answer.status_code == 422, query
        assert answer.headers["content-type"] == "application/problem+json"


def test_payloads_are_not_kept(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    assert SECRET in capture
    folder = client.app.state.service.data.path
    assert [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_bytes()] == []
    (file,) = get(client, f"/captures/{id}")["files"]
    assert file["packets_cut"] == 2


def test_several_files_are_one_case(client: TestClient, capture: bytes) -> None:
    made = client.post(f"{API}/captures", json={"name": "the slow backup", "tags": ["Backup", "backup "]}).json()
    assert (made["status"], made["tags"]) == ("open", ["backup"])
    place = f"{API}/captures/{made['id']}"
    ss = (
        "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"
        "ESTAB 0 0 192.0.2.1:40000 198.51.100.2:80\n\t cubic wscale:0,0 rto:204 rtt:1.5/0.75 mss:1000 cwnd:10\n"
    )
    for name, data in (("a.pcap", capture), ("ss.txt", ss.encode())):
        answer = client.put(f"{place}/files", params={"name": name}, content=data)
        assert answer.status_code == 201, answer.text
    assert [file["kind"] for file in answer.json()["files"]] == ["snapshot"]
    assert client.post(f"{place}/analysis").status_code == 202
    assert settle(client, made["id"])["status"] == "done"
    (host,) = get(client, f"/captures/{made['id']}/analysis")["hosts"]
    assert (host["sockets"], host["sockets_matched"]) == (1, 1)
    assert get(client, f"/captures/{made['id']}/connections/0/snapshots")["total"] == 1
    # The files of an analysed capture cannot change.
    assert client.put(f"{place}/files", params={"name": "b.pcap"}, content=capture).status_code == 409


def test_a_bundle_is_unpacked(client: TestClient, capture: bytes) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("sender/a.pcap", capture)
        settings = "net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_sack = 1\n"
        archive.writestr("receiver/sysctl.txt", settings)
        archive.writestr("../../evil.txt", settings)
    id = analysed(client, packed.getvalue(), "case.zip")
    files = get(client, f"/captures/{id}")["files"]
    assert [file["label"] for file in files] == ["sender", "receiver"]
    assert [file["name"] for file in files] == ["a.pcap", "sysctl.txt"]


def test_captures_are_searched_tagged_renamed_and_sorted(client: TestClient, capture: bytes) -> None:
    first = analysed(client, capture, "alpha.pcap")
    second = analysed(client, capture, "beta_100%.pcap")
    assert [each["id"] for each in get(client, "/captures")["captures"]] == [second, first]
    assert [each["id"] for each in get(client, "/captures", search="ALPHA")["captures"]] == [first]
    assert [each["id"] for each in get(client, "/captures", search="_100%")["captures"]] == [second]
    assert [each["id"] for each in get(client, "/captures", sort="name")["captures"]] == [first, second]
    changed = client.patch(f"{API}/captures/{first}", json={"name": "gamma", "tags": ["slow", "wan"]}).json()
    assert (changed["name"], changed["tags"]) == ("gamma", ["slow", "wan"])
    client.patch(f"{API}/captures/{first}", json={"tags": ["wan"]})
    assert get(client, "/tags") == {"wan": 1}
    assert [each["id"] for each in get(client, "/captures", tag="wan")["captures"]] == [first]


def test_rows_as_json_are_those_of_pages() -> None:
    rows = polars.DataFrame(
        {
            "id": [0, 1, 2],
            "rate": [0.5, nan, None],
            "verdict.limit": ['é"\n\0', "b", None],
            "verdict.share": [inf, 1, 0],
        }
    )
    described = json.loads(json_text(queries.describe_rows(rows)))
    assert json.loads(queries.rows_json(rows)) == described
    assert json.loads(queries.rows_json(rows.select("id"))) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_deleted_means_gone(client: TestClient, capture: bytes) -> None:
    first, second = (analysed(client, capture, name) for name in ("alpha.pcap", "beta.pcap"))
    get(client, f"/captures/{first}/connections/0")
    shared = client.post(f"{API}/captures/{first}/shares", json={}).json()
    folder = client.app.state.service.data.path
    stored = [path for path in (folder / "files").rglob("*") if path.is_file()]
    assert len(stored) == 1, "the same headers are stored once"
    assert client.delete(f"{API}/captures/{first}").status_code == 204
    # The other capture still has the file.
    assert stored[0].exists()
    assert client.get(f"{API}/captures/{first}").status_code == 404
    assert client.get(shared["path"]).status_code == 404
    assert not (folder / "results" / first).exists()
    assert client.delete(f"{API}/captures/{second}").status_code == 204
    assert [path for path in (folder / "files").rglob("*") if path.is_file()] == []
    assert list((folder / "results").iterdir()) == []
    assert get(client, "/captures") == {"captures": [], "total": 0, "skipped": []}


def test_two_captures_are_compared(client: TestClient, capture: bytes) -> None:
    old, new = (analysed(client, capture, name) for name in ("alpha.pcap", "beta.pcap"))
    comparison = get(client, "/compare", old=old, new=new)
    assert (comparison["old"], comparison["new"], comparison["verdict"]) == ("alpha.pcap", "beta.pcap", "same")


def test_captures_of_both_ends_are_paired(client: TestClient) -> None:
    """The relay between them dropped 12 data packets (captures/wild/lossy-path.toml)."""
    wild = ROOT / "captures" / "wild"
    a, b = (
        analysed(client, (wild / name).read_bytes(), name)
        for name in ("lossy-path.pcapng.gz", "lossy-path-receiver.pcap.gz")
    )
    document = get(client, "/pair", a=a, b=b)
    assert document["schema"] == "tcpwin/pair/1"
    assert [each["lost"] for each in document["connections"][0]["directions"]] == [12, 0]
    figure = get(client, "/pair/figure", a=a, b=b)
    assert {"lost", "data"} <= {trace["name"] for trace in figure["data"]}
    page = client.get("/pair", params={"a": a, "b": b}, headers={"accept": "text/html"}).text
    assert "12 of 1,052 packets" in page
    assert client.get(f"{API}/pair/figure", params={"a": a, "b": b, "connection": 7}).status_code == 422
    assert client.get(f"{API}/pair", params={"a": a, "b": "none"}).status_code == 404


def test_one_capture_of_both_ends_is_paired_by_itself(client: TestClient, capture: bytes, tmp_path: Path) -> None:
    """The path between them dropped one packet in a hundred, 59 (captures/runs)."""
    ends = [read(end) for end in captures("loss1_cubic_sack1")]
    merged = write(tmp_path / "merged.pcap", sorted([*ends[0], *ends[1]], key=lambda each: each.time_ns))
    a = analysed(client, merged.read_bytes(), "merged.pcap")
    document = get(client, "/pair", a=a)
    assert [each["lost"] for each in document["connections"][0]["directions"]] == [0, 59]
    figure = get(client, "/pair/figure", a=a)
    assert {"lost", "data"} <= {trace["name"] for trace in figure["data"]}
    page = client.get("/pair", params={"a": a, "b": ""}, headers={"accept": "text/html"}).text
    assert "59 of 5,586 packets" in page
    assert "/captures/?" not in page
    one = analysed(client, capture, "one.pcap")
    refused = client.get(f"{API}/pair", params={"a": one})
    assert refused.status_code == 422
    assert "one point" in refused.json()["detail"]


def test_progress_ends_with_how_it_ended(client: TestClient, capture: bytes) -> None:
    id = upload(client, capture)["id"]
    with client.stream("GET", f"{API}/captures/{id}/progress") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-2] == "event: end"
    assert '"status":"done"' in lines[-1]


def test_a_hostile_name_is_only_ever_shown(client: TestClient, capture: bytes) -> None:
    for name, shown in ((HOSTILE_NAME, "script>.pcap"), ("../../x.pcap", "x.pcap"), ("a\u202eb.pcap", "a\ufffdb.pcap")):
        id = analysed(client, capture, name)
        assert get(client, f"/captures/{id}")["name"] == shown
    made = client.post(f"{API}/captures", json={"name": "<script>alert(1)"}).json()
    page = client.get("/", headers={"accept": "text/html"}).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    client.delete(f"{API}/captures/{made['id']}")


def test_the_audit_log_names_no_file(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture, "very-private.pcap")
    client.delete(f"{API}/captures/{id}")
    entries = get(client, "/audit")["entries"]
    done = [(each["action"], each["subject"]) for each in entries if each["action"] != "capture.read"]
    assert done == [("capture.delete", id), ("capture.upload", id)]
    assert "very-private" not in str(entries)


def test_an_error_is_a_problem_document(client: TestClient) -> None:
    for path, status in (
        ("/api/v1/captures/absent", 404),
        ("/api/v1/captures/..%2f..%2fetc%2fpasswd", 404),
        ("/api/v1/captures/absent/connections/0", 404),
        ("/api/v1/captures/absent/findings?severity=fatal", 404),
        ("/api/v1/captures?limit=x", 422),
        ("/api/v1/rules/TW999", 404),
        ("/api/v1/references/absent", 404),
        ("/api/v1/nothing", 404),
        ("/captures/absent", 404),
        ("/static/absent.css", 404),
        ("/static/..%2f_app.py", 404),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["status"]) == (status, status), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "detail"} <= answer.json().keys()


def test_a_stream_of_progress_that_is_left_at_any_moment_leaves_no_error(
    client: TestClient, capture: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Including during a database query, whose answer the next query would otherwise get."""
    id, service = analysed(client, capture), client.app.state.service

    async def leave() -> None:
        for steps in range(60):
            # When a response ends its stream, whatever its task waits for is cancelled too.
            async with anyio.create_task_group() as group:
                group.start_soon(anext, aiter(watch_analysis(service, id)))
                await asyncio.sleep(steps / 10_000)
                group.cancel_scope.cancel()
        await service.captures.get(id)

    assert client.portal is not None
    with caplog.at_level(logging.WARNING):
        client.portal.call(leave)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
