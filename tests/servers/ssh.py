"""SSH: a shell that works on each line that it is sent, and measures how long."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from servers.network import PORT, SERVER

LINES, WORK_S, THINK_S = 50, 0.012, 0.008
_OPTIONS = ("UsePAM=no", "StrictModes=no", "PidFile=none", "PermitRootLogin=yes", "PasswordAuthentication=no")
_WORKER = """import sys, time
took_s = 0.0
for _ in sys.stdin:
    began_s = time.monotonic()
    time.sleep({work_s})
    took_s += time.monotonic() - began_s
    print("answer", flush=True)
open({log!r}, "w").write(str(took_s))
"""


def start(folder: Path) -> list[subprocess.Popen[Any]]:
    """Run a server with keys made for this run."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    options = [f"ListenAddress={SERVER}:{PORT}", f"HostKey={folder}/host", f"AuthorizedKeysFile={folder}/user.pub"]
    words = [word for option in (*_OPTIONS, *options) for word in ("-o", option)]
    (folder / "worker.py").write_text(_WORKER.format(work_s=WORK_S, log=str(folder / "server.log")))
    server = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", *words])
    time.sleep(0.5)
    return [server]


def ask(folder: Path) -> dict[str, Any]:
    """Send line after line, each after the answer to the last."""
    options = [
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        f"IdentityFile={folder}/user",
        "LogLevel=ERROR",
    ]
    words = [word for option in options for word in ("-o", option)]
    think_s = 0.0
    command = [
        "ssh",
        "-F",
        "none",
        *words,
        "-p",
        str(PORT),
        f"root@{SERVER}",
        "python3",
        "-u",
        str(folder / "worker.py"),
    ]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert client.stdin is not None
    assert client.stdout is not None
    for _ in range(LINES):
        began_s = time.monotonic()
        time.sleep(THINK_S)
        think_s += time.monotonic() - began_s
        client.stdin.write("ask\n")
        client.stdin.flush()
        if client.stdout.readline() != "answer\n":
            raise OSError("no answer")
    client.stdin.close()
    client.wait()
    work_s = float((folder / "server.log").read_text())
    return {"exchanges": LINES, "work_s": work_s, "think_s": think_s}
