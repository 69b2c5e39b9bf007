"""TW210 receive-queue-pruned: packets that a host counted as dropped, and too few of them."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged
from stories.window_stories import full, one, rounds, sample, scaled

import tcpwin

SS = sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10")
HEAD = "t,PruneCalled,TCPRcvCollapsed,TCPRcvQDrop,TCPOFODrop,RcvPruned,OfoPruned\n"
FIRST = "1600000000.0,1000,1000,1000,1000,1000,1000\n"


def transfer() -> Story:
    """a sends 100,000 bytes, and b acknowledges them."""
    story = Story().handshake(options=scaled(7), scaled=(502, 2_000))
    return rounds(story, 1, full(100_000)).close()


def test_fires_on_five_packets_of_any_kind(tmp_path: Path) -> None:
    told = {"ss_b.txt": SS, "nstat_b.csv": f"{HEAD}{FIRST}1600000001.0,1000,1000,1001,1002,1001,1001\n"}
    finding = one(transfer().analyze(tmp_path, snapshots=told), "TW210")
    assert (finding.connection, finding.direction, finding.side) == (0, "a_to_b", "server")
    assert (finding.owner, finding.confidence, finding.cost_ns) == ("server_host", "likely", 0)
    assert finding.evidence.values == {
        "host": "b",
        "TcpExtTCPRcvQDrop": 1,
        "TcpExtTCPOFODrop": 2,
        "TcpExtRcvPruned": 1,
        "TcpExtOfoPruned": 1,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only four cases.
    told = {"ss_b.txt": SS, "nstat_b.csv": f"{HEAD}{FIRST}1600000001.0,1900,1900,1001,1001,1001,1001\n"}
    analysis = transfer().analyze(tmp_path, snapshots=told)
    assert not judged(analysis, "TW210")
    assert judged(analysis, "TW210", {"TW210.dropped": 4})
    # Without counters.
    assert not judged(transfer().analyze(tmp_path), "TW210")


def test_the_time_lost_to_these_losses_is_the_receivers(tmp_path: Path) -> None:
    """Ten losses, each repaired after a timeout; the receiver counted nine, or those of another transfer."""

    def analyze(count: int) -> tcpwin.Analysis:
        story = Story().handshake(options=scaled(7), scaled=(502, 2_000))
        for _ in range(10):
            first = story.next["a"]
            story.burst("a", 8).wait(0.5).step("a", "A", "len 1460", seq=first)
            story.wait(0.04).ack("b")
        told = {"ss_b.txt": SS, "nstat_b.csv": f"{HEAD}{FIRST}1600000001.0,1000,1000,1000,{1000 + count},1000,1000\n"}
        return story.analyze(tmp_path, snapshots=told)

    verdict = analyze(9).connections[0].verdict
    assert (verdict.limit, verdict.owner, verdict.code) == ("receiver_memory", "server_host", "TW210")
    assert analyze(0).connections[0].verdict.limit != "receiver_memory"
