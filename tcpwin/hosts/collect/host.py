"""This host's counters, memory, settings and kernel, from files in /proc.

In: nothing. Out: counters by nstat's names and memory of all sockets, only changes each time; once, the settings
relevant to TCP, and the kernel.
"""

from __future__ import annotations

import gzip
import os
import re
import socket
import time
from pathlib import Path
from typing import Any

PROC_NET = Path("/proc/net")
PROC_SYS = Path("/proc/sys")

SETTINGS = (
    "net/ipv4/tcp_*",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_no_pmtu_disc",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/core/optmem_max",
    "net/core/default_qdisc",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/somaxconn",
    "net/core/busy_poll",
    "net/core/busy_read",
)
SECRET = frozenset(("net.ipv4.tcp_fastopen_key",))
"""Never read: this key allows forging TCP Fast Open cookies."""

_READ_BYTES = 1 << 16
_MAX_BYTES = 1 << 20
_MAX_SECTIONS = 100
_TICKS = re.compile(rb"^CONFIG_HZ=(\d{2,5})$", re.MULTILINE)


class _File:
    """A file in /proc that is read repeatedly. Missing or forbidden files are empty."""

    def __init__(self, path: Path) -> None:
        try:
            self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._number = -1

    def read(self) -> bytes:
        if self._number < 0:
            return b""
        try:
            data = os.pread(self._number, _READ_BYTES, 0)
            while len(data) < _MAX_BYTES and (more := os.pread(self._number, _READ_BYTES, len(data))):
                data += more
        except OSError:
            return b""
        return data

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
            self._number = -1


class _Section:
    """A line of names, and the line of values last seen below it."""

    def __init__(self, names: bytes) -> None:
        self.line = b""
        section, _, rest = names.decode("ascii", "replace").partition(":")
        self._label = section.encode() + b":"
        self._names = [section + name for name in rest.split()]
        self._words: list[bytes] = [b""] * len(self._names)

    def changed(self, line: bytes, *, everything: bool) -> dict[str, int]:
        self.line = line
        if not line.startswith(self._label):
            return {}
        before, self._words = self._words, line[len(self._label) :].split()
        return {
            name: int(word)
            for name, old, word in zip(self._names, before, self._words, strict=False)
            if everything or old != word
        }


class Host:
    """Counters and memory of this network namespace, read repeatedly."""

    def __init__(self, *, proc_net: Path = PROC_NET) -> None:
        self._counter_files = [_File(proc_net / name) for name in ("netstat", "snmp")]
        self._memory_files = [_File(proc_net / name) for name in ("sockstat", "sockstat6")]
        self._sections: dict[bytes, _Section] = {}
        self._memory = b""

    def close(self) -> None:
        """Close the files."""
        for file in (*self._counter_files, *self._memory_files):
            file.close()

    def counters(self, *, everything: bool = False) -> dict[str, int]:
        """Return the counters that changed since the last call, by nstat's names: section and name, as
        ``TcpExtPruneCalled``.

        Source: /proc/net/netstat and /proc/net/snmp, a line of names before each line of values (net/ipv4/proc.c).
        """
        changed = {}
        for file in self._counter_files:
            lines = file.read().split(b"\n")
            for names, values in zip(lines[::2], lines[1::2], strict=False):
                known = self._sections.get(names)
                if known is None or len(self._sections) > _MAX_SECTIONS:
                    known = self._sections[names] = _Section(names)
                if everything or known.line != values:
                    changed.update(known.changed(values, everything=everything))
        return changed

    def memory(self, *, everything: bool = False) -> dict[str, dict[str, int]]:
        """Return the numbers of /proc/net/sockstat and sockstat6 by section and name; empty if none changed."""
        text = b"".join(file.read() for file in self._memory_files)
        if text == self._memory and not everything:
            return {}
        self._memory = text
        found = {}
        for line in text.decode("ascii", "replace").splitlines():
            section, _, rest = line.partition(":")
            words = rest.split()
            found[section] = {name: int(number) for name, number in zip(words[::2], words[1::2], strict=False)}
        return found


def read_settings(*, proc_sys: Path = PROC_SYS) -> dict[str, str]:
    """Return the readable settings in `SETTINGS` by dotted name, with values separated by single spaces."""
    found = {}
    for pattern in SETTINGS:
        for path in sorted(proc_sys.glob(pattern)):
            name = ".".join(path.relative_to(proc_sys).parts)
            if name in SECRET:
                continue
            try:
                found[name] = " ".join(path.read_text("ascii", "replace").split())
            except OSError:
                continue
    return found


def read_kernel() -> dict[str, Any]:
    """Return release, host name, page size, and ticks per second if the kernel's configuration is readable."""
    release = os.uname().release
    kernel: dict[str, Any] = {
        "release": release,
        "hostname": socket.gethostname(),
        "page_size_bytes": os.sysconf("SC_PAGE_SIZE"),
    }
    ticks = _read_ticks(release)
    if ticks is not None:
        kernel["ticks_per_second"] = ticks
    return kernel


def read_clock() -> dict[str, int]:
    """Return the wall clock and the monotonic clock, read together."""
    before = time.monotonic_ns()
    realtime_ns = time.time_ns()
    return {"realtime_ns": realtime_ns, "monotonic_ns": (before + time.monotonic_ns()) // 2}


def _read_ticks(release: str) -> int | None:
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes())
    except OSError:
        try:
            text = Path(f"/boot/config-{release}").read_bytes()
        except OSError:
            return None
    match = _TICKS.search(text)
    return int(match[1]) if match else None
