"""Downloads of packets: the stored headers, with comments on the findings."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.command import SLOW_READER
from fastapi.testclient import TestClient
from report.slicing.through_tshark import comments
from web.crafted import API, SECRET, analysed, many_connections

import tcpwin


def download(client: TestClient, id: str, **query: Any) -> Any:
    return client.get(f"{API}/captures/{id}/slice", params=query)


def test_a_connection_is_what_was_uploaded_less_its_payload(
    client: TestClient, capture: bytes, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    id = analysed(client, capture)
    answer = download(client, id, connection=0)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith('attachment; filename="zero-connection-0.pcapng"')
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert SECRET not in answer.content
    out, whole = tmp_path / "out.pcapng", tmp_path / "in.pcap"
    out.write_bytes(answer.content)
    whole.write_bytes(capture)
    [sliced], [uploaded] = tcpwin.analyze(out), tcpwin.analyze(whole)
    assert sliced.to_dict() == uploaded.to_dict()
    assert sliced.verdict == uploaded.verdict
    found = comments(tool("tshark"), out)
    assert found[1].startswith("tcpwin: connection 0, client 192.0.2.1:40000")
    assert "zero window" in found[6]


def test_the_frames_of_a_finding(client: TestClient, tmp_path: Path, tool: Callable[[str], str]) -> None:
    id = analysed(client, SLOW_READER.read_bytes(), "slow.pcap.gz")
    answer = download(client, id, connection=0, code="TW201", direction="b_to_a")
    assert answer.status_code == 200
    out = tmp_path / "out.pcapng"
    out.write_bytes(answer.content)
    [finding] = (each for each in tcpwin.analyze(SLOW_READER).findings if each.code == "TW201")
    proofs = [text for text in comments(tool("tshark"), out).values() if "tcpwin: TW201" in text]
    assert len(proofs) == len(finding.evidence.frames)


def test_one_of_many_connections_and_a_span(client: TestClient, tmp_path: Path) -> None:
    id = analysed(client, many_connections(50), "many.pcap")
    out = tmp_path / "out.pcapng"
    out.write_bytes(download(client, id, connection=7).content)
    assert [str(each.a) for each in tcpwin.analyze(out)] == ["10.0.0.7:40000"]
    second_ns = 1_700_000_000 * 10**9
    out.write_bytes(download(client, id, start_ns=second_ns + 10_000_000, end_ns=second_ns + 12_000_000).content)
    assert len(tcpwin.analyze(out)) == 3


def test_packets_that_do_not_exist(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    for query in (
        {},
        {"connection": -1},
        {"connection": 0, "code": "TW201", "start_ns": 1},
        {"start_ns": 2, "end_ns": 1},
    ):
        answer = download(client, id, **query)
        assert answer.status_code == 422, query
        assert answer.headers["content-type"].startswith("application/problem+json")
    for query in ({"connection": 9}, {"connection": 0, "code": "TW301"}, {"start_ns": 1, "end_ns": 2}):
        answer = download(client, id, **query)
        assert 400 <= answer.status_code < 500, (query, answer.text)
        assert answer.headers["content-type"].startswith("application/problem+json")
    assert download(client, "nowhere", connection=0).status_code == 404


def test_pages_offer_both(client: TestClient) -> None:
    id = analysed(client, SLOW_READER.read_bytes(), "slow.pcap.gz")
    page = client.get(f"/captures/{id}/connections/0").text
    assert f'href="/api/v1/captures/{id}/slice?connection=0" download' in page
    assert f"/api/v1/captures/{id}/slice?code=TW201&amp;connection=0&amp;direction=b_to_a" in page
    copied = re.findall(r'data-copy="frame.number in {([0-9, ]+)}"', page)
    frames = [sorted(int(number) for number in each.split(",")) for each in copied]
    assert [1474, 1475, 1577, 1578, 1627, 1628] in frames
