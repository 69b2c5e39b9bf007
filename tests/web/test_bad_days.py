"""Accidents of operators and users: each gets a clear answer, and the service works afterwards."""

import asyncio
import gzip
import hashlib
import os
import signal
import threading
import time
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from web.conftest import MakeClient
from web.crafted import API, analysed, bomb, many_connections, settle, upload
from web.postgres import ON_BOTH
from web.workers import CONNECTIONS, forkers, held_analysis, is_there, let_go, stop_all

from tcpwin_web import Settings, create_app
from tcpwin_web.jobs import JobError, ProcessExecutor
from tcpwin_web.storage.files import DataFolder, InUseError
from tcpwin_web.storage.models import Capture

GIBIBYTE = 1 << 30


def is_well(client: TestClient, capture: bytes) -> bool:
    """Return whether the service takes an upload, analyses it and shows it."""
    id = analysed(client, capture, "after.pcap")
    return client.get(f"/captures/{id}", headers={"accept": "text/html"}).status_code == 200


def held_by(client: TestClient) -> AbstractContextManager[tuple[str, list[int]]]:
    """Yield an analysis suspended halfway, and the suspended workers."""
    data = client.app.state.service.data.path
    tried: list[str] = []

    def send(sent: bytes) -> str:
        # Delete one that was analysed too soon: a small disk has no space for two.
        while tried:
            client.delete(f"{API}/captures/{tried.pop()}")
        tried.append(str(upload(client, sent, "large.pcap")["id"]))
        return tried[0]

    return held_analysis(os.getpid(), data, send)


def refuse(client: TestClient, data: bytes, name: str) -> tuple[int, str]:
    answer = client.post(f"{API}/uploads", params={"name": name}, content=data)
    assert answer.headers["content-type"] == "application/problem+json"
    left = [path for path in client.app.state.service.data.path.rglob("*") if path.is_file()]
    assert [path for path in left if path.parent.name not in ("data", "disk", "keys")] == [], "nothing is left behind"
    return answer.status_code, answer.json()["detail"]


def test_a_gzip_that_unpacks_to_ten_gigabytes(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(max_unpacked_bytes=64 << 20)
    status, detail = refuse(client, bomb(10 * GIBIBYTE), "bomb.pcap.gz")
    assert status == 413
    assert "67108864 bytes allowed" in detail
    assert is_well(client, capture)


def test_nonsense_is_refused_when_it_arrives(make_client: MakeClient, capture: bytes) -> None:
    client = make_client()
    for data, name, says in (
        (b"this is no capture at all", "nonsense.pcap", "not a pcap or pcapng file"),
        (os.urandom(5000), "nonsense.bin", "not a pcap or pcapng file"),
        (gzip.compress(os.urandom(5000)), "nonsense.pcap.gz", "not a pcap or pcapng file"),
        (b"", "empty.pcap", "an empty file"),
        (b"PK\x03\x04 and then nothing", "broken.zip", "broken.zip: damaged"),
        (b"words that no format has\n", "words.txt", "words.txt"),
    ):
        status, detail = refuse(client, data, name)
        assert status == 422
        assert says in detail
        assert str(client.app.state.service.data.path) not in detail
        assert client.get(f"{API}/captures").json()["total"] == 0
    assert is_well(client, capture)


def test_a_damaged_capture_is_read_up_to_the_damage(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture[:-20], "cut.pcap")
    answer = client.get(f"{API}/captures/{id}/analysis").json()
    (file,) = answer["capture"]["files"]
    assert answer["capture"]["packets"] == 9
    assert [warning["kind"] for warning in file["warnings"]] == ["truncated"]
    # The offset refers to the uploaded file, which only the uploader has.
    assert file["warnings"][0]["byte_offset"] == len(capture) - 70
    page = client.get(f"/captures/{id}", headers={"accept": "text/html"}).text
    assert "the file ends inside" in page
    assert "no TCP problem" not in page
    for each in (page, client.get("/", headers={"accept": "text/html"}).text):
        assert '<span class="badge warning">damaged</span>' in each


def test_a_full_disk(make_client: MakeClient, small_disk: Path, capture: bytes) -> None:
    client = make_client(data=small_disk / "data", keep_payloads=True)
    assert is_well(client, capture)
    big = many_connections(60_000)
    assert len(big) > 8 << 20
    answer = client.post(f"{API}/uploads", params={"name": "big.pcap"}, content=big)
    assert answer.status_code == 507
    assert "disk is full" in answer.json()["detail"]
    assert client.get(f"{API}/captures").json()["total"] == 1
    assert client.get("/healthz").status_code == 200
    assert is_well(client, capture)


def test_a_disk_that_fills_up_at_the_end_of_an_analysis(
    make_client: MakeClient, small_disk: Path, capture: bytes
) -> None:
    """Neither the worker nor SQLite, on the same disk, can write, not even the failure."""
    data, filler = small_disk / "data", small_disk / "filler"
    client = make_client(data=data, workers=1)
    assert is_well(client, capture)
    with held_by(client) as (id, workers):
        fill(filler)
        let_go(workers)
        while any(is_there(pid) for pid in workers):
            time.sleep(0.01)
        assert client.get("/healthz").status_code == 200
        answer = client.post(f"{API}/uploads", params={"name": "more.pcap"}, content=many_connections(1000))
        assert (answer.status_code, "disk is full" in answer.json()["detail"]) == (507, True)
        filler.unlink()
    entry = settle(client, id)
    assert entry["status"] == "failed"
    assert "the service's disk is full" in entry["failure"]
    assert not list((data / "results").glob(f"{id}.*"))
    # Once there is space it can be restarted.
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["status"] == "done"
    assert is_well(client, capture)


def test_details_that_find_no_room(make_client: MakeClient, small_disk: Path) -> None:
    client = make_client(data=small_disk / "data")
    id = analysed(client, many_connections(100))
    fill(small_disk / "filler")
    answer = client.get(f"{API}/captures/{id}/connections/99")
    assert (answer.status_code, "disk is full" in answer.json()["detail"]) == (507, True)
    # Existing results can still be read.
    assert client.get(f"{API}/captures/{id}/connections").json()["total"] == 100
    (small_disk / "filler").unlink()
    assert client.get(f"{API}/captures/{id}/connections/99").status_code == 200


def fill(file: Path) -> None:
    """Fill a disk completely."""
    with file.open("wb", buffering=0) as opened, suppress(OSError):
        while opened.write(bytes(4096)):
            pass


def test_a_job_that_loses_its_process_is_run_again_once(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(workers=1)
    with held_by(client) as (id, workers):
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
    assert settle(client, id)["status"] == "done"
    assert client.get(f"{API}/captures/{id}/connections").json()["total"] == CONNECTIONS
    assert is_well(client, capture)


def test_a_job_that_loses_its_process_again_is_a_failed_analysis(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(workers=1)
    with held_by(client) as (id, workers):
        # Each replacement is killed as well, until the service gives up.
        while workers:
            for pid in workers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            while any(is_there(pid) for pid in workers):
                time.sleep(0.005)
            while not (workers := stop_all(os.getpid())):
                if client.get(f"{API}/captures/{id}").json()["status"] != "running":
                    break
    entry = settle(client, id)
    assert entry["status"] == "failed"
    assert "its process was ended (SIGKILL)" in entry["failure"]
    assert is_well(client, capture)
    # It can be retried.
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["status"] == "done"


def test_an_analysis_can_be_cancelled(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(workers=1)
    with held_by(client) as (id, _):
        waiting = upload(client, capture, "small.pcap")["id"]
        assert client.delete(f"{API}/captures/{waiting}/analysis").json()["status"] == "cancelled"
        assert client.get(f"{API}/captures/{id}").json()["status"] == "running"
        client.delete(f"{API}/captures/{id}/analysis")
        assert settle(client, id)["status"] == "cancelled"
    assert settle(client, waiting)["status"] == "cancelled"
    assert is_well(client, capture)


def test_limits_of_time_and_memory() -> None:
    hasty = ProcessExecutor(2, memory_bytes=GIBIBYTE, seconds=1)
    patient = ProcessExecutor(2, memory_bytes=GIBIBYTE, seconds=600)
    try:
        with pytest.raises(JobError, match="longer than the 1 seconds"):
            hasty.submit(time.sleep, 600).result()
        with pytest.raises(JobError, match="1,073,741,824 bytes"):
            patient.submit(bytearray, 2 * GIBIBYTE).result()
        assert patient.submit(sum, [1, 2]).result() == 3
    finally:
        for each in (hasty, patient):
            each.shutdown(cancel_futures=True)


def test_shutting_down_ends_what_runs() -> None:
    executor = ProcessExecutor(1, memory_bytes=GIBIBYTE, seconds=600)
    running, waiting = executor.submit(time.sleep, 600), executor.submit(time.sleep, 600)
    executor.shutdown(cancel_futures=True)
    assert running.cancelled()
    assert waiting.cancelled()


@pytest.mark.nightly
def test_a_call_begun_while_the_process_that_forks_is_dying() -> None:
    """It has accepted the request and is killed before it answers."""
    executor = ProcessExecutor(1, memory_bytes=GIBIBYTE, seconds=600)
    try:
        executor.submit(os.getpid).result()
        (forker,) = forkers(os.getpid())
        os.kill(forker, signal.SIGSTOP)
        begun = executor.submit(os.getpid)
        time.sleep(0.5)
        os.kill(forker, signal.SIGKILL)
        assert begun.result() != os.getpid()
        assert forkers(os.getpid()) != [forker]
    finally:
        executor.shutdown(cancel_futures=True)


@ON_BOTH
def test_a_restart_in_the_middle_of_an_analysis_loses_nothing(
    tmp_path: Path, database_url: str | None, capture: bytes
) -> None:
    settings = Settings(data=tmp_path / "data", workers=1, database_url=database_url)
    # The service ends before its worker continues.
    with ExitStack() as goes_on, TestClient(create_app(settings), base_url="http://localhost") as before:
        id, _ = goes_on.enter_context(held_by(before))
        waiting = upload(before, capture, "small.pcap")["id"]
        assert before.get(f"{API}/captures/{id}").json()["status"] == "running"
    with TestClient(create_app(settings), base_url="http://localhost") as after:
        assert settle(after, id)["connections"] == CONNECTIONS
        assert settle(after, waiting)["status"] == "done"
        assert is_well(after, capture)


def test_expired_captures_are_deleted(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(retention_days=1)
    id = analysed(client, capture)
    kept = analysed(client, capture)
    service = client.app.state.service

    async def let_a_day_pass() -> None:
        async with service.database.begin() as session:
            (await session.get(Capture, id)).expires_ns -= 86_400 * 10**9

    assert client.portal.call(service.captures.sweep) == 0
    client.portal.call(let_a_day_pass)
    assert client.portal.call(service.captures.sweep) == 1
    assert client.get(f"{API}/captures/{id}").status_code == 404
    assert client.get(f"{API}/captures/{kept}").status_code == 200


def test_two_services_on_one_folder(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.prepare()
    with pytest.raises(InUseError, match="is in use"):
        second.prepare()
    first.release()
    second.prepare()
    second.release()


def test_what_arrived_when_the_service_was_killed_is_deleted(
    tmp_path: Path, database_url: str | None, capture: bytes
) -> None:
    """Files stored without a row, and an incomplete deletion."""
    settings = Settings(data=tmp_path / "data", database_url=database_url)
    with TestClient(create_app(settings), base_url="http://localhost") as before:
        kept = analysed(before, capture)
        half_deleted = analysed(before, many_connections(3))
        hashes = [
            file["sha256"] for id in (kept, half_deleted) for file in before.get(f"{API}/captures/{id}").json()["files"]
        ]
        data = before.app.state.service.data
        arriving = data.incoming()
        incoming = arriving.__enter__()
        file = incoming.path / "headers"
        file.write_bytes(b"what no row has")
        orphan = hashlib.sha256(file.read_bytes()).hexdigest()
        data.keep(file, orphan, incoming)
        incoming.note(hashes[0], kept)
        data.leaving(hashes[1:], half_deleted).__enter__()

        async def delete_the_row() -> None:
            async with before.app.state.service.database.begin() as session:
                for table in ("files", "jobs", "tags", "shares"):
                    await session.execute(text(f"DELETE FROM {table} WHERE capture_id = :id"), {"id": half_deleted})
                await session.execute(text("DELETE FROM captures WHERE id = :id"), {"id": half_deleted})

        before.portal.call(delete_the_row)
    assert data.blob(orphan).exists()
    with TestClient(create_app(settings), base_url="http://localhost") as after:
        assert [path.name for path in (data.path / "results").iterdir()] == [kept]
        assert [path.name for path in (data.path / "files").rglob("*") if path.is_file()] == [hashes[0]]
        assert list((data.path / "incoming").iterdir()) == []
        assert after.get(f"{API}/captures/{kept}/connections").json()["total"] == 1


def test_details_of_a_capture_that_is_deleted_meanwhile_do_not_stay(make_client: MakeClient) -> None:
    """Another capture has the same file, so the worker reads it to its end."""
    client = make_client()
    data = client.app.state.service.data.path
    id, other = (analysed(client, many_connections(100)) for _ in range(2))
    opening = threading.Thread(target=client.get, args=(f"{API}/captures/{id}/connections/99",))
    opening.start()
    while not (workers := stop_all(os.getpid())):
        assert opening.is_alive()
        time.sleep(0.001)
    assert client.delete(f"{API}/captures/{id}").status_code == 204
    let_go(workers)
    opening.join()
    assert [path.name for path in (data / "results").iterdir()] == [other]


@ON_BOTH
def test_requests_that_meet_at_one_capture(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have read it before either writes; with SQLite the second reads after the first has written."""
    client = make_client()
    in_turn = client.app.state.service.database._is_sqlite
    id = client.post(f"{API}/captures", json={"name": "x"}).json()["id"]
    captures, statuses = client.app.state.service.captures, []
    have_read = asyncio.Barrier(1 if in_turn else 2)
    load = captures._load

    async def load_together(session: Any, capture_id: str) -> Any:
        found = await load(session, capture_id)
        await have_read.wait()
        return found

    def change() -> None:
        answer = client.patch(f"{API}/captures/{id}", json={"tags": ["same"]})
        assert "application/" in answer.headers["content-type"]
        statuses.append(answer.status_code)

    monkeypatch.setattr(captures, "_load", load_together)
    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 200 if in_turn else 409]


def test_half_a_character_is_refused(make_client: MakeClient) -> None:
    client = make_client()
    for body in (b'{"name": "x", "tags": ["\\ud800"]}', b'{"name": "\\udfff"}'):
        answer = client.post(f"{API}/captures", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422


@ON_BOTH
def test_many_uploads_at_once(make_client: MakeClient, capture: bytes) -> None:
    client = make_client()
    done: list[str] = []
    threads = [threading.Thread(target=lambda: done.append(analysed(client, capture))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(done)) == 4


def test_the_same_capture_again_does_not_disturb_who_reads_it(make_client: MakeClient, capture: bytes) -> None:
    client = make_client()
    id = analysed(client, capture)
    reading = client.portal.call(client.app.state.service.queue.file_set, id).analyze()
    analysed(client, capture, "again.pcap")
    # Reads the stored file again, which must be unchanged.
    assert len(reading.views([0], buckets=16)) == 1
    assert list((client.app.state.service.data.path / "incoming").iterdir()) == []


def test_shown_captures_are_taken_in_once(tmp_path: Path, capture: bytes) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    good, bad = folder / "good.pcap", folder / "bad.pcap"
    good.write_bytes(capture)
    bad.write_bytes(b"nonsense")
    settings = Settings(data=tmp_path / "data", workers=1)
    ids = set()
    for _ in range(2):
        with TestClient(create_app(settings, [bad, good]), base_url="http://localhost") as client:
            while not (listed := client.get(f"{API}/captures").json())["skipped"] or not listed["total"]:
                time.sleep(0.01)
            (entry,) = listed["captures"]
            ids.add(entry["id"])
            assert (entry["name"], settle(client, entry["id"])["status"]) == ("good.pcap", "done")
            (skipped,) = listed["skipped"]
            assert (skipped["name"], "not a pcap or pcapng file" in skipped["reason"]) == ("bad.pcap", True)
    assert len(ids) == 1


def test_a_database_that_is_away_is_a_problem_document(make_client: MakeClient, postgres: Any) -> None:
    url = postgres.new_database()
    client = make_client(database_url=url)
    name = url.split("@/")[1].split("?")[0]
    with psycopg.connect(postgres._address("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        answer = client.get(f"{API}/captures")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert client.get(f"{API}/captures").status_code == 200
    while client.get("/readyz").status_code != 200:
        time.sleep(0.05)
