"""Failures of machines: full or read-only disks, clock jumps, a database that ends, lost processes."""

import asyncio
import gzip
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from live import HANG_S, until
from web.conftest import MakeClient
from web.crafted import API, analysed, many_connections, settle, upload
from web.postgres import ON_BOTH, Postgres
from web.running import Host, MakeServer, hosted, start_server
from web.test_bad_days import fill, held_by
from web.workers import CONNECTIONS, forkers, held_analysis, is_there

from tcpwin_web import Settings, create_app
from tcpwin_web.storage import Database
from tcpwin_web.storage.clock import JUMP_SECONDS, STEADY_SECONDS, Clock
from tcpwin_web.storage.database import InUseError

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


def test_a_full_disk_can_be_freed(make_client: MakeClient, small_disk: Path, capture: bytes) -> None:
    client = make_client(data=small_disk / "data")
    id, other = analysed(client, many_connections(1000)), analysed(client, capture)
    link = client.post(f"{API}/captures/{other}/shares", json={}).json()
    fill(small_disk / "filler")
    # Closing a link and deleting a capture are both recorded.
    assert client.delete(f"{API}/shares/{link['id']}").status_code == 204
    assert client.get(link["path"]).status_code == 404
    assert client.delete(f"{API}/captures/{id}").status_code == 204
    assert client.get(f"{API}/captures/{id}").status_code == 404
    assert not (small_disk / "data" / "results" / id).exists()
    done = [each["action"] for each in client.get(f"{API}/audit").json()["entries"]]
    assert {"share.revoke", "capture.delete"} <= set(done)


def test_a_service_starts_on_a_full_disk(make_client: MakeClient, small_disk: Path, capture: bytes) -> None:
    with hosted(small_disk / "data", workers=1) as address:
        sent = httpx2.post(f"{address}{API}/uploads", params={"name": "a.pcap"}, content=capture, timeout=HANG_S).json()
        until(lambda: httpx2.get(f"{address}{API}/captures/{sent['id']}", timeout=HANG_S).json()["status"] == "done")
    fill(small_disk / "filler")
    client = make_client(data=small_disk / "data")
    assert client.get("/readyz").json()["detail"] == "The disk is nearly full."
    assert client.delete(f"{API}/captures/{sent['id']}").status_code == 204


def test_a_folder_that_becomes_read_only(make_client: MakeClient, small_disk: Path, capture: bytes) -> None:
    client = make_client(data=small_disk / "data")
    id = analysed(client, capture)

    # A mount with files open for writing cannot be remounted, so mount the folder over itself, read-only.
    subprocess.run(["mount", "--bind", small_disk, small_disk], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", small_disk], check=True)
        assert client.get("/readyz").status_code == 503
        answer = client.post(f"{API}/uploads", params={"name": "x.pcap"}, content=capture)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert "cannot be written to" in answer.json()["detail"]
        # Stored results can still be read.
        assert client.get(f"{API}/captures/{id}/connections").status_code == 200
    finally:
        subprocess.run(["umount", "--lazy", small_disk], check=True)
    assert analysed(client, capture, "after.pcap")


class Hands:
    """Two clocks controlled by a test."""

    def __init__(self, file: Path) -> None:
        self.wall, self.steady = 1_700_000_000.0, 50.0
        self.clock = Clock(file, wall=lambda: self.wall, steady=lambda: self.steady)

    def go_on(self, seconds: float, *, jump: float = 0.0) -> bool:
        self.wall += seconds + jump
        self.steady += seconds
        return self.clock.is_steady()


def test_a_clock_is_believed_again_once_it_has_gone_on_for_a_while(tmp_path: Path) -> None:
    hands = Hands(tmp_path / "clock")
    assert hands.go_on(0)
    assert hands.go_on(600, jump=JUMP_SECONDS - 1)
    for jump in (40 * 86_400.0, -40 * 86_400.0):
        assert not hands.go_on(600, jump=jump)
        assert not hands.go_on(STEADY_SECONDS - 1)
        assert hands.go_on(1)
    # The next service knows when the previous one last ran.
    later = Hands(tmp_path / "clock")
    later.wall = hands.wall + 40 * 86_400
    assert not later.go_on(0)
    soon = Hands(tmp_path / "clock")
    soon.wall = later.wall + 600
    assert soon.go_on(0)


def test_a_service_deletes_nothing_while_it_doubts_the_clock(tmp_path: Path, capture: bytes) -> None:
    """According to its file the last service ran 40 days ago: either that is true, or the clock jumped."""
    data = tmp_path / "data"
    with hosted(data) as address, httpx2.Client(base_url=address, timeout=HANG_S) as client:
        id = analysed(client, capture)
    with closing(sqlite3.connect(data / "tcpwin.sqlite3")) as rows, rows:
        rows.execute("UPDATE captures SET expires_ns = 1")
    now = time.time()
    (data / "clock").write_text(str(now - 40 * 86_400))
    with hosted(data) as address, httpx2.Client(base_url=address, timeout=HANG_S) as client:
        until(lambda: float((data / "clock").read_text()) > now)
        # A sweep that trusted the clock would delete it now.
        time.sleep(0.5)
        assert client.get(f"{API}/captures/{id}").status_code == 200
    with hosted(data) as address, httpx2.Client(base_url=address, timeout=HANG_S) as client:
        until(lambda: client.get(f"{API}/captures/{id}").status_code == 404)


@pytest.mark.nightly
def test_a_clock_that_jumps_ahead_deletes_nothing(on_database: list[str], tmp_path: Path, capture: bytes) -> None:
    """A real server under libfaketime, whose wall clock jumps by 40 days between two sweeps."""
    if FAKETIME is None:
        pytest.skip("libfaketime is not installed")
    shift = tmp_path / "shift"
    shift.write_text("+0")
    data = tmp_path / "data"
    faked = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(shift),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with ExitStack() as stack:
        server, address = start_server(stack, data, *on_database, TCPWIN_RETENTION_DAYS="30", **faked)
        sent = httpx2.post(f"{address}{API}/uploads", params={"name": "a.pcap"}, content=capture, timeout=HANG_S).json()
        until(lambda: httpx2.get(f"{address}{API}/captures/{sent['id']}", timeout=HANG_S).json()["status"] == "done")
        shift.write_text("+40d")
        # Monotonic clocks are unaffected: work continues.
        for _ in range(3):
            answer = httpx2.post(f"{address}{API}/captures", json={"name": "after"}, timeout=HANG_S)
            assert answer.status_code == 201
        assert answer.json()["created_ns"] > time.time_ns() + 39 * 86_400 * 10**9
        server.terminate()
        server.wait()
        # A service looks for expired data when it starts.
        _, address = start_server(stack, data, *on_database, TCPWIN_RETENTION_DAYS="30", **faked)
        until(lambda: float((data / "clock").read_text()) > time.time() + 1)
        assert httpx2.get(f"{address}{API}/captures/{sent['id']}", timeout=HANG_S).status_code == 200


def is_claimed(url: str) -> bool:
    """Return whether a service has claimed a database."""

    async def claim() -> bool:
        database = Database(url)
        try:
            await database.claim()
        except InUseError:
            return True
        finally:
            await database.close()
        return False

    return asyncio.run(claim())


@ON_BOTH
def test_two_servers_on_one_database(
    make_server: MakeServer, host: Host, tmp_path: Path, database_url: str | None
) -> None:
    url = database_url or f"sqlite+aiosqlite:///{tmp_path / 'x.db'}"
    server, _ = make_server("--database-url", url)
    second = create_app(Settings(data=tmp_path / "second", database_url=url))
    with pytest.raises(InUseError, match="another service works on this database"), TestClient(second):
        pass
    # A killed service does not block the next one.
    server.kill()
    server.wait()
    assert httpx2.get(f"{host(database_url=url)}/readyz", timeout=HANG_S).status_code == 200


@pytest.mark.nightly
@pytest.mark.parametrize("sig", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGQUIT])
def test_a_database_that_ends_in_mid_work(
    postgres: Postgres, tmp_path: Path, capture: bytes, sig: signal.Signals
) -> None:
    """PostgreSQL is restarted, or killed, during an analysis, and the service is killed during another."""
    data, url = tmp_path / "data", postgres.new_database()
    arguments = ("--workers", "1", "--database-url", url)
    with ExitStack() as stack:
        server, address = start_server(stack, data, *arguments)

        def send(content: bytes) -> str:
            answer = httpx2.post(f"{address}{API}/uploads", params={"name": "x.pcap"}, content=content, timeout=HANG_S)
            return str(answer.json()["id"])

        with httpx2.Client(base_url=address, timeout=HANG_S) as client:
            with held_analysis(server.pid, data, send) as (id, _):
                waiting = send(capture)
                postgres.stop(sig)
                try:
                    answer = client.get(f"{API}/captures")
                    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
                    assert client.get("/healthz").status_code == 200
                    assert "does not respond" in client.get("/readyz").json()["detail"]
                finally:
                    postgres.start()
            for each in (id, waiting):
                until(lambda each=each: client.get(f"{API}/captures/{each}").json().get("status") == "done")
            assert client.get(f"{API}/captures/{id}/connections").json()["total"] == CONNECTIONS
            until(lambda: client.get("/readyz").status_code == 200)
            # It has claimed the database again, so no other service can.
            assert is_claimed(url)
            with held_analysis(server.pid, data, send) as (id, pids):
                server.kill()
                server.wait()
            # Workers end with the killed service.
            until(lambda: not any(is_there(pid) for pid in pids))
    with hosted(data, database_url=url) as address, httpx2.Client(base_url=address, timeout=HANG_S) as client:
        until(lambda: client.get(f"{API}/captures/{id}").json()["status"] == "done")


def test_the_process_that_forks_workers_is_killed(make_client: MakeClient, capture: bytes) -> None:
    client = make_client(workers=1)
    with held_by(client) as (id, _):
        for pid in forkers(os.getpid()):
            os.kill(pid, signal.SIGKILL)
    entry = settle(client, id)
    assert (entry["status"], entry["connections"]) == ("done", CONNECTIONS)
    until(lambda: client.get("/readyz").status_code == 200)
    analysed(client, capture)


def test_readiness_names_the_problem(make_client: MakeClient) -> None:
    client = make_client()
    assert client.get("/readyz").json() == {"status": "ready"}
    service = client.app.state.service
    client.portal.call(service.queue.stop)
    service.readiness._asking = None
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["detail"]) == (503, "No analyses are being started.")


@pytest.mark.nightly
def test_a_server_with_little_memory(on_database: list[str], tmp_path: Path, capture: bytes) -> None:
    """With prlimit: an analysis that needs more memory fails with a reason; others continue."""
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        pytest.skip("prlimit is not installed")
    with ExitStack() as stack:
        server, address = start_server(stack, tmp_path / "data", "--workers", "1", *on_database)
        with httpx2.Client(base_url=address, timeout=HANG_S) as client:

            def outcome(content: bytes) -> dict[str, Any]:
                id = client.post(f"{API}/uploads", params={"name": "x.pcap"}, content=content).json()["id"]
                return settled(client, id)

            before = outcome(capture)
            assert before["status"] == "done", before
            # The process that forks workers has the limit, which they inherit.
            (forker,) = forkers(server.pid)
            subprocess.run([prlimit, "--pid", str(forker), f"--as={1 << 30}"], check=True)
            entry = outcome(syns(1_500_000))
            assert entry["status"] == "failed"
            assert "memory" in entry["failure"]
            after = outcome(capture)
            assert after["status"] == "done", after


def settled(client: httpx2.Client, id: str) -> dict[str, Any]:
    """Wait for the end of an analysis by a real server."""
    while True:
        entry: dict[str, Any] = client.get(f"{API}/captures/{id}").json()
        if entry["status"] in ("done", "failed"):
            return entry
        time.sleep(0.05)


def syns(count: int) -> bytes:
    """Connections of one packet each, of which the engine stores 56 bytes."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    tail = b"\xc6\x33\x64\x02\x9c\x40\x00\x50" + struct.pack(">IIBBHHH", 1, 0, 0x50, 2, 8000, 0, 0)
    record = struct.pack("<IIII", 1_700_000_000, 0, 40, 40)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0x4000, 64, 6, 0)
    return head + b"".join(record + ip + struct.pack(">I", 0x0A000000 + number) + tail for number in range(count))


def test_a_bomb_of_tiny_packets(make_client: MakeClient, capture: bytes) -> None:
    """A small file with very many empty packets costs time but no memory."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    block = gzip.compress(struct.pack("<IIII", 1_700_000_000, 0, 0, 0) * 500_000)
    client = make_client(max_unpacked_bytes=64 << 20)
    small = gzip.compress(head) + block * 4
    entry = settle(client, upload(client, small, "tiny.pcap.gz")["id"])
    assert (entry["status"], entry["packets"], entry["connections"]) == ("done", 2_000_000, 0)
    answer = client.post(f"{API}/uploads", params={"name": "more.pcap.gz"}, content=gzip.compress(head) + block * 20)
    assert (answer.status_code, "67108864 bytes allowed" in answer.json()["detail"]) == (413, True)
    analysed(client, capture)


@pytest.mark.nightly
def test_a_sparse_file_of_ten_gigabytes(host: Host, tmp_path: Path, capture: bytes) -> None:
    """Only its first block is on disk; copying or storing it would take ten gigabytes."""
    given = tmp_path / "given"
    given.mkdir()
    with (given / "sparse.pcap").open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        file.truncate(10 << 30)
    (given / "zero.pcap").write_bytes(capture)
    before_bytes = bytes_read()
    address = host(given / "sparse.pcap", given / "zero.pcap", max_unpacked_bytes=64 << 20)
    with httpx2.Client(base_url=address, timeout=HANG_S) as client:

        def looked() -> dict[str, Any]:
            found: dict[str, Any] = client.get(f"{API}/captures").json()
            return found if found["skipped"] and found["captures"] else {}

        listed = until(looked)
        (skipped,) = listed["skipped"]
        assert (skipped["name"], "67108864 bytes allowed" in skipped["reason"]) == ("sparse.pcap", True)
        assert [each["name"] for each in listed["captures"]] == ["zero.pcap"]
    until(lambda: list((tmp_path / "served" / "incoming").iterdir()) == [])
    # The rest was read for a reason.
    assert bytes_read() - before_bytes < 1 << 30


def bytes_read() -> int:
    """Return the bytes read by this process (proc(5))."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])
