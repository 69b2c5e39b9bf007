"""Clients that stall or disconnect, also while the service stops: everything ends, and nobody waits."""

import select
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pytest
from live import HANG_S, until
from web.crafted import API
from web.postgres import Postgres
from web.running import MakeServer
from web.stalling import CONNECTIONS, Running, analysed, browsers, held_answer, held_print
from web.wire import answer, ask, begin_upload, dial, status
from web.workers import is_there, let_go

from tcpwin_web.listening import BROWSER_SECONDS, END_SECONDS


def test_stalled_uploads_delay_nobody_and_end(running: Running) -> None:
    with ExitStack() as stack:
        stalled = [begin_upload(stack, running.address, b"\xd4\xc3") for _ in range(12)]
        # On a slow machine the first may end before the last arrives.
        until(lambda: running.gauge("taken", "uploads") == 12 or select.select(stalled, [], [], 0)[0])
        assert running.is_answering()
        for each in stalled:
            response = answer(each)
            assert (response.status, b"stalled" in response.read()) == (408, True)
    until(lambda: running.get(f"{API}/captures").json()["total"] == 1)
    until(lambda: list((running.data / "incoming").iterdir()) == [])


def test_an_upload_that_brings_next_to_nothing_ends_as_well(running: Running) -> None:
    with ExitStack() as stack:
        slow = begin_upload(stack, running.address, b"")
        slow.setblocking(False)
        sent = 0
        while True:
            # One byte after another, each within the stall limit.
            try:
                assert slow.send(b"\xd4") == 1
                sent += 1
                assert b" 408 " in slow.recv(1000)
            except BlockingIOError:
                time.sleep(0.2)
            except ConnectionError:
                break
            else:
                break
        assert 0 < sent < 1000


def test_work_that_nobody_waits_for_is_ended(running: Running) -> None:
    report = f"{API}/captures/{running.id}/report?format=html&limit=1000"
    with ExitStack() as stack:
        connection, held = held_answer(stack, running, report)
        stack.callback(let_go, held)
        waiting = [ask(stack, running.address, report) for _ in range(3)]
        until(lambda: running.gauge("waiting", "answers") == 3)
        for each in waiting:
            each.close()
        until(lambda: running.gauge("waiting", "answers") == 0)
        assert all(is_there(pid) for pid in held)
        connection.close()
        until(lambda: not any(is_there(pid) for pid in held))
        until(lambda: running.gauge("taken", "answers") == 0)


def test_details_that_several_wait_for_end_with_the_last_of_them(running: Running) -> None:
    details = f"{API}/captures/{running.id}/connections/{CONNECTIONS - 1}"
    with ExitStack() as stack:
        first, held = held_answer(stack, running, details)
        second = ask(stack, running.address, details)
        first.close()
        # The other caller still waits for the same work.
        let_go(held)
        assert status(second) == 200


def test_guests_leave_room_for_others(running: Running) -> None:
    made = httpx2.post(f"{running.address}{API}/captures/{running.id}/shares", json={}, timeout=HANG_S).json()
    with ExitStack() as stack:
        guest, held = held_answer(stack, running, f"{API}{made['path']}/report?format=html", "127.0.0.2")
        stack.callback(let_go, held)
        others = [
            ask(stack, running.address, f"{API}{made['path']}/report?format=md", source=f"127.0.1.{number}")
            for number in range(1, 4)
        ]
        until(lambda: running.gauge("waiting", "answers") == 1)
        # Their share of the workers is one, and all three wait for one report.
        assert running.gauge("taken", "answers") == 1
        text = running.get(f"{API}/captures/{running.id}/report?format=text")
        assert text.status_code == 200
        guest.close()
        assert [status(each) for each in others] == [200, 200, 200]


def test_guests_are_counted(running: Running) -> None:
    made = httpx2.post(f"{running.address}{API}/captures/{running.id}/shares", json={}, timeout=HANG_S).json()
    with ExitStack() as stack:
        statuses = [
            status(ask(stack, running.address, f"{API}{made['path']}/report?format=md", source="127.0.3.1"))
            for _ in range(12)
        ]
        assert statuses == [200] * 10 + [429] * 2
        # Another guest is another address.
        assert status(ask(stack, running.address, f"{API}{made['path']}", source="127.0.3.2")) == 200


@pytest.mark.nightly
def test_a_print_that_nobody_waits_for_ends_and_lets_the_next_one_in(
    running: Running, tool: Callable[[str], str]
) -> None:
    tool("chromium")
    report = f"{API}/captures/{running.id}/report?format=pdf&limit=1"
    with ExitStack() as stack:
        first, pids = held_print(stack, running, report)
        until(lambda: all(running.has_before(pid) for pid in pids if is_there(pid)))
        gone, waiting = (ask(stack, running.address, report) for _ in range(2))
        until(lambda: running.gauge("waiting", "prints") == 2)
        gone.close()
        until(lambda: running.gauge("waiting", "prints") == 1)
        first.close()
        until(lambda: not any(is_there(pid) for pid in pids))
        response = answer(waiting)
        assert (response.status, response.read()[:4]) == (200, b"%PDF")
    until(lambda: browsers(running) == [])


def test_it_ends_on_request_whatever_runs(
    make_server: MakeServer, on_database: list[str], tmp_path: Path, tool: Callable[[str], str]
) -> None:
    """Stalled uploads, endless request heads, suspended answers and prints, queued requests."""
    tool("chromium")
    server, address = make_server("--workers", "1", *on_database)
    running = Running(server.pid, address, tmp_path / "served", analysed(address, 2000))
    with ExitStack() as stack:
        for _ in range(6):
            begin_upload(stack, address, b"\xd4\xc3")
        dial(stack, address).sendall(b"GET / HT")
        _, pids = held_print(stack, running, f"{API}/captures/{running.id}/report?format=pdf&limit=1")
        _, held = held_answer(stack, running, f"{API}/captures/{running.id}/report?format=html", "127.0.0.3")
        for _ in range(5):
            ask(stack, address, f"{API}/captures/{running.id}/report?format=html")
        server.send_signal(signal.SIGTERM)
        server.wait(HANG_S)
        until(lambda: not any(is_there(pid) for pid in (*pids, *held)))


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.nightly), "postgres"], indirect=True)
def test_it_ends_although_its_database_hangs(
    make_server: MakeServer, on_database: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A query that the database never answers cannot be ended, so it is abandoned."""
    assert END_SECONDS + BROWSER_SECONDS < 10
    server, address = make_server("--workers", "1", *on_database)
    assert httpx2.get(f"{address}{API}/captures", timeout=HANG_S).status_code == 200
    with ExitStack() as stack:
        if on_database:
            postgres: Postgres = request.getfixturevalue("postgres")
            stack.enter_context(postgres.standing_still())
        else:
            file = tmp_path / "served" / "tcpwin.sqlite3"
            held = stack.enter_context(closing(sqlite3.connect(file, isolation_level=None)))
            held.execute("BEGIN EXCLUSIVE")
        body = b'{"name": "x"}'
        waiting = dial(stack, address)
        waiting.sendall(
            f"POST {API}/captures HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        server.send_signal(signal.SIGTERM)
        # Not by the signal, as after a clean shutdown, but by the guard set when the signal arrived.
        assert server.wait(HANG_S) == 128 + signal.SIGTERM
