"""Bundles with captures of both ends, or with none: each capture is shown with the host snapshots."""

import io
import re
import tarfile
import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from reference import ROOT
from web.conftest import MakeClient
from web.crafted import API, capture_bytes, many_connections, settle, upload
from web.running import Host, hosted

from tcpwin.client import Client
from tcpwin_web import bundles
from tcpwin_web.shown import find_shown
from tcpwin_web.storage.models import File

CAPTURES = ROOT / "captures"
SAMPLES_ONLY = CAPTURES / "reference" / "oscil-300ms-170p2-stock.zip"
BROWSER = {"accept": "text/html"}


def zipped(**members: bytes) -> bytes:
    """Return a .zip; ``__`` in a name is a folder separator, the last ``_`` a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(".".join(name.replace("__", "/").rsplit("_", 1)), content)
    return out.getvalue()


@pytest.fixture(scope="session")
def both_ends() -> bytes:
    """Return a lab transfer captured at sender and receiver, with snapshots of both."""
    out = io.BytesIO()
    with zipfile.ZipFile(CAPTURES / "bundles" / "slow-reader.zip") as of_sender, zipfile.ZipFile(out, "w") as archive:
        for name in of_sender.namelist():
            archive.writestr(name, of_sender.read(name))
        receiver = (CAPTURES / "lab" / "slow-reader-receiver.pcap.gz").read_bytes()
        archive.writestr("slow-reader/receiver.pcap.gz", receiver)
    return out.getvalue()


def of_bundle(client: TestClient, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all analysed captures of a bundle by name."""
    assert entry["bundle_id"] is not None
    listed = client.get(f"{API}/captures", params={"bundle": entry["bundle_id"]}).json()
    settled = [settle(client, each["id"]) for each in listed["captures"]]
    assert [each["status"] for each in settled] == ["done"] * listed["total"]
    return sorted(settled, key=lambda each: str(each["name"]))


def blobs(client: TestClient) -> Sequence[Path]:
    files = client.app.state.service.data.path / "files"
    return [path for path in files.rglob("*") if path.is_file()]


def test_each_end_becomes_a_capture_with_all_snapshots(client: TestClient, both_ends: bytes) -> None:
    entry = upload(client, both_ends, "both.zip", tag=["slow", "lab"])
    receiver, sender = of_bundle(client, entry)
    assert [each["name"] for each in (receiver, sender)] == ["both.zip: receiver.pcap.gz", "both.zip: sender.pcap.gz"]
    assert [each["tags"] for each in (receiver, sender)] == [["lab", "slow"]] * 2
    assert entry["id"] in (receiver["id"], sender["id"])
    assert receiver["expires_ns"] == sender["expires_ns"]
    for each, vantage in ((receiver, "a"), (sender, "b")):
        assert (each["packets"], each["connections"]) == (4586, 1)
        found = client.get(f"{API}/captures/{each['id']}").json()["files"]
        assert [file["kind"] for file in found] == ["capture"] + ["snapshot"] * 10
        hosts = client.get(f"{API}/captures/{each['id']}/analysis").json()["hosts"]
        # As `tcpwin analyze` counts them.
        assert {host["label"]: host["sockets_matched"] for host in hosts} == {"receiver": 151, "sender": 150}
        connection = client.get(f"{API}/captures/{each['id']}/connections/0").json()
        assert (connection["vantage"], connection["b_to_a"]["zero_window_episode_count"]) == (vantage, 66)


def test_both_ends_lead_to_each_other_and_to_one_verdict(client: TestClient, both_ends: bytes) -> None:
    """Neither end is better than the other, so no page offers to compare them."""
    receiver, sender = of_bundle(client, upload(client, both_ends, "both.zip"))
    for here, there in ((receiver, sender), (sender, receiver)):
        compare = f"/compare?old={here['id']}&amp;new={there['id']}"
        together = f"/pair?a={here['id']}&amp;b={there['id']}"
        page = client.get(f"/captures/{here['id']}", headers=BROWSER).text
        assert (f'href="/captures/{there["id"]}"' in page, together in page, compare in page) == (True, True, False)
        place = f"/captures/{here['id']}/connections/0"
        found = client.get(f"{API}{place}/elsewhere").json()["elsewhere"]
        assert found == [{"capture_id": there["id"], "name": there["name"], "connection": 0}]
        page = client.get(place, headers=BROWSER).text
        assert (f'href="/captures/{there["id"]}/connections/0"' in page, together in page) == (True, True)
        assert compare not in page
    answer = client.get("/compare", params={"old": sender["id"], "new": receiver["id"]}, headers=BROWSER)
    assert (answer.status_code, "#0 → #0" in answer.text) == (200, True)


def test_the_list_shows_both_ends_in_one_row(client: TestClient, both_ends: bytes, capture: bytes) -> None:
    ends = of_bundle(client, upload(client, both_ends, "both.zip"))
    single = settle(client, upload(client, capture, "single.pcap")["id"])
    page = client.get("/", headers=BROWSER).text
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", page, re.DOTALL)
    assert len(rows) == 2
    for row, links in zip(rows, ([single], ends), strict=True):
        assert re.findall(r'href="/captures/([^"]+)"', row) == [each["id"] for each in links]
        assert row.count('class="badge') == 1
    assert f'<a href="/bundles/{ends[0]["bundle_id"]}">both.zip</a>: <a' in rows[1]


def test_a_bundle_opens_at_its_sender_and_says_where_the_other_end_was_taken(
    client: TestClient, both_ends: bytes
) -> None:
    receiver, sender = of_bundle(client, upload(client, both_ends, "both.zip"))
    answer = client.get(f"/bundles/{sender['bundle_id']}", headers=BROWSER, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/captures/{sender['id']}")
    for here, there, end in ((sender, receiver, "receiver"), (receiver, sender, "sender")):
        page = client.get(f"/captures/{here['id']}", headers=BROWSER).text
        assert f"{there['name']}</a>, taken at the {end}, with the same verdict" in page
    # Two captures of one bundle need not be of one connection.
    other = of_bundle(client, upload(client, zipped(a_pcap=capture_bytes(), b_pcap=many_connections(2)), "two.zip"))
    for each in other:
        assert "with the same verdict" not in client.get(f"/captures/{each['id']}", headers=BROWSER).text
    assert client.get("/bundles/unknown", headers=BROWSER).status_code == 404


def test_a_form_with_a_bundle_leads_to_the_bundle(client: TestClient, both_ends: bytes) -> None:
    token = re.findall(r'name="csrf" value="([^"]*)"', client.get("/upload", headers=BROWSER).text)[0]
    answer = client.post(
        "/upload", data={"csrf": token}, files={"files": ("both.zip", both_ends)}, follow_redirects=False
    )
    [bundle] = {each["bundle_id"] for each in client.get(f"{API}/captures").json()["captures"]}
    assert (answer.status_code, answer.headers["location"]) == (303, f"/bundles/{bundle}")


@pytest.mark.nightly
def test_no_page_judges_one_end_against_the_other(client: TestClient, both_ends: bytes) -> None:
    entry = upload(client, both_ends, "both.zip", tag=["lab"])
    receiver, sender = of_bundle(client, entry)
    compared = client.get("/compare", params={"old": sender["id"], "new": receiver["id"]}, headers=BROWSER).text
    assert "pair both ends" in compared
    assert not re.search(r'class="badge (better|worse|mixed)', compared)
    history = client.get("/history", params={"tag": "lab"}, headers=BROWSER).text
    assert ("/compare?" in history, "/pair?" in history, 'class="badge' in history) == (False, True, False)


def test_one_end_deleted_leaves_the_other_whole(client: TestClient, both_ends: bytes) -> None:
    receiver, sender = of_bundle(client, upload(client, both_ends, "both.zip"))
    assert client.delete(f"{API}/captures/{sender['id']}").status_code == 204
    assert client.post(f"{API}/captures/{receiver['id']}/analysis").status_code == 202
    assert settle(client, receiver["id"])["status"] == "done"
    assert len(client.get(f"{API}/captures/{receiver['id']}").json()["files"]) == 11
    assert client.get(f"{API}/captures/{receiver['id']}/connections/0/elsewhere").json() == {"elsewhere": []}
    assert client.delete(f"{API}/captures/{receiver['id']}").status_code == 204
    assert blobs(client) == []


@pytest.mark.nightly
def test_bundles_and_single_files_form_one_case(client: TestClient) -> None:
    """A case of two bundles with equal member names, and of a single capture."""
    one, two, alone = (many_connections(count) for count in (1, 2, 3))
    id = client.post(f"{API}/captures", json={"name": "a case", "tags": ["x"]}).json()["id"]
    for name, content in (
        ("first.zip", zipped(case__a_pcap=one, case__b_pcap=two)),
        ("alone.pcap", alone),
        ("second.zip", zipped(a_pcap=two, b_pcap=one)),
    ):
        answer = client.put(f"{API}/captures/{id}/files", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
    found = of_bundle(client, client.post(f"{API}/captures/{id}/analysis").json())
    assert {each["name"]: each["connections"] for each in found} == {
        "a case: a.pcap": 1,
        "a case: b.pcap": 2,
        "a case": 3,
        "a case: a.pcap (2)": 2,
        "a case: b.pcap (2)": 1,
    }


def test_a_ring_stays_one_capture_and_an_only_one_keeps_its_name(client: TestClient) -> None:
    ring = {"w_pcap0": capture_bytes(), "w_pcap1": many_connections(1)}
    entry = settle(client, upload(client, zipped(**ring), "ring.zip")["id"])
    assert (entry["name"], entry["bundle_id"], entry["packets"]) == ("ring.zip", None, 12)
    receiver, sender = of_bundle(client, upload(client, zipped(**ring, snd_pcap=capture_bytes()), "two.zip"))
    assert [(each["name"], each["packets"]) for each in (receiver, sender)] == [
        ("two.zip: snd.pcap", 10),
        ("two.zip: w.pcap", 12),
    ]


def test_names_in_bundles_are_short_and_never_the_same() -> None:
    def named(*parts: str) -> list[File]:
        return [File(name=part, kind="capture", part=part) for part in parts]

    again = named("a.pcap", "b.pcap", "")
    bundles.tell_apart(again, {"b.pcap", "a.pcap (2)", ""})
    assert [file.part for file in again] == ["a.pcap (3)", "b.pcap (3)", ""]
    long = named("x" * 255)
    bundles.tell_apart(long, {"x" * 255})
    assert len(long[0].part) <= 255


def test_unusable_members_of_a_bundle_are_reported(client: TestClient, capture: bytes) -> None:
    outside = zipped(a_pcap=capture, notes_md=b"# of this case", **{"..__x_pcap": capture})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=0) as archive:
        for name, content in (("a.pcap", capture), ("core.bin", bytes(100_000))):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    cut = out.getvalue()[:50_000]
    notes = []
    for name, data in (("outside.zip", outside), ("cut.tar.gz", cut)):
        entry = settle(client, upload(client, data, name)["id"])
        assert (entry["packets"], entry["bundle_id"]) == (10, None)
        notes.append(client.get(f"{API}/captures/{entry['id']}/analysis").json()["notes"])
        page = client.get(f"/captures/{entry['id']}", headers=BROWSER).text
        assert all(escape(note) in page for note in notes[-1])
        share = client.post(f"{API}/captures/{entry['id']}/shares", json={}).json()
        assert "x.pcap" not in client.get(share["path"], headers=BROWSER).text
    assert notes == [
        [
            "outside.zip: 2 files of the bundle were not read: notes.md (not a known snapshot format), "
            "../x.pcap (its name leads outside the bundle)"
        ],
        [
            "cut.tar.gz: the archive is truncated or damaged; only the part before the damage was read",
            "cut.tar.gz: 1 file of the bundle was not read: core.bin "
            "(cannot be read: Compressed file ended before the end-of-stream marker was reached)",
        ],
    ]


def test_unusable_members_of_a_bundle_of_samples_are_reported(client: TestClient, capture: bytes) -> None:
    """Also if the capture was uploaded separately."""
    made = client.post(f"{API}/captures", json={"name": "a case"}).json()
    place = f"{API}/captures/{made['id']}"
    samples = zipped(ss_txt=b"ESTAB 0 0 192.0.2.1:40000 198.51.100.2:80\n", notes_md=b"# of this case")
    for name, data in (("a.pcap", capture), ("samples.zip", samples)):
        assert client.put(f"{place}/files", params={"name": name}, content=data).status_code < 300
    client.post(f"{place}/analysis")
    settle(client, made["id"])
    notes = client.get(f"{place}/analysis").json()["notes"]
    assert [note for note in notes if "bundle" in note] == [
        "samples.zip: 1 file of the bundle was not read: notes.md (not a known snapshot format)"
    ]


def test_samples_without_a_capture_are_refused_in_words(client: TestClient) -> None:
    answer = client.post(f"{API}/uploads", params={"name": "samples.zip"}, content=SAMPLES_ONLY.read_bytes())
    assert (answer.status_code, "no capture among the files" in answer.json()["detail"]) == (422, True)
    assert (client.get(f"{API}/captures").json()["total"], blobs(client)) == (0, [])
    # Snapshots may arrive before the capture.
    id = client.post(f"{API}/captures", json={"name": "a case"}).json()["id"]
    client.put(f"{API}/captures/{id}/files", params={"name": "s.zip"}, content=SAMPLES_ONLY.read_bytes())
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 422
    client.put(f"{API}/captures/{id}/files", params={"name": "zero.pcap"}, content=capture_bytes())
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["status"] == "done"


def test_a_bundle_that_is_refused_in_its_middle_leaves_nothing(make_client: MakeClient, both_ends: bytes) -> None:
    """The captures come first and are stored when a snapshot proves too large."""
    client = make_client(max_snapshot_bytes=1000)
    answer = client.post(f"{API}/uploads", params={"name": "both.zip"}, content=both_ends)
    assert (answer.status_code, "snapshots may have 1,000 bytes at most" in answer.json()["detail"]) == (413, True)
    assert blobs(client) == []


def test_a_folder_shows_every_capture_below_it_and_says_what_it_skips(tmp_path: Path, both_ends: bytes) -> None:
    folder = tmp_path / "shown"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "both.zip").write_bytes(both_ends)
    (folder / "zero.pcap").write_bytes(capture_bytes())
    (folder / "nonsense.pcap").write_bytes(b"nonsense")
    (folder / "samples.zip").write_bytes(SAMPLES_ONLY.read_bytes())
    (folder / "README.md").write_text("of no interest")
    paths, data = find_shown([folder]), tmp_path / "data"
    shown = {"both.zip: receiver.pcap.gz", "both.zip: sender.pcap.gz", "zero.pcap"}
    for _ in range(2):
        with hosted(data, paths) as address, httpx2.Client(base_url=address, timeout=HANG_S) as client:

            def list_all(client: httpx2.Client = client) -> Any:
                found = client.get(f"{API}/captures").json()
                return found if len(found["captures"]) == 3 and len(found["skipped"]) == 2 else None

            found = until(list_all)
            assert {each["name"] for each in found["captures"]} == shown
            reasons = {each["name"]: each["reason"] for each in found["skipped"]}
            assert set(reasons) == {"nonsense.pcap", "samples.zip"}
            assert "not a pcap or pcapng file" in reasons["nonsense.pcap"]
            assert "no capture among the files" in reasons["samples.zip"]
            page = client.get("/", headers=BROWSER).text
            assert re.search(r"<summary>2 files .*not shown</summary>", page)
            # A deleted capture does not return while the other end exists.
            (gone,) = (each["id"] for each in found["captures"] if each["name"] == "both.zip: receiver.pcap.gz")
    with hosted(data, paths) as address, Client(address) as named:
        named.delete(gone)
    with hosted(data, paths) as address, Client(address) as named:
        until(lambda: len(httpx2.get(f"{address}{API}/captures", timeout=HANG_S).json()["skipped"]) == 2)
        assert {each["name"] for each in named.captures()} == shown - {"both.zip: receiver.pcap.gz"}


def test_the_client_finds_the_other_end(host: Host, tmp_path: Path, both_ends: bytes) -> None:
    (tmp_path / "both.zip").write_bytes(both_ends)
    with Client(host()) as client:
        entry = client.upload(tmp_path / "both.zip")
        ends = [client.wait(each["id"]) for each in client.captures(bundle=entry["bundle_id"])]
        assert len(ends) == 2
        (other,) = client.elsewhere(ends[0]["id"], 0)
        assert (other["capture_id"], other["connection"]) == (ends[1]["id"], 0)
