"""Connections that stall, in a separate network namespace, with a recorder.

Run as `unshare -rn python stalls.py FOLDER TCPWIN KIND`. Writes the recorder's output to FOLDER/lines.jsonl and
FOLDER/errors.txt, and its bundles to FOLDER/bundles.

KIND: ``reader`` stops reading; ``down`` takes the interface down and up again before a reader stops; ``fine`` is fast.
Over a delaying path between two namespaces, ``loss`` drops every fiftieth data segment, and ``idle`` sends messages
with pauses, after each of which the kernel starts with a small congestion window.
"""

from __future__ import annotations

import heapq
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pairing.forwarder import leave_namespace, open_tun

SERVER = "127.0.0.1"
NEAR, FAR = "10.1.0.1", "10.1.0.2"
PATIENCE_S = 60.0
DELAY_S = {"loss": 0.02, "idle": 0.05}
DROP_EVERY = 50
MESSAGES, MESSAGE_BYTES, PAUSE_S = 4, 500_000, 2.0


def pump(kind: str) -> None:
    """Send 900 kB to a reader that may stop for a second and a half."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
    server.bind((SERVER, 0))
    server.listen(1)

    def read() -> None:
        accepted, _ = server.accept()
        if kind != "fine":
            time.sleep(1.5)
        while accepted.recv(1 << 16):
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with socket.create_connection(server.getsockname()) as client:
        client.sendall(bytes(900_000))
    reader.join()


def carry(near: int, far: int, kind: str, stop: threading.Event) -> None:
    """Move packets between two devices with a delay, and drop some."""
    others, waiting = {near: far, far: near}, list[tuple[float, int, int, bytes]]()
    count = data_segments = 0
    while not stop.is_set():
        left_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
        for device in select.select([near, far], [], [], left_s)[0]:
            packet = os.read(device, 65_536)
            data_segments += len(packet) > 1000
            count += 1
            if kind == "loss" and len(packet) > 1000 and data_segments % DROP_EVERY == 0:
                continue
            heapq.heappush(waiting, (time.monotonic() + DELAY_S[kind], count, others[device], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(*heapq.heappop(waiting)[2:])


def send_over_a_path(near: int, sender: socket.socket, kind: str) -> None:
    """Send from the namespace that this process leaves to another one."""
    leave_namespace()
    far, stop = open_tun("t1", FAR, NEAR), threading.Event()
    listener = socket.create_server((FAR, 0))

    def read() -> None:
        accepted, _ = listener.accept()
        while accepted.recv(1 << 16):
            pass

    work = [threading.Thread(target=read), threading.Thread(target=carry, args=(near, far, kind, stop))]
    for each in work:
        each.start()
    with sender:
        sender.connect(listener.getsockname())
        for number in range(MESSAGES):
            sender.sendall(bytes(MESSAGE_BYTES))
            if kind == "idle" and number < MESSAGES - 1:
                time.sleep(PAUSE_S)
    work[0].join()
    # Let the packets in transit arrive.
    time.sleep(5 * DELAY_S[kind])
    stop.set()
    work[1].join()


@contextmanager
def recorder(folder: Path, tcpwin: str, interface: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a recorder in this namespace."""
    command = [tcpwin, "watch", "-i", interface, "--json", "--every", "500ms", "--after", "500ms", "--cost", "200ms"]
    command += ["-o", str(folder / "bundles"), "--sample", "100ms"]
    with (folder / "lines.jsonl").open("wb") as lines, (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(command, stdout=lines, stderr=errors)
        try:
            wait_for(lambda: " 0003 " in Path("/proc/net/packet").read_text())
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def main() -> None:
    folder, tcpwin, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    near = open_tun("t0", NEAR, FAR) if kind in DELAY_S else None
    with recorder(folder, tcpwin, "lo" if near is None else "t0") as process:
        if kind == "down":
            subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
            wait_for(lambda: "down" in (folder / "errors.txt").read_text())
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        if near is None:
            pump(kind)
        else:
            sender = socket.socket()
            # BBR keeps its window after a pause (`tcp_slow_start_after_idle_check`).
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            send_over_a_path(near, sender, kind)
        done = "round" if kind == "fine" else "bundle"
        wait_for(lambda: f'"type": "{done}"' in (folder / "lines.jsonl").read_text())
    sys.exit(process.returncode)


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_there():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


if __name__ == "__main__":
    main()
