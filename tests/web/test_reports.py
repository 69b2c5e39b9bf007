"""Reports of a capture, and behind share links with and without real addresses."""

import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from web.conftest import MakeClient
from web.crafted import API, HOSTILE_NAME, analysed, many_connections

from tcpwin import analyze
from tcpwin.render.report import check_report


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    return make_client()


def unpacked(page: str) -> str:
    """Return a report's text with the unpacked data of its figures and its table."""
    data = re.findall(r'id="packed-(?!plotly)[\w-]+">([^<]+)<', page)
    assert data
    return page + "".join(gzip.decompress(base64.b64decode(each)).decode() for each in data)


def test_a_report_in_every_form(client: TestClient, capture: bytes, tool: Callable[[str], str], tmp_path: Path) -> None:
    """Each can be checked against the uploaded file, of which the service stores only headers."""
    tool("chromium")
    own, other = tmp_path / "own.pcap", tmp_path / "other.pcap"
    own.write_bytes(capture)
    other.write_bytes(many_connections(2))
    place = f"{API}/captures/{analysed(client, capture, HOSTILE_NAME)}/report"
    found = {form: client.get(place, params={"format": form}) for form in ("text", "html", "pdf", "md", "json")}
    assert {form: answer.status_code for form, answer in found.items()} == dict.fromkeys(found, 200)
    for form in ("text", "html", "md", "json"):
        text = unpacked(found[form].text) if form == "html" else found[form].text
        assert "192.0.2.1" in text, form
    assert found["json"].json()["schema"] == "tcpwin/report/2"
    assert found["pdf"].content.startswith(b"%PDF")
    assert 'id="references"' in found["html"].text
    assert "<script>" not in found["md"].text
    for form in ("html", "pdf", "md", "json"):
        (report := tmp_path / f"report.{form}").write_bytes(found[form].content)
        assert check_report(report, analyze(own)) is None, form
        assert check_report(report, analyze(other)) == "the report is of another capture"
        name = found[form].headers["content-disposition"]
        assert re.fullmatch(rf'attachment; filename="[\w.-]+\.{form}"; filename\*=UTF-8\'\'[\w.%~-]+', name), name
    assert client.get(place, params={"format": "exe"}).status_code == 422


@pytest.mark.parametrize("anonymise", [True, False])
def test_a_shared_report_shows_what_its_link_shows(client: TestClient, capture: bytes, anonymise: bool) -> None:
    id = analysed(client, capture, "secret-host.pcap")
    made = client.post(f"{API}/captures/{id}/shares", json={"anonymise": anonymise}).json()
    place = f"{API}{made['path']}/report"
    text = unpacked(client.get(place).text) + client.get(place, params={"format": "md"}).text
    for word in ("192.0.2.1", "198.51.100.2", "secret-host"):
        assert (word in text) is not anonymise, word
    # The digest would identify the capture.
    assert ("Capture SHA-256" in text) is not anonymise
    assert "Results SHA-256" in text
    shown = client.get(f"{API}{made['path']}").json()["connections"][0]
    assert shown["a_address"] in text
    # The same policy and the same scripts, named by their hashes.
    own = client.get(f"{API}/captures/{id}/report", params={"format": "html"}).text
    for pattern in (r"<meta http-equiv=[^>]+>", r"<script>(.+?)</script>", r"<style>(.+?)</style>"):
        mine, theirs = (re.findall(pattern, page, re.DOTALL) for page in (own, client.get(place).text))
        assert mine
        assert mine == theirs
    client.delete(f"{API}/shares/{made['id']}")
    assert client.get(place).status_code == 404
    assert json.loads(client.get(place, params={"format": "json"}).text)["status"] in (404, 422)
