"""Wait for a condition instead of a time, and reserve ports that nobody else uses."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from reference import NO_RIGHT

from tcpwin.hosts.collect import Filter
from tcpwin.hosts.collect.sockets import SocketDump

T = TypeVar("T")

HANG_S = 600
"""Timeout against hangs, long enough for slow machines; no test depends on it."""


def until(condition: Callable[[], T], *, every_s: float = 0.02) -> T:
    """Poll until an answer counts as true, and return it."""
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        if answer := condition():
            return answer
        time.sleep(every_s)
    pytest.fail("what was waited for never came")


def wait_for_hand_over(tcpdump: subprocess.Popen[bytes]) -> None:
    """Wait until tcpdump has read the captured packets: the kernel hands them over within a second, then it must have
    run.
    """
    time.sleep(1.2)
    until(lambda: tcpdump.poll() is not None or is_asleep(tcpdump.pid))


def is_asleep(process: int) -> bool:
    """Return whether a process waits for something other than a CPU (proc(5), the third word of stat)."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def need_right_to_capture() -> None:
    """Skip where this process may not capture packets."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except PermissionError:
        pytest.skip(f"{NO_RIGHT} capture packets")


def sockets_of(wanted: Filter) -> int:
    """Return the number of sockets of a kind on this host."""
    with SocketDump(wanted=wanted.matches) as dump:
        return dump.look().count


def make_listener() -> socket.socket:
    """Listen on a port of 127.0.0.1 that no socket of this host uses, including recently closed ones."""
    while True:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        if sockets_of(Filter(f"sport = :{port} or dport = :{port}")) == 1:
            return listener
        listener.close()


def only(client: socket.socket) -> str:
    """Return the filter of both ends of one loopback connection; a port alone may match others too."""
    near, far = client.getsockname()[1], client.getpeername()[1]
    return f"(sport = :{near} and dport = :{far}) or (sport = :{far} and dport = :{near})"
