"""Real TCPs of this kernel, and a router between them that translates, clamps, bleaches, rewrites and drops.

What it did is known to it; what `tcpwin.pair` says of the captures on both sides of it must be the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from live import HANG_S
from pairing import forwarder
from pairing.pairs import frames_by_fate
from reference import KERNEL_LACKS, NO_RIGHT

import tcpwin


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a transfer through the router; skip where namespaces or TUN devices are not to be had."""
    if shutil.which("unshare") is None or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        pytest.skip(f"{KERNEL_LACKS} namespaces and TUN devices to try")
    path = tmp_path_factory.mktemp("router")
    command = ["unshare", "-rn", sys.executable, forwarder.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    if done.returncode and any(words in done.stderr for words in ("Operation not permitted", "Permission denied")):
        pytest.skip(f"{NO_RIGHT} make namespaces and TUN devices")
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def pairing(folder: Path) -> tcpwin.Pairing:
    return tcpwin.pair(folder / "client.pcap", folder / "server.pcap")


def test_lost_packets_are_those_that_the_router_dropped(folder: Path, pairing: tcpwin.Pairing) -> None:
    dropped = json.loads((folder / "truth.json").read_text())["dropped"]
    [connection] = pairing.connections
    data, acks = connection.directions
    assert len(dropped) >= 5
    assert frames_by_fate(pairing, data)["lost"] == set(dropped)
    assert (data.lost, data.unknown, acks.lost, acks.unknown) == (len(dropped), 0, 0, 0)
    assert pairing.missed == (0, 0)


def test_every_retransmission_has_its_cause(pairing: tcpwin.Pairing) -> None:
    """The kernel resends what was dropped; a tail loss probe may be needless."""
    data = pairing.connections[0].directions[0]
    assert data.resent.lost >= data.lost
    assert data.resent.ack_lost == 0
    assert data.retransmissions >= data.resent.lost


def test_what_it_rewrote_is_named(pairing: tcpwin.Pairing) -> None:
    data, acks = pairing.connections[0].directions
    changes = {change.field: change for change in data.changes}
    assert changes.keys() == {"mss", "window_scale", "ecn"}
    assert changes["mss"].came_as == forwarder.CLAMPED_MSS
    assert (changes["window_scale"].came_as, changes["window_scale"].rule) == (forwarder.SHIFT, "TW103")
    assert (changes["ecn"].left_as, changes["ecn"].came_as) == (2, 0)
    assert [change.field for change in acks.changes] == ["mss"]


def test_whom_it_translated_is_shown(pairing: tcpwin.Pairing) -> None:
    data = pairing.connections[0].directions[0]
    assert (data.source.address, data.source_in_b.address) == (forwarder.CLIENT, forwarder.TRANSLATED)
    assert data.source_in_b.port == data.source.port ^ 0x4000
    assert data.target == data.target_in_b
    assert data.hops == (1, 1)


def test_one_clock_and_the_delay_that_it_made(pairing: tcpwin.Pairing) -> None:
    assert pairing.clock is not None
    assert pairing.clock.uncertainty_ns is not None
    assert abs(pairing.clock.offset_ns) <= pairing.clock.uncertainty_ns
    for direction in pairing.connections[0].directions:
        assert direction.delay is not None
        assert direction.delay.least_ns + pairing.clock.uncertainty_ns >= forwarder.DELAY_S * 1e9
