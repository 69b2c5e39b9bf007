"""A scenario of the lab over the two namespaces: this host's kernel and clock, a path of delay, rate and loss.

Needs root. Writes client.pcap, middle.pcap and server.pcap, and the log of each end. The card's rate holds in each
direction.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from servers.network import CLIENT, PORT, SERVER, Recorder, Way, forward, leave_namespace, open_tun

from tcpwin.lab import Log, Scenario


def set_up(device: str, scenario: Scenario, end: str) -> None:
    """Apply the settings of an end in this namespace."""
    options = ["quickack", "1"] * scenario.hosts.quick_ack
    if end == "sender" and scenario.hosts.initial_window_segments:
        options += ["initcwnd", str(scenario.hosts.initial_window_segments)]
    peer = CLIENT if end == "sender" else SERVER
    subprocess.run(["ip", "route", "change", peer, "dev", device, *options], check=True)
    subprocess.run(["ip", "link", "set", "dev", device, "txqueuelen", "100000"], check=True)
    for name, value in scenario.sysctl[end].items():
        # A setting of the whole kernel is not visible in a namespace.
        with suppress(FileNotFoundError):
            Path("/proc/sys", name.replace(".", "/")).write_text(value)


def fork(scenario: Scenario, folder: Path, end: str, listener: socket.socket | None) -> int:
    """Run one end of the workload in a process with this namespace."""
    if number := os.fork():
        return number
    status = 1
    try:
        with (folder / f"log_{end}.jsonl").open("w", encoding="utf8") as log:
            if listener is not None:
                scenario.workload.serve(listener, scenario.serve, Log(log))
            else:
                scenario.workload.drive((SERVER, PORT), scenario.drive, Log(log))
        status = 0
    finally:
        os._exit(status)


class Forked:
    """A process that `forward` waits for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            number, status = os.waitpid(self.number, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if number else None
        return self.returncode


def run(scenario: Scenario, folder: Path) -> None:
    """Run it once, in new namespaces."""
    leave_namespace()
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    server = open_tun("t0", SERVER, CLIENT)
    set_up("t0", scenario, "sender")
    at_server = Recorder("t0")
    serving = fork(scenario, folder, "sender", socket.create_server((SERVER, PORT)))
    leave_namespace()
    client = open_tun("t1", CLIENT, SERVER)
    set_up("t1", scenario, "receiver")
    at_client = Recorder("t1")
    route = scenario.route
    way = Way(route.rtt_ms / 2000, route.rate_mbps * 1e6, route.loss_percent / 100, scenario.seed)
    asking = Forked(fork(scenario, folder, "receiver", None))
    middle = forward([client, server], [at_client, at_server], way, asking)
    os.waitpid(serving, 0)
    if asking.returncode:
        raise OSError("the client failed")
    if scenario.measure.capture:
        for name, record in (("client", at_client), ("middle", middle), ("server", at_server)):
            record.write(folder / f"{name}.pcap")
