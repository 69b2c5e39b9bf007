"""A server with stalled clients, and workers and browsers suspended during their work."""

import os
import re
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from live import HANG_S, until
from web.crafted import API, many_connections
from web.postgres import SQLITE_BY_DAY, Postgres
from web.running import start_server
from web.wire import ask
from web.workers import command, descendants, is_there, let_go, stop_all, suspend, workers

from tcpwin_web.results import layout
from tcpwin_web.service import ANSWER_NICENESS

STALL_S = "2"
CONNECTIONS = 3000


@dataclass(frozen=True)
class Running:
    """A server and an analysed capture."""

    pid: int
    address: str
    data: Path
    id: str

    @property
    def large(self) -> str:
        """A page larger than the kernel's send buffer (tcp_wmem, tcp(7))."""
        return f"{API}/captures/{self.id}/connections?limit={CONNECTIONS}"

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.address}{path}", headers=headers, timeout=HANG_S)

    def gauge(self, name: str, kind: str) -> float:
        """Return a gauge of the service."""
        found = re.search(rf'^tcpwin_{name}{{kind="{kind}"}} (\S+)$', self.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def is_answering(self) -> bool:
        """Return whether a page that reads results is shown."""
        return self.get(f"/captures/{self.id}", accept="text/html").status_code == 200

    def has_before(self, pid: int) -> bool:
        """Return whether its pages get CPU time before this process."""
        return os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, self.pid)


@pytest.fixture(scope="session", params=SQLITE_BY_DAY)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server at a lower priority, as with systemd's `Nice=`."""
    folder = tmp_path_factory.mktemp("stalls")
    arguments = ["--workers", "1"]
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        arguments += ["--database-url", postgres.new_database()]
    with ExitStack() as stack:
        server, address = start_server(
            stack, folder / "data", *arguments, niceness=ANSWER_NICENESS, TCPWIN_STALL_SECONDS=STALL_S
        )
        yield Running(server.pid, address, folder / "data", analysed(address, CONNECTIONS))


def analysed(address: str, connections: int) -> str:
    """Have a server analyse a capture with this many connections; return its id."""
    content = many_connections(connections)
    sent = httpx2.post(f"{address}{API}/uploads", params={"name": "a.pcap"}, content=content, timeout=HANG_S)
    id = str(sent.json()["id"])
    until(lambda: httpx2.get(f"{address}{API}/captures/{id}", timeout=HANG_S).json()["status"] == "done")
    return id


def held_answer(
    stack: ExitStack, running: Running, path: str, source: str = "127.0.0.1"
) -> tuple[socket.socket, list[int]]:
    """Yield a request and its suspended worker, which has a lower priority by then."""
    while True:
        # Not a worker that prepares details in advance.
        until(lambda: (running.data / "results" / running.id / layout.FIGURES).exists() and not workers(running.pid))
        connection = ask(stack, running.address, path, source=source)
        while not select.select([connection], [], [], 0)[0]:
            held = stop_all(running.pid)
            if held and all(running.has_before(pid) for pid in held):
                return connection, held
            let_go(held)
        # It finished before it was suspended.
        connection.close()


def browsers(running: Running) -> list[int]:
    """Return the browser processes that print for a server."""
    return [pid for pid in descendants(running.pid) if b"--user-data-dir=" in command(pid)]


def held_print(stack: ExitStack, running: Running, path: str) -> tuple[socket.socket, list[int]]:
    """Yield a request for a PDF, and the suspended browser processes that print it."""
    while True:
        connection = ask(stack, running.address, path)
        while not select.select([connection], [], [], 0.01)[0]:
            pids = suspend(browsers(running))
            # Without the process that the service waits for, these are the rest of a finished print.
            if any(is_there(pid) and os.getsid(pid) == pid for pid in pids):
                return connection, pids
            let_go(pids)
        # It finished before it was suspended.
        connection.close()
