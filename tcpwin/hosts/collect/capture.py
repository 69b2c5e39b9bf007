"""Packet headers recorded by tcpdump along with the samples.

In: an interface, a file name, a libpcap filter. Out: FILE with the newest packets, FILE.1, FILE.2 … with older ones,
bounded like the samples.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import selectors
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tcpwin.errors import OutputError, SourceError
from tcpwin.hosts.collect.writer import size_of_files
from tcpwin.units import bytes_text, count_text

HEADER_BYTES = 128
"""Tagged Ethernet, IPv6 and TCP with all options take 118 bytes."""
_BUFFER_KIB = 8192
_PATIENCE_SECONDS = 10.0
_HAND_OVER_SECONDS = 1.2
"""The kernel delivers packets in blocks, at most one second late; tcpdump drops the last block when it ends."""
_BUSY_SECONDS = 5.0
_PARENT_DEATH_SIGNAL = 1
_MILLION = 1_000_000
_COUNT = re.compile(r"(\d{1,20}) packets? (captured|dropped by kernel)")


class Capture:
    """A running tcpdump.

    Raises:
        SourceError: tcpdump or the interface is missing, or this user may not capture.
        OutputError: the file already exists.
    """

    def __init__(self, interface: str, path: Path, *, packets: str, max_bytes: int, keep: int) -> None:
        self._path = path
        self._keep = keep
        self._said = ""
        program = shutil.which("tcpdump") or shutil.which("tcpdump", path="/usr/sbin:/sbin:/usr/local/sbin")
        if program is None:
            raise SourceError("capturing packets needs tcpdump, which is not installed")
        names = sorted(name for _, name in socket.if_nameindex())
        if interface not in (*names, "any"):
            raise SourceError(f"no interface {interface}; available: {', '.join(names)}, any")
        for each in (path, *path.parent.glob(f"{_escaped(path.name)}[0-9.]*")):
            if each.exists():
                raise OutputError(f"{each} already exists; choose another file")
        millions = str(max(1, max_bytes // _MILLION))
        command = [program, "-n", "-p", "-i", interface, "-s", str(HEADER_BYTES), "-B", str(_BUFFER_KIB)]
        command += ["-w", str(path), "-C", millions, "-W", str(keep), *_stay_root(program), "--", packets]
        # A separate session: the terminal's Ctrl-C must not reach tcpdump, which is ended after the last sample.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        self._wait_until_listening(interface)

    def is_running(self) -> bool:
        """Whether it is still capturing."""
        return self._process.poll() is None

    def end(self) -> str:
        """End it, rename the files, and return the number of packets written and kept."""
        if self.is_running():
            time.sleep(_HAND_OVER_SECONDS)
            self._wait_until_read()
            self._process.send_signal(signal.SIGINT)
        try:
            _, rest = self._process.communicate(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, rest = self._process.communicate()
        self._rename()
        counts = {what: int(count) for count, what in _COUNT.findall(rest.decode("utf-8", "replace"))}
        text = f"{counts['captured']:,} packets written" if "captured" in counts else "packets written"
        if dropped := counts.get("dropped by kernel"):
            text += f", {dropped:,} dropped by the kernel"
        files, kept_bytes = size_of_files([self._path, *(self._older(number) for number in range(1, self._keep))])
        return f"{text}; kept {bytes_text(kept_bytes)} in {count_text(files, 'file')}"

    def _wait_until_read(self) -> None:
        # On a busy host it may still be waiting for a CPU with unread packets.
        end = time.monotonic() + _BUSY_SECONDS
        while time.monotonic() < end and _state(self._process.pid) == "R":
            time.sleep(0.01)

    def _wait_until_listening(self, interface: str) -> None:
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        end = time.monotonic() + _PATIENCE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while selector.select(max(0.0, end - time.monotonic())):
                said = os.read(descriptor, 4096).decode("utf-8", "replace")
                self._said += said
                if "listening on" in self._said:
                    return
                if not said:
                    break
        self._process.kill()
        self._process.communicate()
        for each in (self._path, *self._numbered()):
            each.unlink(missing_ok=True)
        reason = self._said.strip().splitlines()[-1].removeprefix("tcpdump: ") if self._said.strip() else "no answer"
        raise SourceError(f"cannot capture packets on {interface}: {reason}")

    def _numbered(self) -> list[Path]:
        found = self._path.parent.glob(f"{_escaped(self._path.name)}[0-9]*")
        return [path for path in found if path.name[len(self._path.name) :].isdigit()]

    def _rename(self) -> None:
        # tcpdump numbers the files of a ring from 0 and restarts at 0.
        newest_first = sorted(self._numbered(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for number, path in enumerate(newest_first):
            path.rename(self._path if number == 0 else self._older(number))

    def _older(self, number: int) -> Path:
        return Path(f"{self._path}.{number}")


def _state(process: int) -> str:
    """Return the state of a process (proc(5), the third word of stat), or nothing if it cannot be read."""
    try:
        return Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _stay_root(program: str) -> list[str]:
    # tcpdump run by root switches to another user, who may not be able to create the ring's next file here.
    if os.geteuid() != 0:
        return []
    said = subprocess.run([program, "--help"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return ["-Z", pwd.getpwuid(0).pw_name] if b"-Z" in said.stdout + said.stderr else []


def _end_with_parent() -> None:
    # A caller that blocks signals in order to wait for them must not pass the mask on.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
