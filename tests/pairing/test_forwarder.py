"""Real TCPs of this kernel, and a router between them that translates, clamps, bleaches, rewrites and drops.

`tcpwin.pair` must report exactly the router's actions. Each kind runs live, and on the headers of one stored run in
`captures`.
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

KEPT = Path(__file__).with_name("captures")


def made(tmp_path_factory: pytest.TempPathFactory, how: str, kind: str) -> Path:
    """Return the folder of a transfer; skip if namespaces or TUN devices are not available."""
    if how == "stored":
        return KEPT / kind
    if shutil.which("unshare") is None or shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        pytest.skip(f"{KERNEL_LACKS} namespaces and TUN devices to try")
    path = tmp_path_factory.mktemp(kind)
    command = ["unshare", "-rn", sys.executable, forwarder.__file__, str(path), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    if done.returncode and any(words in done.stderr for words in ("Operation not permitted", "Permission denied")):
        pytest.skip(f"{NO_RIGHT} make namespaces and TUN devices")
    assert done.returncode == 0, done.stderr
    return path


def paired(folder: Path) -> tcpwin.Pairing:
    return tcpwin.pair(*(next(folder.glob(f"{end}.pcap*")) for end in ("client", "server")))


@pytest.fixture(scope="module", params=["live", "stored"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, how: str) -> Path:
    """Return the folder of a transfer through the rewriting router."""
    return made(tmp_path_factory, how, "rewriter")


@pytest.fixture(scope="module")
def pairing(folder: Path) -> tcpwin.Pairing:
    return paired(folder)


def test_lost_packets_are_those_that_the_router_dropped(folder: Path, pairing: tcpwin.Pairing) -> None:
    dropped = json.loads((folder / "truth.json").read_text())["dropped"]
    [connection] = pairing.connections
    data, acks = connection.directions
    assert len(dropped) >= 5
    assert frames_by_fate(pairing, data)["lost"] == set(dropped)
    assert (data.lost, data.unknown, acks.lost, acks.unknown) == (len(dropped), 0, 0, 0)
    assert pairing.missed == (0, 0)


def test_every_retransmission_has_its_cause(pairing: tcpwin.Pairing) -> None:
    """The kernel resends dropped data; a tail loss probe may be unnecessary."""
    data = pairing.connections[0].directions[0]
    assert data.resent.lost >= data.lost
    assert data.resent.ack_lost == 0
    assert data.retransmissions >= data.resent.lost


def test_what_it_rewrote_is_named(pairing: tcpwin.Pairing) -> None:
    data, acks = pairing.connections[0].directions
    changes = {change.field: change for change in data.changes}
    assert changes.keys() == {"mss", "window_scale", "ecn", "source"}
    assert changes["mss"].came_as == forwarder.CLAMPED_MSS
    assert (changes["window_scale"].came_as, changes["window_scale"].rule) == (forwarder.SHIFT, "TW103")
    assert (changes["ecn"].left_as, changes["ecn"].came_as) == (2, 0)
    assert [change.field for change in acks.changes] == ["destination", "mss"]


def test_whom_it_translated_is_shown(pairing: tcpwin.Pairing) -> None:
    data = pairing.connections[0].directions[0]
    assert (data.source.address, data.source_in_b.address) == (forwarder.CLIENT, forwarder.TRANSLATED)
    assert data.source_in_b.port == data.source.port ^ 0x4000
    source = next(change for change in data.changes if change.field == "source")
    assert (source.left_as, source.came_as) == (str(data.source), str(data.source_in_b))
    assert (source.frame_a, source.frame_b) == (1, 1)
    assert data.target == data.target_in_b
    assert data.hops == (1, 1)


def test_one_clock_and_the_delay_that_it_made(pairing: tcpwin.Pairing) -> None:
    assert abs(pairing.clock.offset_ns) <= pairing.clock.uncertainty_ns
    for direction in pairing.connections[0].directions:
        assert direction.delay.least_ns + pairing.clock.uncertainty_ns >= forwarder.DELAY_S * 1e9


def test_client_and_server_that_are_both_translated(tmp_path_factory: pytest.TempPathFactory, how: str) -> None:
    folder = made(tmp_path_factory, how, "both_ways")
    dropped = json.loads((folder / "truth.json").read_text())["dropped"]
    pairing = paired(folder)
    [connection] = pairing.connections
    data, acks = connection.directions
    assert (data.source.address, data.target.address) == (forwarder.CLIENT, forwarder.VIRTUAL)
    assert (data.source_in_b.address, data.target_in_b.address) == (forwarder.TRANSLATED, forwarder.SERVER)
    assert frames_by_fate(pairing, data)["lost"] == set(dropped)
    assert (acks.lost, data.unknown, acks.unknown) == (0, 0, 0)
    # Only addresses and ports changed.
    assert {change.field: (change.left_as, change.came_as) for change in data.changes} == {
        "source": (str(data.source), str(data.source_in_b)),
        "destination": (str(data.target), str(data.target_in_b)),
    }
    assert {change.field for change in acks.changes} == {"source", "destination"}
    assert not pairing.unpaired


def test_a_proxy_that_ends_tcp(tmp_path_factory: pytest.TempPathFactory, how: str) -> None:
    folder = made(tmp_path_factory, how, "proxy")
    pairing = paired(folder)
    assert len(pairing) == 0
    [proxy] = pairing.proxies
    assert (proxy.in_a.source.address, proxy.in_a.target.address) == (forwarder.CLIENT, forwarder.PROXY[0])
    assert (proxy.in_b.source.address, proxy.in_b.target.address) == (forwarder.PROXY[1], forwarder.SERVER)
    assert proxy.in_a.bytes[0] == proxy.in_b.bytes[0] == forwarder.BYTES
