"""SMB: a shared folder listed again and again, whose server asks a slow script how much space is left."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from servers.network import PORT, SERVER

LISTINGS, WORK_S, THINK_S = 30, 0.05, 0.008
_CONF = """[global]
  server role = standalone server
  smb ports = {port}
  disable netbios = yes
  map to guest = bad user
  guest account = root
  server min protocol = SMB2
  private dir = {folder}
  lock directory = {folder}
  state directory = {folder}
  cache directory = {folder}
  pid directory = {folder}
  ncalrpc dir = {folder}
  log file = {folder}/server.log
  max log size = 0
  log level = 1 smb2:10
  debug hires timestamp = yes
  dfree command = {folder}/space
  dfree cache time = 0
[share]
  path = {folder}/share
  guest ok = yes
"""
_STEP = re.compile(r"\[(\S+ [\d:.]+), +\d+.*\((smbd_smb2_request_(?:dispatch|done_ex))\)\n.*mid(?: =)? \[?(\d+)")


def start(folder: Path) -> list[subprocess.Popen[Any]]:
    """Run a server with one share."""
    folder.chmod(0o755)
    (folder / "share").mkdir()
    (folder / "share" / "file").write_bytes(bytes(1000))
    (folder / "space").write_text(f"#!/bin/sh\nsleep {WORK_S}\necho 1000000 500000\n")
    (folder / "space").chmod(0o755)
    (folder / "smb.conf").write_text(_CONF.format(folder=folder, port=PORT))
    program = shutil.which("smbd") or "/usr/sbin/smbd"
    server = subprocess.Popen([program, "-F", "-s", str(folder / "smb.conf")])
    time.sleep(1.5)
    return [server]


def ask(folder: Path) -> dict[str, Any]:
    """List the share, each time after the last listing is complete."""
    words = ["smbclient", "-N", "-s", str(folder / "smb.conf"), "-p", str(PORT), f"//{SERVER}/share"]
    client = subprocess.Popen(["stdbuf", "-oL", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdin is not None
    assert client.stdout is not None
    think_s, began_s = 0.0, time.time()
    for number in range(LISTINGS + 1):
        if number == 1:
            think_s, began_s = 0.0, time.time()
        asked_s = time.monotonic()
        time.sleep(THINK_S)
        think_s += time.monotonic() - asked_s
        client.stdin.write("ls\n")
        client.stdin.flush()
        while "blocks of size" not in (line := client.stdout.readline()):
            if not line or "NT_STATUS" in line:
                raise OSError(line or "no answer")
    client.stdin.close()
    client.wait()
    return {**logged(folder, began_s), "think_s": think_s}


def logged(folder: Path, since_s: float) -> dict[str, Any]:
    """Return the number of requests and the time to answer them, by the server's log."""
    begun: dict[str, float] = {}
    work_s = 0.0
    for day, step, number in _STEP.findall((folder / "server.log").read_text(errors="replace")):
        at_s = datetime.strptime(day, "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
        if at_s < since_s:
            continue
        if step.endswith("dispatch"):
            begun[number] = at_s
        elif number in begun:
            work_s += at_s - begun[number]
    return {"exchanges": len(begun), "work_s": work_s}
