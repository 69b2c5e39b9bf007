"""A client, a router with a real box and a server in three namespaces, and a path with a fault between two of them.

Needs root. The router forwards, translates addresses, forgets (nftables, conntrack) or is a proxy (HAProxy); between it
and the server a program delays, limits the rate, loses, refuses by size, breaks off and forges resets. Writes
client.pcap, middle.pcap and server.pcap, and the client's log.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import math
import os
import random
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.box import PORT, ROUTER, SERVER, command, haproxy_config, load_rules, wait_until_listening
from servers.network import Recorder, leave_namespace, open_tun
from worlds.sweeping import apart

LEFT_S = 0.3


@dataclass
class World:
    """A world: path, box, conversation, and its lifts.

    Attributes:
        steps: exchanges: seconds before it, bytes of request and answer, seconds of the server's work.
        give_up_s: seconds without progress after which the client tries the rest over a new connection.
        rules: nftables rules of the router.
        lifts: by name: the limit, and what to set.
        elsewhere: other right limits and their owners, by capture point.
    """

    rtt_ms: float
    rate_mbps: float
    seed: int = 1
    loss: float = 0.0
    steps: list[tuple[float, int, int, float]] = field(default_factory=list)
    give_up_s: float = 8.0
    sysctls: dict[str, int] = field(default_factory=dict)
    mtu: int = 1500
    rules: str = ""
    forgets_s: int = 0
    proxy_s: float = 0.0
    keep_alive: bool = False
    most_bytes: int = 0
    outage: tuple[float, float, str] | None = None
    forged: tuple[int, int] | None = None
    lifts: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    elsewhere: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)

    @property
    def side(self) -> str:
        """The sides of the router that the middle capture covers."""
        return ("near", "far", "any")[self.seed % 3]

    def lifted(self, name: str) -> World:
        """Return the world with one cause lifted."""
        return World(**{**vars(self), **self.lifts[name][1]})


_HEAD = struct.Struct("!III")


def _read(connection: socket.socket, size: int) -> bytes:
    """Read exactly so many bytes."""
    parts = []
    while size:
        if not (part := connection.recv(min(size, 65_536))):
            raise ConnectionError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _send(connection: socket.socket, size: int, head: bytes = b"") -> None:
    data = memoryview(head + bytes(size))
    while data:
        data = data[connection.send(data[:65_536]) :]


def _serve(listener: socket.socket) -> None:
    """Answer the requests of each connection."""
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        with suppress(OSError):
            while True:
                request, answer, work_us = _HEAD.unpack(_read(connection, _HEAD.size))
                _read(connection, request)
                time.sleep(work_us / 1e6)
                _send(connection, answer)
        os._exit(0)


def _ask(made: World, log: Path) -> None:
    """Make the exchanges; after a failure, the rest over a new connection. Log the time and the failures."""
    began_ns, failures, done = time.monotonic_ns(), 0, 0
    connection = _connect(made)
    for wait_s, request, answer, work_s in made.steps:
        time.sleep(wait_s)
        while failures < 2:
            try:
                _send(connection, request, _HEAD.pack(request, answer, round(work_s * 1e6)))
                _read(connection, answer)
            except OSError:
                failures += 1
                connection.close()
                connection = _connect(made)
                continue
            done += 1
            break
    log.write_text(json.dumps([time.monotonic_ns() - began_ns, failures, done]))


def _connect(made: World) -> socket.socket:
    connection = socket.create_connection((ROUTER if made.proxy_s else SERVER, PORT), made.give_up_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if made.keep_alive:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    return connection


def _set(**values: int) -> None:
    for name, value in values.items():
        Path("/proc/sys/net/ipv4", name).write_text(str(value))


def _start(act: Callable[[], None]) -> int:
    """Run a function in a new process, in its own process group."""
    if number := os.fork():
        return number
    status = 1
    try:
        os.setpgid(0, 0)
        act()
        status = 0
    finally:
        os._exit(status)


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _reset(packet: bytes, seq: int, ttl: int) -> bytes:
    """Return a RST from the sender of a packet, which the sender did not make."""
    ports, ends = packet[20:24], packet[12:20]
    tcp = ports + struct.pack("!IIBBHHH", seq, 0, 5 << 4, 4, 0, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", _checksum(ends + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, ttl, 6, 0) + ends
    return ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:] + tcp


class Way:
    """The way between router and server."""

    def __init__(self, made: World, router: int, server: int) -> None:
        self.made, self.router = made, router
        self.others = {router: server, server: router}
        self.free_s = {router: 0.0, server: 0.0}
        self.drawn = random.Random(made.seed)
        self.waiting: list[tuple[float, int, int, bytes]] = []
        self.count = 0
        self.began_s = 0.0
        self.passed = 0
        self.first_port: bytes | None = None
        self.is_reset = False

    def push(self, at_s: float, to: int, packet: bytes) -> None:
        self.count += 1
        heapq.heappush(self.waiting, (at_s, self.count, to, packet))

    def take(self, device: int) -> None:
        """Take a packet of one side and delay or drop it."""
        packet, now_s, made = os.read(device, 65_536), time.monotonic(), self.made
        self.began_s = self.began_s or now_s
        if len(packet) < 40 or packet[0] != 0x45 or (made.most_bytes and len(packet) > made.most_bytes):
            return
        self.free_s[device] = max(now_s, self.free_s[device]) + 8 * len(packet) / (made.rate_mbps * 1e6)
        arrives_s = self.free_s[device] + made.rtt_ms / 2000
        if self.is_out(device, now_s - self.began_s) or self.drawn.random() < made.loss:
            return
        self.push(arrives_s, self.others[device], packet)
        if made.forged and packet[9] == 6:
            self.forge(device, packet, arrives_s)

    def is_out(self, device: int, since_s: float) -> bool:
        if self.made.outage is None:
            return False
        start_s, length_s, way = self.made.outage
        ways = ("both", "up" if device == self.router else "down")
        return start_s <= since_s < start_s + length_s and way in ways

    def forge(self, device: int, packet: bytes, arrives_s: float) -> None:
        """Reset the first connection once enough has passed."""
        assert self.made.forged is not None
        least, ttl = self.made.forged
        seq, ack, offset, flags = struct.unpack("!IIBB", packet[24:34])
        length = len(packet) - 20 - (offset >> 4) * 4
        port = packet[20:22] if device == self.router else packet[22:24]
        self.first_port = self.first_port or port
        if self.is_reset or port != self.first_port:
            return
        self.passed += length
        if self.passed < least or not length or not flags & 16:
            return
        self.is_reset = True
        there = _reset(packet, (seq + length) % 2**32, ttl)
        turned = packet[:12] + packet[16:20] + packet[12:16] + packet[22:24] + packet[20:22]
        back = _reset(turned, ack, ttl)
        # The box is in the middle of the way.
        self.push(arrives_s, self.others[device], there)
        self.push(time.monotonic() + self.made.rtt_ms / 4000, device, back)

    def carry(self, recorders: Sequence[Recorder], asking: int) -> None:
        """Carry packets until the client has ended."""
        until_s = math.inf
        while time.monotonic() < until_s:
            if until_s == math.inf and os.waitpid(asking, os.WNOHANG)[0]:
                until_s = time.monotonic() + self.made.rtt_ms / 500 + LEFT_S
            left_s = min(0.05, max(0.0, self.waiting[0][0] - time.monotonic())) if self.waiting else 0.05
            for ready in select.select([*self.others, *recorders], [], [], left_s)[0]:
                if isinstance(ready, Recorder):
                    ready.read()
                else:
                    self.take(ready)
            while self.waiting and self.waiting[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(self.waiting)
                os.write(device, packet)


def run(made: World, folder: Path) -> None:
    """Run a world once, in new namespaces; leave the captures and the client's log."""
    started = []
    try:
        leave_namespace()
        server = open_tun("t0", SERVER, "10.2.0.1")
        command("ip", "route", "add", "default", "dev", "t0")
        _set(**made.sysctls)
        at_server = Recorder("t0")
        listener = socket.create_server((SERVER, PORT))
        started.append(_start(lambda: _serve(listener)))
        leave_namespace()
        router = open_tun("s0", "10.2.0.1", SERVER)
        space = os.open("/proc/self/ns/net", os.O_RDONLY)
        path = f"/proc/{os.getpid()}/fd/{space}"
        leave_namespace()
        command("ip", "link", "set", "lo", "up")
        command("ip", "link", "add", "c1", "type", "veth", "peer", "name", "c0", "netns", path)
        inside = ("nsenter", f"--net={path}")
        for words in ("addr add 10.1.0.2/24 dev c1", "link set c1 up gso_max_segs 1"):
            command("ip", *words.split())
        for words in (f"addr add {ROUTER}/24 dev c0", "link set c0 up gso_max_segs 1"):
            command(*inside, "ip", *words.split())
        command("ip", "route", "add", "default", "via", ROUTER)
        _set(**made.sysctls)
        _set_up_router(made, inside, folder, started)
        at_client = Recorder("c1")
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        _enter(space)
        near, far = Recorder("c0"), Recorder("s0")
        _enter(own)
        log = folder / "log.json"
        asking = _start(lambda: _ask(made, log))
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        Way(made, router, server).carry((at_client, at_server, near, far), asking)
        middle = Recorder()
        # One side of the box, or both, as `tcpdump -i any` captures them.
        for side in {"near": (near,), "far": (far,), "any": (near, far)}[made.side]:
            middle.packets += side.packets
        for name, record in (("client", at_client), ("middle", middle), ("server", at_server)):
            record.write(folder / f"{name}.pcap")
    finally:
        for number in started:
            with suppress(ProcessLookupError):
                os.killpg(number, signal.SIGKILL)


def _enter(space: int) -> None:
    """Continue in another namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _set_up_router(made: World, inside: tuple[str, ...], folder: Path, started: list[int]) -> None:
    settings = {"ipv4/ip_forward": 1}
    load_rules(made.rules, *inside)
    if made.forgets_s:
        settings |= {
            f"netfilter/nf_conntrack_tcp_{key}": value
            for key, value in (("timeout_established", made.forgets_s), ("loose", 0))
        }
    script = "".join(f"echo {value} > /proc/sys/net/{name}\n" for name, value in settings.items())
    command(*inside, "sh", "-e", text=script)
    if made.mtu != 1500:
        # On the way of the data only: a link refuses larger packets that arrive, without a word.
        is_up = max(step[1] for step in made.steps) > max(step[2] for step in made.steps)
        command(*inside, "ip", "link", "set", "s0" if is_up else "c0", "mtu", str(made.mtu))
    if made.proxy_s:
        config = folder / "haproxy.cfg"
        config.write_text(haproxy_config(made.proxy_s))
        started.append(_start(lambda: os.execvp("nsenter", [*inside, "haproxy", "-db", "-f", str(config)])))
        wait_until_listening(*inside)


def timed(made: World, folder: Path) -> tuple[int, int, int]:
    """Run a world in a process; return its duration, failures, and the exchanges that were made."""
    apart(lambda: run(made, folder))
    time_ns, failures, done = json.loads((folder / "log.json").read_text())
    return time_ns, failures, done
