"""Recording of a running workload: packets at both ends, sockets, counters, memory.

In: existing namespaces. Out: files in a folder, in formats that tcpwin reads. It changes nothing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tcpwin.lab.network import ADDRESSES, DEVICES, SPACES, NetworkError, enter
from tcpwin.lab.uninterrupted import Signals

_SNAP_BYTES = 96
"""Ethernet, IP and TCP headers with all options: 14 + 20 + 60 = 94."""
_RING_KIB = 65536
_HOSTS = tuple(ADDRESSES)
_TCP_MEMORY = re.compile(r"^TCP: .* mem (\d+)$", re.MULTILINE)
"""TCP memory of the kernel, for sender and receiver together if they share one."""
_SETTLE_S = 0.5
_BLOCK_S = 2.5
"""TPACKET_V3 delivers a block after up to one second."""


def counters() -> dict[str, int]:
    """Return the counters of this thread's namespace, by nstat's names."""
    found: dict[str, int] = {}
    for name in ("netstat", "snmp"):
        lines = Path(f"/proc/thread-self/net/{name}").read_text(encoding="ascii").splitlines()
        for heads, values in zip(lines[::2], lines[1::2], strict=True):
            section, *columns = heads.split()
            found |= {
                section.rstrip(":") + column: int(value)
                for column, value in zip(columns, values.split()[1:], strict=True)
            }
    return found


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for a process's first line on stderr, or its end; the rest remains unread."""
    assert process.stderr is not None
    said = b""
    while not said.endswith(b"\n") and (byte := os.read(process.stderr.fileno(), 1)):
        said += byte
    return said.decode("utf8", "replace")


class Capture:
    """tcpdump at both ends, with headers only and nanosecond times."""

    def __init__(self, out: Path, signals: Signals) -> None:
        self._started: list[tuple[str, subprocess.Popen[str]]] = []
        try:
            self._start(out)
            with signals.may_leave():
                self._wait()
        except BaseException:
            for _, process in self._started:
                process.kill()
                process.wait()
            raise

    def _start(self, out: Path) -> None:
        for end in _HOSTS:
            argv = ["ip", "netns", "exec", SPACES[end], "tcpdump", "-i", DEVICES[end], "-s", str(_SNAP_BYTES), "-n"]
            argv += ["-Z", "root", "-B", str(_RING_KIB), "--time-stamp-precision=nano", "-w", "-", "tcp"]
            # tcpdump would give its own output file to another user, which the lab kernel's host may not allow.
            with (out / f"{end}.pcap").open("wb") as file:
                try:
                    process = subprocess.Popen(argv, stdout=file, stderr=subprocess.PIPE, text=True)
                except FileNotFoundError:
                    raise NetworkError("the program ip is missing: install iproute2") from None
            self._started.append((end, process))

    def _wait(self) -> None:
        """Wait until both are capturing."""
        said = {end: first_line(process) for end, process in self._started}
        time.sleep(_SETTLE_S)
        for end, process in self._started:
            if process.poll() is not None:
                assert process.stderr is not None
                raise NetworkError(
                    f"tcpdump at the {end} ended at once: {(said[end] + process.stderr.read()).strip()[:200]}"
                )

    def finish(self) -> dict[str, dict[str, int]]:
        """Stop both, and return the numbers that each captured and dropped."""
        time.sleep(_BLOCK_S)
        for _, process in self._started:
            process.send_signal(signal.SIGINT)
        said = {}
        for end, process in self._started:
            text = process.communicate()[1]
            said[end] = {
                name: int(found[1]) if (found := re.search(rf"(\d+) packets? {words}", text)) else 0
                for name, words in (("captured", "captured"), ("dropped", "dropped by kernel"))
            }
        return said


class Sampler:
    """Samples sockets (`ss`), counters and /proc/net/sockstat of both hosts periodically in a separate thread.

    With `sample_ms` 0, only counters at the start and the end.
    """

    def __init__(self, out: Path, sample_ms: int, tick: Callable[[int], None]) -> None:
        self._out = out
        self._sample_ns = sample_ms * 1_000_000
        self._tick = tick
        self._rows: dict[str, list[tuple[str, dict[str, int]]]] = {end: [] for end in _HOSTS}
        self.most_tcp_memory_pages = 0
        self._stop = threading.Event()
        self._failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def finish(self) -> dict[str, dict[str, int]]:
        """Stop, write the counter tables, and return each counter's increase by host."""
        self._stop.set()
        self._thread.join()
        if self._failure:
            raise self._failure[0]
        return {end: self._write_counters(end) for end in _HOSTS}

    def _run(self) -> None:
        try:
            began_ns = next_ns = time.monotonic_ns()
            is_last = False
            while not is_last:
                is_last = self._stop.is_set()
                for end in _HOSTS:
                    enter(end)
                    self._sample(end)
                self._tick(time.monotonic_ns() - began_ns)
                next_ns += self._sample_ns
                self._stop.wait(max(0, next_ns - time.monotonic_ns()) / 1e9 if self._sample_ns else None)
        except BaseException as error:  # noqa: BLE001 - it is raised again by `finish`
            self._failure.append(error)

    def _sample(self, end: str) -> None:
        now_ns = time.time_ns()
        stamp = f"{now_ns // 10**9}.{now_ns % 10**9:09d}"
        if not self._sample_ns:
            self._rows[end].append((stamp, counters()))
            return
        sockets = subprocess.run(["ss", "-tmin"], capture_output=True, text=True, check=True).stdout
        memory = Path("/proc/thread-self/net/sockstat").read_text(encoding="ascii")
        self._rows[end].append((stamp, counters()))
        if found := _TCP_MEMORY.search(memory):
            self.most_tcp_memory_pages = max(self.most_tcp_memory_pages, int(found[1]))
        for name, text in (("ss", sockets), ("sockstat", memory)):
            with (self._out / f"{name}_{end}.txt").open("a", encoding="utf8") as out:
                out.write(f"### {stamp}\n{text}")

    def _write_counters(self, end: str) -> dict[str, int]:
        rows = self._rows[end]
        # The kernel lists a kind of ICMP message only after the first one.
        moved = [name for name, last in rows[-1][1].items() if last != rows[0][1].get(name, 0)]
        with (self._out / f"nstat_{end}.csv").open("w", encoding="ascii") as out:
            out.write(",".join(["t", *moved]) + "\n")
            for stamp, values in rows:
                out.write(",".join([stamp, *(str(values.get(name, 0)) for name in moved)]) + "\n")
        return {name: rows[-1][1][name] - rows[0][1].get(name, 0) for name in moved}
