"""Weaknesses found by black-box attackers."""

import gzip
import io
import os
import signal
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from web.crafted import API, analysed, many_connections
from web.running import start_server

from tcpwin_web.headers import HEADERS
from tcpwin_web.uploads import receive

MakeClient = Callable[..., TestClient]

FOREIGN = ("selectors", "signal", "numpy", "tcpwin")
"""Modules imported by the service, its workers and their starters."""


def upload(client: TestClient, name: str, data: bytes) -> Any:
    return client.post(f"{API}/uploads", params={"name": name}, content=data)


def test_nothing_is_imported_from_where_it_is_started(
    tmp_path: Path, capture: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder contains a stranger's captures and modules."""
    case, opened = tmp_path / "case", tmp_path / "opened"
    case.mkdir()
    (case / "slow.pcap").write_bytes(capture)
    for name in FOREIGN:
        (case / f"{name}.py").write_text(f"open({str(opened)!r}, 'a').write({name!r})")
    monkeypatch.chdir(case)
    with ExitStack() as stack:
        server, address = start_server(stack, tmp_path / "data", ".")

        def is_done() -> bool:
            found = httpx2.get(f"{address}{API}/captures", timeout=HANG_S).json()["captures"]
            return [each["status"] for each in found] == ["done"]

        until(is_done)
        server.send_signal(signal.SIGTERM)
        server.wait(HANG_S)
    assert not opened.exists()


def test_what_an_upload_unpacks_to_is_a_sum_over_its_files(make_client: MakeClient) -> None:
    size_bytes = len(many_connections(1000))
    client = make_client(max_unpacked_bytes=3 * size_bytes)
    for count, status in ((2, 202), (4, 413)):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number in range(count):
                archive.writestr(f"{number}.pcap.gz", gzip.compress(many_connections(1000 - number)))
        answer = upload(client, "several.zip", packed.getvalue())
        assert answer.status_code == status, answer.text
    assert "with the files before it, it unpacks to more than" in answer.json()["detail"]


def test_equal_packets_in_two_layers_of_gzip(
    make_client: MakeClient, capture: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With zstd, 498 bytes took 141 MB, because files are stored as unpacked."""
    monkeypatch.setattr(receive, "HARMLESS_BYTES", 100_000)
    packets = capture[:24] + capture[24:] * (4_000_000 // len(capture))
    client = make_client()
    answer = upload(client, "layers.pcap.gz", gzip.compress(gzip.compress(packets)))
    assert (answer.status_code, "1,000 times its size" in answer.json()["detail"]) == (413, True), answer.text
    folder = client.app.state.service.data.path  # type: ignore[attr-defined]
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.parent.name == "files") == 0
    assert upload(client, "once.pcap.gz", gzip.compress(capture)).status_code == 202


def test_a_name_that_is_not_text_is_shown(make_client: MakeClient, tmp_path: Path, capture: bytes) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.pcap"))
    file.write_bytes(capture)
    client = make_client(shown=[file])
    until(lambda: client.get(f"{API}/captures").json()["captures"])
    assert client.get(f"{API}/captures").json()["captures"][0]["name"] == "bad\ufffd.pcap"
    assert client.get("/", headers={"accept": "text/html"}).status_code == 200


def test_notes_and_tags_move_no_cursor(client: TestClient, capture: bytes) -> None:
    """C0 and C1 controls and bidirectional overrides are replaced; lines and tabs stay."""
    id = analysed(client, capture)
    text, shown = "A\x1bcB\x9b31mC\x07D\u202eE\u2066\r\nF\tG", "A\ufffdcB\ufffd31mC\ufffdD\ufffdE\ufffd\nF\tG"
    note = client.post(f"{API}/captures/{id}/notes", json={"text": text, "author": "Ada\x1b"}).json()
    assert (note["text"], note["author"]) == (shown, "Ada\ufffd")
    assert client.patch(f"{API}/captures/{id}", json={"tags": ["a\x9bb"]}).json()["tags"] == ["a\ufffdb"]
    assert client.post(f"{API}/captures/{id}/notes", json={"text": "a\0b"}).status_code == 422
    for kind in ("notes", "shares", "tokens"):
        assert client.delete(f"{API}/{kind}/%00").status_code == 422


def test_a_panel_without_a_name_is_ignored(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    answer = client.get(f"{API}/captures/{id}/connections/0/figures/timeline", params={"panel": ""})
    assert (answer.status_code, "No such figure" in answer.json()["detail"]) == (404, True)


def test_results_that_are_deleted_while_they_are_read(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    for path in client.app.state.service.data.path.rglob("*.parquet"):  # type: ignore[attr-defined]
        path.unlink()
    for part in ("connections", "findings"):
        assert client.get(f"{API}/captures/{id}/{part}").status_code == 404


def test_an_internal_error_has_the_headers_of_all(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(client.app.state.service.captures, "tags", fail)  # type: ignore[attr-defined]
    answer = client.get(f"{API}/tags")
    assert answer.status_code == 500
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert (answer.headers["cache-control"], answer.headers["connection"]) == ("no-store", "close")


def test_a_token_of_blanks_is_too_short(make_client: MakeClient) -> None:
    with pytest.raises(ValueError, match="at least 16 characters"):
        make_client(token=" " * 20)
