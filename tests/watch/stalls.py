"""Connections that stall, in a network namespace of their own, with a recorder beside them.

Run as `unshare -rn python stalls.py FOLDER TCPWIN KIND`. Out: what the recorder wrote, in FOLDER/lines.jsonl and
FOLDER/errors.txt, with its bundles in FOLDER/bundles.

KIND: ``reader`` stops reading; ``down`` takes the interface down and up again before a reader stops; ``fine`` is quick.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

SERVER = "127.0.0.1"
PATIENCE_S = 60.0


def pump(kind: str) -> None:
    """Send 900 kB to a reader that stops for a second and a half, or does not."""
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


def main() -> None:
    folder, tcpwin, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    command = [tcpwin, "watch", "-i", "lo", "--json", "--every", "500ms", "--after", "500ms", "--cost", "200ms"]
    command += ["-o", str(folder / "bundles"), "--sample", "100ms"]
    with (folder / "lines.jsonl").open("wb") as lines, (folder / "errors.txt").open("wb") as errors:
        recorder = subprocess.Popen(command, stdout=lines, stderr=errors)
        try:
            wait_for(lambda: " 0003 " in Path("/proc/net/packet").read_text())
            if kind == "down":
                subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
                wait_for(lambda: "down" in (folder / "errors.txt").read_text())
                subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            pump(kind)
            done = "round" if kind == "fine" else "bundle"
            wait_for(lambda: f'"type": "{done}"' in (folder / "lines.jsonl").read_text())
        finally:
            recorder.terminate()
            recorder.wait(PATIENCE_S)
    sys.exit(recorder.returncode)


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_there():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


if __name__ == "__main__":
    main()
