"""A running service under a crowd: stalled uploads, guests, honest uploads, readers.

Attackers leave when honest clients have been served, or after `MOST_SECONDS`, so the load ends.
"""

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .loads import _cut, percentile
from .rows import Row
from .served import Served, ServiceError

MOST_SECONDS = 600.0
API = "/api/v1"
HEAD = "Host: localhost\r\n"


@dataclass(frozen=True)
class Crowd:
    """Numbers of each kind of client."""

    stalled: int = 6
    guests: int = 40
    uploads: int = 50
    readers: int = 20


@dataclass
class _Results:
    """Results of the clients, shared by their threads."""

    left: threading.Event = field(default_factory=threading.Event)
    page_ms: list[float] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    guest_statuses: list[int] = field(default_factory=list)


def attacked(served: Served, capture: Path, folder: Path, size_bytes: int, crowd: Crowd | None = None) -> list[Row]:
    """Run all at once: readers and uploads are served, and the attackers leave little behind."""
    crowd, results = crowd or Crowd(), _Results()
    shown = served.upload(capture)
    pages = ("/", f"/captures/{shown}", f"/captures/{shown}/connections/0", "/rules")
    for page in pages:
        served.ask("GET", page)
    link = json.loads(served.ask("POST", f"{API}/captures/{shown}/shares", b"{}"))["path"]
    files = [_cut(capture, folder / f"crowd-{number}.pcap", size_bytes, number) for number in range(crowd.uploads)]
    attackers = [
        *(_start(_stall, served, results) for _ in range(crowd.stalled)),
        *(_start(_be_guest, served, results, link, number) for number in range(crowd.guests)),
    ]
    readers = [_start(_read, served, results, pages, number) for number in range(crowd.readers)]
    guard = threading.Timer(MOST_SECONDS, results.left.set)
    guard.start()
    with ThreadPoolExecutor(crowd.uploads) as pool:
        failed = [error for error in pool.map(lambda file: _upload(served, file), files) if error]
    results.left.set()
    guard.cancel()
    gone = time.perf_counter()
    for each in (*attackers, *readers):
        each.join()
    recovered_s = _recover(served, shown) + time.perf_counter() - gone
    for error in (*failed, *results.page_errors)[:3]:
        print(f"an honest request failed: {error}")
    came = f"{crowd.stalled} stalled, {crowd.guests} guests, {crowd.uploads} uploads, {crowd.readers} readers"
    statuses = results.guest_statuses
    return [
        Row(f"{came}: a page, p95 of {len(results.page_ms):,}", "ms", (percentile(results.page_ms, 0.95),), 1000, None),
        Row("the same: errors of the honest", "", (len(failed) + len(results.page_errors),), 0, None),
        Row("the same: until all is free again", "s", (recovered_s,), 5, None),
        Row("the same: guests answered", "", (statuses.count(200),), None, None),
        Row("the same: guests put off (429, 503)", "", (sum(each in (429, 503) for each in statuses),), None, None),
    ]


def _start(fn: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=fn, args=arguments, daemon=True)
    thread.start()
    return thread


def _upload(served: Served, file: Path) -> str | None:
    try:
        served.upload(file)
    except ServiceError as error:
        return str(error)
    return None


def _stall(served: Served, results: _Results) -> None:
    """Begin an upload, send two bytes, and wait; repeat when it ends."""
    head = f"POST {API}/uploads?name=stalled.pcap HTTP/1.1\r\n{HEAD}Content-Length: 1000000\r\n\r\n"
    while not results.left.is_set():
        with suppress(OSError), socket.create_connection((served.host, served.port)) as connection:
            connection.sendall(head.encode() + b"\xd4\xc3")
            connection.settimeout(0.2)
            while not results.left.is_set():
                try:
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    continue


def _be_guest(served: Served, results: _Results, link: str, number: int) -> None:
    """Request reports repeatedly from one source address."""
    forms = ("pdf", "html", "md")
    asked = number
    while not results.left.is_set():
        form, asked = forms[asked % len(forms)], asked + 1
        source = (f"127.0.1.{number + 1}", 0)
        with suppress(OSError), socket.create_connection((served.host, served.port), source_address=source) as sent:
            sent.sendall(f"GET {API}{link}/report?format={form} HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode())
            sent.settimeout(0.2)
            said = b""
            while not results.left.is_set():
                try:
                    more = sent.recv(1 << 20)
                except TimeoutError:
                    continue
                if not said and more:
                    results.guest_statuses.append(int(more.split(b" ", 2)[1]))
                said = more
                if not more:
                    break


def _read(served: Served, results: _Results, pages: Sequence[str], number: int) -> None:
    """Read pages like people."""
    asked = number
    while not results.left.is_set():
        page, asked = pages[asked % len(pages)], asked + 1
        begun = time.perf_counter()
        try:
            served.ask("GET", page)
        except (ServiceError, http.client.HTTPException) as error:
            results.page_errors.append(f"{page}: {error}")
        results.page_ms.append((time.perf_counter() - begun) * 1000)
        results.left.wait(0.1)


def _recover(served: Served, shown: str) -> float:
    """Wait until none of the attackers' work remains, and a page is served normally."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < MOST_SECONDS:
        metrics = served.ask("GET", "/metrics").decode()
        used = re.findall(r"^tcpwin_(?:taken|waiting)\{[^}]*\} (\S+)$", metrics, re.MULTILINE)
        if not any(map(float, used)):
            served.ask("GET", f"/captures/{shown}")
            return time.perf_counter() - begun
        time.sleep(0.02)
    raise ServiceError("what the attackers wanted is still being done")
