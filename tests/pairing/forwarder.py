"""A router in one process between two namespaces, with real TCPs on both sides: it translates, rewrites and drops.

Run as `unshare -rn python forwarder.py FOLDER KIND`; it needs only permission to create namespaces. Sockets and TUN
devices stay in the namespace in which they were created, so one process holds the server in one, the client in the
other, and itself in between. It writes client.pcap and server.pcap, the packets on either side, and truth.json.

KIND: ``rewriter`` translates the client and rewrites options; ``both_ways`` translates client and server, and nothing
else; ``proxy`` terminates TCP in a separate namespace, with real sockets on both sides.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
CLONE_NEWNET = 0x40000000
LINKTYPE_RAW = 101
CLIENT, TRANSLATED, SERVER = "10.1.0.2", "10.9.0.9", "10.2.0.2"
VIRTUAL, PROXY = "10.7.0.7", ("10.8.0.1", "10.8.0.2")
PORT, CLAMPED_MSS, SHIFT = 7000, 1200, 5
DELAY_S = 0.01
BYTES = 400_000
DROP_EVERY = 40
SYN, MSS, WINDOW_SCALE, NO_OPERATION = 0x02, 2, 3, 1


def open_tun(name: str, address: str, peer: str) -> int:
    """Create a TUN device in this namespace, with a route to the other side."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    for words in (f"addr add {address}/32 dev {name}", f"link set {name} up", f"route add {peer} dev {name}"):
        subprocess.run(["ip", *words.split()], check=True)
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")
    return device


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f">{len(data) // 2 + len(data) % 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def rewrite(packet: bytes, *, from_client: bool, kind: str) -> bytes:
    """Translate the client's address and port, bleach ECN, clamp the MSS and rewrite the client's window scale.

    Or also translate the server's address, and rewrite nothing.
    """
    data = bytearray(packet)
    data[8] -= 1
    header = (data[0] & 15) * 4
    if kind == "both_ways":
        data[16:20] = data[16:20] if not from_client else socket.inet_aton(SERVER)
        data[12:16] = data[12:16] if from_client else socket.inet_aton(VIRTUAL)
    else:
        data[1] &= 0xFC
    if from_client:
        data[12:16] = socket.inet_aton(TRANSLATED)
        struct.pack_into(">H", data, header, struct.unpack_from(">H", data, header)[0] ^ 0x4000)
    else:
        data[16:20] = socket.inet_aton(CLIENT)
        struct.pack_into(">H", data, header + 2, struct.unpack_from(">H", data, header + 2)[0] ^ 0x4000)
    if data[header + 13] & SYN and kind == "rewriter":
        at, end = header + 20, header + (data[header + 12] >> 4) * 4
        while at < end and data[at]:
            if data[at] == MSS:
                struct.pack_into(">H", data, at + 2, CLAMPED_MSS)
            if data[at] == WINDOW_SCALE and from_client:
                data[at + 2] = SHIFT
            at += 1 if data[at] == NO_OPERATION else data[at + 1]
    data[10:12] = data[header + 16 : header + 18] = b"\0\0"
    struct.pack_into(">H", data, 10, checksum(bytes(data[:header])))
    pseudo = bytes(data[12:20]) + struct.pack(">HH", 6, len(data) - header)
    struct.pack_into(">H", data, header + 16, checksum(pseudo + bytes(data[header:])))
    return bytes(data)


class Recorder:
    """A pcap with nanoseconds."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, LINKTYPE_RAW))
        self.frames = 0

    def write(self, packet: bytes) -> None:
        seconds, fraction = divmod(time.time_ns(), 1_000_000_000)
        self.file.write(struct.pack("<4I", seconds, fraction, len(packet), len(packet)) + packet)
        self.frames += 1


def forward(client: int, server: int, stop: threading.Event, folder: Path, kind: str) -> None:
    """Move packets between the two devices until `stop` is set."""
    records = {client: Recorder(folder / "client.pcap"), server: Recorder(folder / "server.pcap")}
    others = {client: server, server: client}
    waiting: list[tuple[float, int, int, bytes]] = []
    dropped: list[int] = []
    data_packets = count = 0
    while not stop.is_set() or waiting:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
        for device in select.select([client, server], [], [], left)[0]:
            packet = os.read(device, 65_536)
            if packet[0] >> 4 != 4 or packet[9] != 6:
                continue
            records[device].write(packet)
            has_data = len(packet) > 200
            data_packets += has_data
            if has_data and data_packets % DROP_EVERY == 0:
                dropped.append(records[device].frames)
                continue
            count += 1
            changed = rewrite(packet, from_client=device == client, kind=kind)
            heapq.heappush(waiting, (time.monotonic() + DELAY_S, count, others[device], changed))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(waiting)
            records[device].write(packet)
            os.write(device, packet)
    for record in records.values():
        record.file.close()
    (folder / "truth.json").write_text(json.dumps({"dropped": dropped}))


def shuttle(end: int, proxy: int, stop: threading.Event, path: Path) -> None:
    """Move packets between an end's device and the proxy's unchanged, and record them."""
    record, others = Recorder(path), {end: proxy, proxy: end}
    while not stop.is_set():
        for device in select.select([end, proxy], [], [], 0.05)[0]:
            packet = os.read(device, 65_536)
            if packet[0] >> 4 == 4 and packet[9] == 6:
                record.write(packet)
                os.write(others[device], packet)
    record.file.close()


def leave_namespace() -> None:
    """Continue in a new network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def pump(source: socket.socket, target: socket.socket) -> None:
    """Move bytes from one socket to another until the source ends."""
    while data := source.recv(65_536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def transfer(sender: socket.socket, listener: socket.socket, address: str) -> None:
    """Send some data, and wait until it was read."""

    def receive() -> None:
        accepted, _ = listener.accept()
        while accepted.recv(65_536):
            pass
        accepted.close()

    receiver = threading.Thread(target=receive)
    receiver.start()
    sender.connect((address, PORT))
    sender.sendall(bytes(BYTES))
    sender.close()
    receiver.join()
    time.sleep(0.3)


def through_a_router(folder: Path, kind: str) -> None:
    server = open_tun("t0", SERVER, TRANSLATED)
    listener = socket.create_server((SERVER, PORT))
    leave_namespace()
    asked = VIRTUAL if kind == "both_ways" else SERVER
    client = open_tun("t1", CLIENT, asked)
    sender = socket.socket()
    stop = threading.Event()
    router = threading.Thread(target=forward, args=(client, server, stop, folder, kind))
    router.start()
    transfer(sender, listener, asked)
    stop.set()
    router.join()


def through_a_proxy(folder: Path) -> None:
    server = open_tun("t0", SERVER, PROXY[1])
    listener = socket.create_server((SERVER, PORT))
    leave_namespace()
    towards_client, towards_server = open_tun("p0", PROXY[0], CLIENT), open_tun("p1", PROXY[1], SERVER)
    entry, back = socket.create_server((PROXY[0], PORT)), socket.socket()
    back.bind((PROXY[1], 0))
    leave_namespace()
    client = open_tun("t1", CLIENT, PROXY[0])
    sender = socket.socket()

    def serve() -> None:
        front, _ = entry.accept()
        back.connect((SERVER, PORT))
        pump(front, back)
        front.close()
        back.close()

    stop = threading.Event()
    work = [
        threading.Thread(target=shuttle, args=(client, towards_client, stop, folder / "client.pcap")),
        threading.Thread(target=shuttle, args=(server, towards_server, stop, folder / "server.pcap")),
        threading.Thread(target=serve),
    ]
    for each in work:
        each.start()
    transfer(sender, listener, PROXY[0])
    stop.set()
    for each in work:
        each.join()
    (folder / "truth.json").write_text(json.dumps({"dropped": []}))


def main(folder: Path, kind: str) -> None:
    """Send some data from the client to the server through the middlebox."""
    if kind == "proxy":
        through_a_proxy(folder)
    else:
        through_a_router(folder, kind)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
