"""The real `tcpwin serve` on loopback with a separate data folder: address, CPU time, memory, log.

It ends with the block that started it.
"""

import http.client
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
BLOCK_BYTES = 1 << 20
SAMPLE_SECONDS = 0.05
PATIENCE_SECONDS = 600
"""Timeout of one answer: the benchmark ends even if the service hangs."""


class ServiceError(Exception):
    """The service failed, so its numbers would be meaningless."""


@dataclass
class Served:
    """A running service."""

    process: subprocess.Popen[str]
    host: str
    port: int
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Requests in its log: endpoint, status, ms."""
    peak_bytes: int = 0
    """Peak memory of all its processes together, with shared pages counted once (proportional set size)."""

    def ask(self, method: str, path: str, body: Path | bytes | None = None) -> bytes:
        """Send one request on a new connection and return the body of the response."""
        return send(self.host, self.port, method, path, body)

    def upload(self, file: Path) -> str:
        """Upload a capture, wait for the end of its analysis like a page, and return its id."""
        id = self.send(file)
        self.await_end(id)
        return id

    def send(self, file: Path) -> str:
        """Upload a capture and return its id."""
        id: str = json.loads(self.ask("POST", f"/api/v1/uploads?name={file.name}", file))["id"]
        return id

    def await_end(self, id: str) -> None:
        """Wait for the end of an analysis."""
        last = self.ask("GET", f"/api/v1/captures/{id}/progress").decode()
        if '"status":"done"' not in last:
            raise ServiceError(f"an analysis did not end well: {last[-300:]}")

    def cpu_s(self) -> float:
        """Return the CPU time of the service and all its current and former processes."""
        return sum(_cpu_ticks(each) for each in _tree(self.process.pid)) / TICKS


def send(host: str, port: int, method: str, path: str, body: Path | bytes | None = None) -> bytes:
    """Send one request on a separate connection and return the answer's body.

    Raises:
        ServiceError: no response, or an error status.
    """
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS, blocksize=BLOCK_BYTES)
    try:
        if isinstance(body, Path):
            with body.open("rb") as file:
                connection.request(method, path, file, {"Content-Length": str(body.stat().st_size)})
                return _answer(connection, method, path)
        connection.request(method, path, body, {} if body is None else {"Content-Type": "application/json"})
        return _answer(connection, method, path)
    except OSError as error:
        raise ServiceError(f"{method} {path}: {error}") from None
    finally:
        connection.close()


def _answer(connection: http.client.HTTPConnection, method: str, path: str) -> bytes:
    answer = connection.getresponse()
    body = answer.read()
    if answer.status >= 300:
        raise ServiceError(f"{method} {path}: {answer.status} {body[:300].decode(errors='replace')}")
    return body


@contextmanager
def serve(command: Sequence[str], folder: Path, **environment: str) -> Iterator[Served]:
    """Start the service on any free loopback port.

    Raises:
        ServiceError: it does not start.
    """
    none = folder / "none"
    none.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [*command, "serve", str(none), "--port", "0", "--data", str(folder / "data"), "--log-json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TCPWIN_UPLOAD_RATE": "1000000/minute", **environment},
    )
    try:
        served = _await_start(process)
        watchers = [threading.Thread(target=each, args=(served,), daemon=True) for each in (_read_log, _watch_memory)]
        for each in watchers:
            each.start()
        try:
            yield served
        finally:
            process.terminate()
            for each in watchers:
                each.join()
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _await_start(process: subprocess.Popen[str]) -> Served:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"http://(127\.0\.0\.1):(\d+)", line):
            return Served(process, found[1], int(found[2]))
    raise ServiceError(f"the service did not start: {said[-500:]}")


def _read_log(served: Served) -> None:
    assert served.process.stderr is not None
    for line in served.process.stderr:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("event") == "request":
            served.requests.append(entry)


def _watch_memory(served: Served) -> None:
    while served.process.poll() is None:
        served.peak_bytes = max(served.peak_bytes, sum(_memory_bytes(each) for each in _tree(served.process.pid)))
        time.sleep(SAMPLE_SECONDS)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield from _tree(child)


def _cpu_ticks(pid: int) -> int:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    # utime, stime, and those of children that have ended (proc(5)).
    return sum(int(word) for word in words[11:15])


def _memory_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found: Mapping[str, int] = {
        name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in text.splitlines()[1:])
    }
    return found.get("Pss", 0) << 10
