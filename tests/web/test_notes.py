"""Notes on a capture, a connection, a frame and a finding: stored, shown, in reports, deleted."""

from typing import Any

import pytest
from cli.command import SLOW_READER
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from web.browsing import OpenPage, Serve
from web.crafted import API, analysed, many_connections
from web.postgres import ON_BOTH
from web.test_journey import check

HOSTILE = '<script>alert("1")</script> [x](javascript:1)\n# no heading'


def write(client: TestClient, id: str, text: str = "seen", **about: Any) -> Any:
    return client.post(f"{API}/captures/{id}/notes", json={"text": text, **about})


@ON_BOTH
def test_notes_are_stored_and_deleted(client: TestClient) -> None:
    id = analysed(client, many_connections(3), "many.pcap")
    whole = write(client, id, "Before the change.", author="Ada").json()
    frame = write(client, id, "Here it begins.", connection=2, frame=3, rule="TW201").json()
    assert (whole["author"], whole["connection"], frame["frame"], frame["rule"]) == ("Ada", None, 3, "TW201")
    listed = client.get(f"{API}/captures/{id}/notes").json()["notes"]
    assert listed == [whole, frame]
    assert client.get(f"{API}/captures/{id}/notes", params={"connection": 2}).json()["notes"] == [frame]
    assert client.get(f"{API}/captures/{id}/notes", params={"connection": 1}).json()["notes"] == []
    assert "Before the change." in client.get(f"/captures/{id}").text
    assert "Here it begins." in client.get(f"/captures/{id}/connections/2").text
    assert "Here it begins." not in client.get(f"/captures/{id}/connections/1").text
    assert client.delete(f"{API}/notes/{frame['id']}").status_code == 204
    assert client.delete(f"{API}/notes/{frame['id']}").status_code == 404
    assert client.get(f"{API}/captures/{id}/notes").json()["notes"] == [whole]
    done = [each["action"] for each in client.get(f"{API}/audit").json()["entries"]]
    assert (done.count("note.write"), done.count("note.delete")) == (2, 1)
    assert client.delete(f"{API}/captures/{id}").status_code == 204
    assert client.delete(f"{API}/notes/{whole['id']}").status_code == 404


def test_invalid_notes_are_refused(client: TestClient) -> None:
    id = analysed(client, many_connections(3), "many.pcap")
    for note, words in (
        ({"text": " "}, "at least 1 character"),
        ({"text": "x" * 4001}, "4000"),
        ({"text": "x", "connection": 3}, "no connection 3"),
        ({"text": "x", "frame": 1_000_000}, "no frame 1,000,000"),
        ({"text": "x", "rule": "<b>"}, "pattern"),
        ({"text": "x", "connection": -1}, "greater than or equal to 0"),
    ):
        answer = client.post(f"{API}/captures/{id}/notes", json=note)
        assert (answer.status_code, words in answer.text) == (422, True), (note, answer.text)


def test_of_no_capture_and_of_too_many(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcpwin_web.notes.MOST_NOTES", 3)
    assert write(client, "none").status_code == 404
    assert client.get(f"{API}/captures/none/notes").status_code == 404
    waiting = client.post(f"{API}/captures", json={"name": "x"}).json()["id"]
    assert write(client, waiting).status_code == 409
    id = analysed(client, many_connections(1), "many.pcap")
    answers = [write(client, id).status_code for _ in range(4)]
    assert answers == [201] * 3 + [409]


def test_every_report_has_them_but_those_of_guests(client: TestClient) -> None:
    id = analysed(client, SLOW_READER.read_bytes(), "slow.pcap.gz")
    write(client, id, HOSTILE, connection=0, author="Ada <x>")
    page = client.get(f"{API}/captures/{id}/report", params={"format": "html"}).text
    assert "&lt;script&gt;alert(" in page
    assert '<script>alert("1")' not in page
    assert "connection 0 · Ada &lt;x&gt;" in page
    markdown = client.get(f"{API}/captures/{id}/report", params={"format": "md"}).text
    assert "## Notes\n" in markdown
    assert "\\<script\\>" in markdown
    assert "\n# no heading" not in markdown
    document = client.get(f"{API}/captures/{id}/report", params={"format": "json"}).json()
    assert [(each["text"], each["about"]) for each in document["notes"]] == [(HOSTILE, "connection 0")]
    shown = client.get(f"/captures/{id}").text
    assert '<script>alert("1")' not in shown
    shared = client.post(f"{API}/captures/{id}/shares", json={"days": 1, "anonymise": False}).json()["path"]
    for path in (shared, f"{API}{shared}", f"{API}{shared}/report?format=html"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "no heading" not in answer.text


@pytest.mark.nightly
def test_written_by_hand(serve: Serve, open_page: OpenPage) -> None:
    address, (id,) = serve(SLOW_READER.read_bytes())
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
    page.get_by_label("Note on this connection").fill("The reader sleeps here.")
    page.get_by_label("Your name").fill("Ada")
    page.locator("#note-frame").fill("3049")
    page.get_by_label("Finding", exact=True).select_option("TW201")
    page.get_by_role("button", name="Add note").click()
    kept = page.locator(".notes li")
    expect(kept).to_contain_text("The reader sleeps here.")
    expect(kept).to_contain_text("TW201")
    expect(page.get_by_label("Your name")).to_have_value("Ada")
    check(page)
    kept.get_by_role("link", name="frame 3,049").click()
    expect(page.locator("#segments tr.marked th")).to_have_text("3,049")
    page.goto(f"/captures/{id}")
    kept = page.locator(".notes li")
    expect(kept).to_contain_text("connection 0")
    check(page)
    page.on("dialog", lambda dialog: dialog.accept())
    kept.get_by_role("button", name="Delete the note").click()
    expect(page.locator(".notes li")).to_have_count(0)
