"""Real servers behind a delay: the packets at both ends and in between show the times of the servers' logs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from live import HANG_S
from reference import KERNEL_LACKS, NO_RIGHT, ROOT
from servers import network

import tcpwin

POINTS = ("client", "middle", "server")
NEAR = 0.05
"""Share of a connection's duration."""
DELAYS_MS = (0, 20, 150)
DAILY = {("postgres_by_row", 20), ("websocket", 20)}
PROGRAMS = {
    "nginx": ("nginx",),
    "http2": ("nginx", "curl", "openssl"),
    "ssh": ("ssh", "sshd", "ssh-keygen"),
    "smb": ("smbd", "smbclient"),
}
KINDS = ("postgres_by_row", "postgres_at_once", "nginx", "ssh", "smb")
CASES = [
    pytest.param(kind, delay_ms, marks=() if (kind, delay_ms) in DAILY else pytest.mark.nightly)
    for kind in KINDS
    for delay_ms in DELAYS_MS
]
CROSSING = [
    pytest.param(kind, delay_ms, marks=() if (kind, delay_ms) in DAILY else pytest.mark.nightly)
    for kind in ("websocket", "http2")
    for delay_ms in DELAYS_MS
]


@dataclass(frozen=True)
class Served:
    """A conversation: the truth, in seconds, and its connection at each point."""

    truth: dict[str, float]
    connections: dict[str, tcpwin.MeasuredConnection]


@pytest.fixture
def serve(tmp_path: Path, tool: Callable[[str], str]) -> Callable[[str, int], Served]:
    """Return a function that runs a kind of conversation over a delay."""

    def run(kind: str, delay_ms: int) -> Served:
        if shutil.which("unshare") is None or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
            pytest.skip(f"{KERNEL_LACKS} namespaces and TUN devices to try")
        for program in PROGRAMS.get(kind, ()):
            tool(program)
        # Root needs no namespace of users, in which it could not set a processor's priority.
        spaces = "-n" if os.geteuid() == 0 else "-rn"
        command = ["unshare", spaces, sys.executable, network.__file__, str(tmp_path), kind, str(delay_ms)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode and any(words in done.stderr for words in ("Operation not permitted", "Permission denied")):
            pytest.skip(f"{NO_RIGHT} make namespaces and TUN devices")
        assert done.returncode == 0, done.stderr
        found = {point: tcpwin.analyze(tmp_path / f"{point}.pcap").connections for point in POINTS}
        assert all(len(connections) == 1 for connections in found.values())
        truth = json.loads((tmp_path / "truth.json").read_text())
        return Served(truth, {point: connections[0] for point, connections in found.items()})

    return run


@pytest.mark.parametrize(("kind", "delay_ms"), CASES)
def test_the_packets_show_the_times_of_the_servers_log(
    serve: Callable[[str, int], Served], kind: str, delay_ms: int
) -> None:
    served = serve(kind, delay_ms)
    costs = []
    for point, connection in served.connections.items():
        found = connection.exchange_table()
        # Logging in and connecting are not in a server's log of its work.
        asked = slice(-int(served.truth["exchanges"]), None)
        near_ns = NEAR * connection.duration_ns
        assert connection.turns_state == "known", point
        assert abs(sum(found["work_ns"][asked]) - served.truth["work_s"] * 1e9) <= near_ns, point
        assert abs(sum(found["think_ns"][asked]) - served.truth["think_s"] * 1e9) <= near_ns, point
        # The first request follows no answer, so only a part of its round trip is seen.
        path_ns, round_trips_ns = sum(found["path_ns"][asked]), served.truth["exchanges"] * delay_ms * 1e6
        assert abs(path_ns - round_trips_ns) <= near_ns + delay_ms * 1e6, point
        costs.append(connection.verdict.cost_ns)
    verdicts = [connection.verdict for connection in served.connections.values()]
    shares = [connection.duration_ns for connection in served.connections.values()]
    if verdicts[0].confidence != "possible":
        assert len({(verdict.limit, verdict.owner) for verdict in verdicts}) == 1
        # The round trips of connecting and closing are seen whole at one end only.
        assert max(costs) - min(costs) <= NEAR * max(shares) + delay_ms * 1e6


@pytest.mark.parametrize(("kind", "delay_ms"), CROSSING)
def test_where_both_sides_send_when_they_like_nobody_is_named_for_certain(
    serve: Callable[[str, int], Served], kind: str, delay_ms: int
) -> None:
    for connection in serve(kind, delay_ms).connections.values():
        assert connection.verdict.confidence == "possible"
        # Without a delay, messages may happen to alternate from the first to the last.
        if (kind, delay_ms, connection.turns_state) != ("websocket", 0, "known"):
            assert connection.turns_state in ("interleaved", "overlapping")
            assert list(connection.exchange_table().rows()) == []
