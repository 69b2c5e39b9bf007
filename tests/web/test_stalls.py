"""Clients that send nothing, read nothing, or go away: they end, and nobody else waits for them."""

import os
import re
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from live import HANG_S, until
from web.crafted import API, many_connections
from web.running import start_server
from web.wire import HOST, answer, ask, await_end, begin_upload, dial, send_until_closed, status
from web.workers import command, descendants, is_there, let_go, stop_all, workers

from tcpwin_web.results import layout

STALL_S = "2"
CONNECTIONS = 3000


@dataclass(frozen=True)
class Running:
    """A server, and a capture that it has analysed."""

    pid: int
    address: str
    data: Path
    id: str

    @property
    def large(self) -> str:
        """Where there is more than the kernel keeps for a client (tcp_wmem, tcp(7))."""
        return f"{API}/captures/{self.id}/connections?limit={CONNECTIONS}"

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.address}{path}", headers=headers, timeout=HANG_S)

    def gauge(self, name: str, kind: str) -> float:
        """What the service says of itself."""
        found = re.search(rf'^tcpwin_{name}{{kind="{kind}"}} (\S+)$', self.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def is_answering(self) -> bool:
        """Whether a page that reads results is shown."""
        return self.get(f"/captures/{self.id}", accept="text/html").status_code == 200


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("stalls")
    (folder / "none").mkdir()
    with ExitStack() as stack:
        server, address = start_server(
            stack, folder / "data", folder / "none", "--workers", "1", TCPWIN_STALL_SECONDS=STALL_S
        )
        sent = httpx2.post(
            f"{address}{API}/uploads", params={"name": "a.pcap"}, content=many_connections(CONNECTIONS), timeout=HANG_S
        )
        id = sent.json()["id"]
        until(lambda: httpx2.get(f"{address}{API}/captures/{id}", timeout=HANG_S).json()["status"] == "done")
        yield Running(server.pid, address, folder / "data", id)


def test_uploads_that_stand_still_keep_nobody_waiting_and_end(running: Running) -> None:
    with ExitStack() as stack:
        stalled = [begin_upload(stack, running.address, b"\xd4\xc3") for _ in range(12)]
        until(lambda: running.gauge("taken", "uploads") == 12)
        assert running.is_answering()
        for each in stalled:
            response = answer(each)
            assert (response.status, b"stood still" in response.read()) == (408, True)
    until(lambda: running.get(f"{API}/captures").json()["total"] == 1)
    until(lambda: list((running.data / "incoming").iterdir()) == [])


def test_an_upload_that_brings_next_to_nothing_ends_as_well(running: Running) -> None:
    with ExitStack() as stack:
        slow = begin_upload(stack, running.address, b"")
        slow.setblocking(False)
        sent = 0
        while True:
            # One byte after another, each sooner than a request may stand still.
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


def test_a_short_body_that_does_not_come_ends(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(
            b"POST /api/v1/captures HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
            + HOST
            + b'\r\n{"na'
        )
        assert status(connection) == 408


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_head_that_does_not_end_is_given_up(running: Running, sent: bytes) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(sent)
        assert status(connection) == (408 if sent else 0)


@pytest.mark.parametrize(
    ("named", "code"), [("localhost", 200), ("evil.example", 400), ("localhost@evil.example", 400)]
)
def test_a_host_in_the_address_goes_before_the_header(running: Running, named: str, code: int) -> None:
    """RFC 9112 section 3.2.2: the header is ignored, so that it cannot stand for another site's name."""
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(f"GET http://{named}/healthz HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        assert status(connection) == code


def test_a_head_that_never_ends_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        connection.sendall(b"GET / HTTP/1.1\r\n" + HOST)
        send_until_closed(connection, b"X: " + b"x" * 4000 + b"\r\n")


def test_what_a_chunked_body_has_beside_its_content_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address)
        head = b"POST /api/v1/uploads?name=x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b"1\r\nx\r\n0\r\n")
        send_until_closed(connection, b"X: " + b"x" * 4000 + b"\r\n")


def test_requests_before_the_answers_to_earlier_ones_are_few(running: Running) -> None:
    with ExitStack() as stack:
        few = dial(stack, running.address)
        few.sendall((b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") * 10)
        said = b""
        while said.count(b'{"status":"ok"}') < 10:
            more = few.recv(1 << 16)
            assert more
            said += more
        many = dial(stack, running.address)
        send_until_closed(many, (b"GET / HTTP/1.1\r\n" + HOST + b"\r\n") * 1000)


def test_an_answer_that_nobody_reads_is_not_kept(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address, buffer_bytes=4096)
        connection.sendall(b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        await_end(connection)


def test_an_answer_that_is_read_slowly_is_sent_whole(running: Running) -> None:
    with ExitStack() as stack:
        connection = dial(stack, running.address, buffer_bytes=4096)
        head = b"GET " + running.large.encode() + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        connection.sendall(head)
        response, size = answer(connection), 0
        while part := response.read(1 << 18):
            size += len(part)
            time.sleep(0.3)
        assert size == int(response.headers["content-length"])


def held_answer(
    stack: ExitStack, running: Running, path: str, source: str = "127.0.0.1"
) -> tuple[socket.socket, list[int]]:
    """A request, and the worker that is stopped while it works for it."""
    # Not one that still prepares what is opened first.
    until(lambda: (running.data / "results" / running.id / layout.FIGURES).exists() and not workers(running.pid))
    connection = ask(stack, running.address, path, source=source)
    return connection, until(lambda: stop_all(running.pid), every_s=0.0)


def stands_back(pid: int) -> bool:
    """Whether pages have the processors before this process."""
    return os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)


def test_work_that_nobody_waits_for_is_ended(running: Running) -> None:
    report = f"{API}/captures/{running.id}/report?format=html&limit=1000"
    with ExitStack() as stack:
        connection, held = held_answer(stack, running, report)
        stack.callback(let_go, held)
        assert all(stands_back(pid) for pid in held)
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
        # The other one still waits for the same work.
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
        # They hold their share of the workers, one, and all three wait for one report.
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


def browsers(running: Running) -> list[int]:
    """The processes of browsers that print for a server."""
    return [pid for pid in descendants(running.pid) if b"--user-data-dir=" in command(pid)]


def held_print(stack: ExitStack, running: Running, path: str) -> tuple[socket.socket, list[int]]:
    """A request for a PDF, and the processes of the browser that are stopped while they print it."""
    while True:
        connection = ask(stack, running.address, path)
        while not select.select([connection], [], [], 0.01)[0]:
            if pids := browsers(running):
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                return connection, pids
        # It was faster.
        connection.close()


def test_a_print_that_nobody_waits_for_ends_and_lets_the_next_one_in(
    running: Running, tool: Callable[[str], str]
) -> None:
    tool("chromium")
    report = f"{API}/captures/{running.id}/report?format=pdf&limit=1"
    with ExitStack() as stack:
        first, pids = held_print(stack, running, report)
        assert all(stands_back(pid) for pid in pids)
        gone, waiting = (ask(stack, running.address, report) for _ in range(2))
        until(lambda: running.gauge("waiting", "prints") == 2)
        gone.close()
        until(lambda: running.gauge("waiting", "prints") == 1)
        first.close()
        until(lambda: not any(is_there(pid) for pid in pids))
        response = answer(waiting)
        assert (response.status, response.read()[:4]) == (200, b"%PDF")
    until(lambda: browsers(running) == [])


def test_it_ends_when_told_whatever_runs(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Uploads that stand still, heads that do not end, answers and prints that hang, streams that are open."""
    tool("chromium")
    (tmp_path / "none").mkdir()
    with ExitStack() as stack:
        server, address = start_server(stack, tmp_path / "data", tmp_path / "none", "--workers", "1")
        sent = httpx2.post(
            f"{address}{API}/uploads", params={"name": "a.pcap"}, content=many_connections(2000), timeout=HANG_S
        )
        id = sent.json()["id"]
        until(lambda: httpx2.get(f"{address}{API}/captures/{id}", timeout=HANG_S).json()["status"] == "done")
        running = Running(server.pid, address, tmp_path / "data", id)
        for _ in range(6):
            begin_upload(stack, address, b"\xd4\xc3")
        dial(stack, address).sendall(b"GET / HT")
        _, pids = held_print(stack, running, f"{API}/captures/{id}/report?format=pdf&limit=1")
        _, held = held_answer(stack, running, f"{API}/captures/{id}/report?format=html", "127.0.0.3")
        for _ in range(5):
            ask(stack, address, f"{API}/captures/{id}/report?format=html")
        server.send_signal(signal.SIGTERM)
        server.wait(HANG_S)
        until(lambda: not any(is_there(pid) for pid in (*pids, *held)))
