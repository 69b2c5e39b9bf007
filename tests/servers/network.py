"""Two namespaces with a delay between them, and captures at both ends and on the way.

Run as `unshare -rn python network.py FOLDER KIND DELAY_MS`; it needs only permission to create namespaces. KIND names a
module of this folder: `start(folder)` runs its servers, and `ask(folder)` its client, which returns the truth. Writes
client.pcap, middle.pcap, server.pcap and truth.json; the times at the ends are the kernel's.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import math
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
CLONE_NEWNET = 0x40000000
LINKTYPE_RAW, ETH_P_ALL, SO_TIMESTAMPNS = 101, 3, 35
CLIENT, SERVER, PORT = "10.1.0.2", "10.2.0.2", 7000
MIDDLE = 0.3
"""Place of the middle capture on the way from the client to the server."""
LEFT_S = 0.3


def open_tun(name: str, address: str, peer: str) -> int:
    """Create a TUN device in this namespace, with a route to the other side."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    for words in (
        "link set lo up",
        f"addr add {address}/32 dev {name}",
        f"link set {name} up",
        f"route add {peer} dev {name}",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    return device


class Recorder:
    """The packets of a device or of a place on the way, written as a pcap."""

    def __init__(self, device: str = "") -> None:
        self.packets: list[tuple[int, int, bytes]] = []
        if device:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self.socket.bind((device, 0))
            self.socket.setblocking(False)

    def fileno(self) -> int:
        return self.socket.fileno()

    def note(self, time_ns: int, packet: bytes) -> None:
        self.packets.append((time_ns, len(self.packets), packet))

    def read(self) -> None:
        """Note what has passed the device."""
        with suppress(BlockingIOError):
            while True:
                packet, extra, _, _ = self.socket.recvmsg(65_536, 64)
                seconds, nanoseconds = struct.unpack("@qq", extra[0][2][:16])
                self.note(seconds * 10**9 + nanoseconds, packet)

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, LINKTYPE_RAW))
            for time_ns, _, packet in sorted(self.packets):
                if packet[0] >> 4 == 4:
                    file.write(struct.pack("<4I", *divmod(time_ns, 10**9), len(packet), len(packet)) + packet)


def leave_namespace() -> None:
    """Continue in a new network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


@dataclass(frozen=True)
class Way:
    """The path in each direction: it delays, carries no more than its rate, and loses."""

    delay_s: float
    rate_bps: float = math.inf
    loss: float = 0.0
    seed: int = 1


def forward(devices: list[int], ends: list[Recorder], way: Way, asking: subprocess.Popen[Any]) -> Recorder:
    """Delay packets each way until the client has ended, and return what passed the middle.

    `devices`, `ends`: the client's, then the server's.
    """
    client, server = devices
    others, places = {client: server, server: client}, {client: MIDDLE, server: 1 - MIDDLE}
    free_s = dict.fromkeys(devices, 0.0)
    drawn = random.Random(way.seed)
    middle, waiting = Recorder(), list[tuple[float, int, int, bytes]]()
    until_s = math.inf
    while time.monotonic() < until_s:
        if until_s == math.inf and asking.poll() is not None:
            until_s = time.monotonic() + 4 * way.delay_s + LEFT_S
        left_s = min(0.05, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.05
        for ready in select.select([*devices, *ends], [], [], left_s)[0]:
            if isinstance(ready, Recorder):
                ready.read()
                continue
            packet, now_s, now_ns = os.read(ready, 65_536), time.monotonic(), time.time_ns()
            free_s[ready] = max(now_s, free_s[ready]) + 8 * len(packet) / way.rate_bps
            left_s = free_s[ready] - now_s
            passes_ns = now_ns + round((left_s + places[ready] * way.delay_s) * 1e9)
            is_lost = drawn.random() < way.loss
            if is_lost and drawn.random() < places[ready]:
                continue  # Before the middle.
            middle.note(passes_ns, packet)
            if is_lost:
                continue
            heapq.heappush(waiting, (free_s[ready] + way.delay_s, len(middle.packets), others[ready], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(waiting)
            os.write(device, packet)
    return middle


ASK = """import json, sys
from importlib import import_module
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "truth.json").write_text(json.dumps(import_module("servers." + sys.argv[2]).ask(folder)))
"""


def main(folder: Path, kind: str, delay_s: float) -> None:
    """Run one kind of conversation over the path."""
    server = open_tun("t0", SERVER, CLIENT)
    at_server = Recorder("t0")
    running = list(import_module(f"servers.{kind}").start(folder))
    for number in (0, *(process.pid for process in running)):
        # A forwarder that waits for a processor would lengthen the path, and a server its work.
        with suppress(PermissionError):
            os.sched_setscheduler(number, os.SCHED_FIFO, os.sched_param(1))
    leave_namespace()
    client = open_tun("t1", CLIENT, SERVER)
    at_client = Recorder("t1")
    asking = subprocess.Popen([sys.executable, "-c", ASK, str(folder), kind])
    try:
        middle = forward([client, server], [at_client, at_server], Way(delay_s / 2), asking)
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
    if asking.returncode:
        raise OSError(f"the client of {kind} failed")
    for name, record in (("client", at_client), ("middle", middle), ("server", at_server)):
        record.write(folder / f"{name}.pcap")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]) / 1000)
