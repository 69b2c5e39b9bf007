"""Results stay while an analysis is repeated or fails; an upload that loses its database ends as failed."""

import logging
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from sqlalchemy import select
from web.conftest import MakeClient
from web.crafted import API, analysed, settle
from web.postgres import ON_BOTH, Postgres
from web.running import Host
from web.test_bad_days import held_by

from tcpwin_web import Settings, create_app
from tcpwin_web.jobs.executor import LostError, ProcessExecutor
from tcpwin_web.results import layout
from tcpwin_web.storage import DataFolder
from tcpwin_web.storage.models import Job


def is_shown(client: TestClient, id: str, link: str) -> bool:
    """Whether a capture's page, its result, its connection and its share link are there."""
    paths = (f"/captures/{id}", f"{API}/captures/{id}/analysis", f"{API}/captures/{id}/connections/0", link)
    return all(client.get(path, headers={"accept": "text/html"}).status_code == 200 for path in paths)


def jobs_of(client: TestClient, id: str) -> int:
    """Return the rows of a capture's analyses."""
    database = client.app.state.service.database  # type: ignore[attr-defined]

    async def count() -> int:
        async with database.begin() as session:
            return len((await session.scalars(select(Job).where(Job.capture_id == id))).all())

    assert client.portal is not None
    return int(client.portal.call(count))


@ON_BOTH
def test_results_stay_until_new_ones_replace_them(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(workers=1)
    id = analysed(client, capture)
    link = client.post(f"{API}/captures/{id}/shares", json={}).json()["path"]
    place = f"{API}/captures/{id}/analysis"
    with held_by(client):
        assert client.post(place).json()["status"] == "queued"
        assert is_shown(client, id, link)
        assert "being analysed again" in client.get(f"/captures/{id}", headers={"accept": "text/html"}).text
        for _ in range(5):
            assert client.delete(place).json()["status"] == "done"
            assert client.post(place).status_code == 202
        assert client.delete(place).json()["status"] == "done"
        assert is_shown(client, id, link)
        assert jobs_of(client, id) == 1
        assert client.post(place).status_code == 202
    assert settle(client, id)["failure"] is None
    assert is_shown(client, id, link)


def test_results_stay_if_a_later_analysis_fails(client: TestClient, capture: bytes, tmp_path: Path) -> None:
    id = analysed(client, capture)
    link = client.post(f"{API}/captures/{id}/shares", json={}).json()["path"]
    (file,) = (tmp_path / "data" / "files").glob("*/*")
    hidden = file.rename(tmp_path / "hidden")
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    entry = settle(client, id)
    assert (entry["status"], "these results are from an earlier one" in entry["failure"]) == ("done", True), entry
    assert client.get(link).status_code == 200
    hidden.rename(file)
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["failure"] is None
    assert is_shown(client, id, link)


def test_a_kill_while_results_are_replaced(tmp_path: Path) -> None:
    """The old ones have been moved away, the new ones not yet into place (`put_in_place`)."""
    data = DataFolder(tmp_path / "data")
    data.prepare()
    data.release()
    unfinished = data.unfinished("a")
    for folder, text in ((unfinished, "new"), (layout.replaced(unfinished), "old")):
        folder.mkdir()
        (folder / layout.CAPTURE).write_text(text)
    data.prepare()
    assert (data.results("a") / layout.CAPTURE).read_text() == "old"
    assert [path.name for path in data.results("a").parent.iterdir()] == ["a"]


def test_results_without_a_capture_are_deleted_at_the_start(
    database_url: str | None, capture: bytes, tmp_path: Path
) -> None:
    def service() -> TestClient:
        settings = Settings(data=tmp_path / "data", workers=1, database_url=database_url)
        return TestClient(create_app(settings), base_url="http://localhost")

    with service() as client:
        id = analysed(client, capture)
    results = DataFolder(tmp_path / "data").results(id).parent
    (results / "gone" / "details").mkdir(parents=True)
    with service() as client:
        assert client.get(f"{API}/captures/{id}/analysis").status_code == 200
        assert [path.name for path in results.iterdir()] == [id]


def write_for_a_while(place: Path) -> None:
    (place / "begun").touch()
    time.sleep(1)
    (place / "ended").touch()


def test_a_service_waits_for_the_workers_of_a_killed_one(tmp_path: Path) -> None:
    killed = DataFolder(tmp_path / "data")
    killed.prepare()
    executor = ProcessExecutor(1, memory_bytes=1 << 34, seconds=HANG_S, held=killed.workers)
    writing = executor.submit(write_for_a_while, tmp_path)
    until((tmp_path / "begun").exists)
    # The kernel releases this lock when it kills a service; the workers end a little later.
    os.close(killed._lock)  # type: ignore[arg-type]
    DataFolder(tmp_path / "data").prepare()
    assert (tmp_path / "ended").exists()
    assert writing.result() is None
    late = executor.submit(write_for_a_while, tmp_path)
    assert isinstance(late.exception(HANG_S), LostError)
    executor.shutdown()


@pytest.mark.nightly
@pytest.mark.parametrize("sig", [signal.SIGQUIT, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_an_upload_that_loses_postgresql(
    postgres: Postgres, host: Host, capture: bytes, sig: signal.Signals, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    address = host(database_url=postgres.new_database())
    place = urlsplit(address)
    with (
        httpx2.Client(base_url=address, timeout=HANG_S) as client,
        socket.create_connection((place.hostname, place.port), timeout=HANG_S) as opened,
        caplog.at_level(logging.WARNING),
    ):
        head = (
            f"POST {API}/uploads?name=half.pcap HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(capture)}\r\n\r\n"
        )
        opened.sendall(head.encode() + capture[:100])
        until(lambda: client.get(f"{API}/captures").json()["total"])
        capfd.readouterr()
        postgres.stop(sig)
        try:
            opened.sendall(capture[100:])
            assert opened.recv(1 << 16).startswith(b"HTTP/1.1 503")
            assert client.get(f"{API}/captures").status_code == 503
        finally:
            postgres.start()

        def failed() -> Any:
            answer = client.get(f"{API}/captures")
            found = answer.json()["captures"] if answer.status_code == 200 else []
            return found and found[0]["status"] == "failed" and found[0]

        entry = until(failed)
        assert entry["failure"].endswith("send the missing files again")
        out, err = capfd.readouterr()
        said = out + err + caplog.text
        assert "Traceback" not in said, said
        assert said.count("the database does not respond") == 1, said
        # What is missing is sent again.
        files = f"{API}/captures/{entry['id']}/files?name=whole.pcap"
        assert client.put(files, content=capture).status_code == 201
        assert client.post(f"{API}/captures/{entry['id']}/analysis").status_code == 202
        assert settle(client, entry["id"])["status"] == "done"
