"""A recording: samples of this host at a steady interval, until stopped.

In: interval, duration, socket filter, destination. Out: `tcpwin/snap/1` files, and a summary. The interval does not
drift: a late sample does not delay the following ones, and missed samples are skipped and counted.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.hosts.collect.capture import Capture
from tcpwin.hosts.collect.filter import Filter
from tcpwin.hosts.collect.host import Host, read_clock, read_kernel, read_settings
from tcpwin.hosts.collect.sockets import SocketDump
from tcpwin.hosts.collect.tcp_info import zero_fields
from tcpwin.hosts.collect.writer import SCHEMA, Writer, sample_lines

SECOND = 1_000_000_000
WHOLE_EVERY_NS = 5 * SECOND
"""Interval between samples that contain everything, changed or not."""
_LONGEST_INFO = 1024


@dataclass(frozen=True, slots=True)
class Recording:
    """Summary of a recording.

    Attributes:
        samples: number written.
        skipped: omitted because the previous one took too long.
        most_sockets: maximum in one sample.
        files: sample files started; old ones beyond the number to keep were deleted.
        written_bytes: total of all files.
        kept_files, kept_bytes: sample files present at the end.
        elapsed_ns, cpu_ns: time from the first sample to the end; CPU time of this process, including kernel time.
        packets: tcpdump's count of written packets, and the kept files; None without a capture.
        capture_ended: whether tcpdump ended prematurely.
    """

    samples: int
    skipped: int
    most_sockets: int
    files: int
    written_bytes: int
    kept_files: int
    kept_bytes: int
    elapsed_ns: int
    cpu_ns: int
    packets: str | None
    capture_ended: bool


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def record(
    path: Path,
    *,
    every_ns: int = SECOND // 5,
    duration_ns: int | None = None,
    filter: Filter | None = None,
    max_bytes: int = 64 << 20,
    keep: int = 4,
    interface: str | None = None,
    capture_path: Path | None = None,
    wait: Callable[[float], bool] = _sleep,
) -> Recording:
    """Sample this host's TCP sockets, counters and memory into `path`.

    Args:
        every_ns: interval between samples.
        duration_ns: time from the first sample to the end; None to run until `wait` returns true.
        filter: the sockets to record; None for all.
        max_bytes, keep: maximum size and number of files. A file contains at least one sample.
        interface, capture_path: where to capture packet headers, and the file they go to.
        wait: sleeps for some seconds and returns whether to stop.

    Raises:
        SnapshotError: the kernel does not list its sockets.
        SourceError: packets cannot be captured.
        OutputError: a file already exists, or cannot be written.
    """
    with SocketDump(wanted=None if filter is None else filter.matches) as dump:
        dump.look()
        recorder = _Recorder(dump, filter, every_ns)
        with Writer(path, max_bytes=max_bytes, keep=keep) as writer:
            writer.begin(recorder.start())
            capture = None
            if interface is not None and capture_path is not None:
                packets = "tcp" if filter is None else filter.packets()
                try:
                    capture = Capture(interface, capture_path, packets=packets, max_bytes=max_bytes, keep=keep)
                except TcpwinError:
                    writer.discard()
                    raise
            said = None
            try:
                recorder.run(writer, duration_ns, wait)
            finally:
                recorder.host.close()
                ended = capture is not None and not capture.is_running()
                said = None if capture is None else capture.end()
            kept_files, kept_bytes = writer.size()
            return Recording(
                samples=recorder.samples,
                skipped=recorder.skipped,
                most_sockets=recorder.most_sockets,
                files=writer.files,
                written_bytes=writer.written_bytes,
                kept_files=kept_files,
                kept_bytes=kept_bytes,
                elapsed_ns=recorder.elapsed_ns,
                cpu_ns=recorder.cpu_ns,
                packets=said,
                capture_ended=ended,
            )


class _Recorder:
    def __init__(self, dump: SocketDump, filter: Filter | None, every_ns: int) -> None:
        self.host = Host()
        self.samples = 0
        self.skipped = 0
        self.most_sockets = 0
        self.elapsed_ns = 0
        self.cpu_ns = 0
        self._dump = dump
        self._filter = filter
        self._every_ns = every_ns
        self._whole_at_ns = 0

    def start(self) -> dict[str, Any]:
        """Return the start record. Settings are read again because they may have changed since the previous file."""
        from tcpwin.version import __version__

        length = _tcp_info_bytes()
        record: dict[str, Any] = {"type": "start", "schema": SCHEMA, "time_ns": time.time_ns(), "version": __version__}
        record["every_ns"] = self._every_ns
        if self._filter is not None:
            record["filter"] = self._filter.text
        record["clock"] = read_clock()
        record["kernel"] = read_kernel()
        record["tcp_info_bytes"] = length
        record["left_out"] = zero_fields(length)
        record["settings"] = read_settings()
        return record

    def run(self, writer: Writer, duration_ns: int | None, wait: Callable[[float], bool]) -> None:
        begin_ns, cpu_begin_ns = time.monotonic_ns(), time.process_time_ns()
        last = None if duration_ns is None else duration_ns // self._every_ns
        slot = 0
        reason = "time"
        while True:
            self._sample(writer)
            passed = (time.monotonic_ns() - begin_ns) // self._every_ns
            if last is not None:
                passed = min(passed, last)
            self.skipped += max(0, passed - slot)
            slot = max(slot, passed) + 1
            next_ns = begin_ns + slot * self._every_ns
            is_last = last is not None and slot > last
            if is_last:
                next_ns = begin_ns + (duration_ns or 0)
            if wait(max(0, next_ns - time.monotonic_ns()) / SECOND):
                reason = "asked"
                break
            if is_last:
                break
        self.elapsed_ns = time.monotonic_ns() - begin_ns
        self.cpu_ns = time.process_time_ns() - cpu_begin_ns
        writer.end(
            {
                "type": "end",
                "time_ns": time.time_ns(),
                "reason": reason,
                "samples": self.samples,
                "skipped": self.skipped,
                "clock": read_clock(),
            }
        )

    def _sample(self, writer: Writer) -> None:
        is_whole = time.monotonic_ns() >= self._whole_at_ns
        lines = self._read(is_whole)
        if writer.is_full(lines) and self.samples:
            writer.begin(self.start())
            is_whole = True
            lines = self._read(is_whole)
        if is_whole:
            self._whole_at_ns = time.monotonic_ns() + WHOLE_EVERY_NS
        writer.write(lines)
        self.samples += 1

    def _read(self, is_whole: bool) -> list[bytes]:
        time_ns, begin_ns = time.time_ns(), time.monotonic_ns()
        sockets = self._dump.look(everything=is_whole)
        self.most_sockets = max(self.most_sockets, sockets.count)
        head: dict[str, Any] = {"type": "sample", "time_ns": time_ns}
        counters = self.host.counters(everything=is_whole)
        memory = self.host.memory(everything=is_whole)
        head["took_ns"] = time.monotonic_ns() - begin_ns
        if is_whole:
            head["whole"] = True
        if memory:
            head["memory"] = memory
        if counters:
            head["counters"] = counters
        return sample_lines(head, sockets)


def _tcp_info_bytes() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as any_socket:
        return len(any_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LONGEST_INFO))
