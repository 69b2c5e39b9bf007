"""TW211 window-over-advertised: segments that reached the receiver but had to be retransmitted, and others."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged
from stories.window_stories import one, sample, scaled

START_NS = 1_600_000_000_000_000_000


def dropped(times: int, *, arrived: bool = True) -> Story:
    """Captured at b, round trip 40 ms. b keeps three of four segments; the first is resent a round trip later."""
    story = Story().handshake(options=scaled(7), scaled=(502, 509), near="b")
    for _ in range(times):
        first = story.next["a"]
        if arrived:
            story.data("a")
        else:
            story.next["a"] += 1460
        for number in (1, 2, 3):
            story.wait(0.0001).data("a")
            story.ack("b", first, rest=f"<sack {first + 1460}:{first + 1460 * (number + 1)}>")
        story.wait(0.04).step("a", "A", "len 1460", seq=first)
        story.ack("b")
        story.wait(0.04)
    return story


def test_fires_on_segments_that_reached_the_receiver(tmp_path: Path) -> None:
    finding = one(dropped(5).analyze(tmp_path), "TW211")
    assert blame(finding) == ("a_to_b", "server", "server_host", "likely")
    # After the handshake nine frames each time: the segment, three pairs, the retransmission, its ACK.
    assert finding.evidence.frames == (4, 11, 13, 20, 22, 29)
    assert finding.evidence.start_ns == START_NS + 40_000_000 + 40_300_000
    assert finding.evidence.end_ns == START_NS + 40_000_000 + 4 * 80_300_000 + 40_300_000
    values = dict(finding.evidence.values)
    assert values.pop("recovery_ns") == finding.cost_ns
    assert values == {"sent_again": 5, "resent_segments": 5}
    # As seen by a: each time from the ACK that triggered the retransmission, a round trip before it arrived, to the
    # next ACK.
    assert 5 * 40_000_000 <= finding.cost_ns <= 5 * 45_000_000


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Segments lost before the receiver.
    assert not judged(dropped(5, arrived=False).analyze(tmp_path), "TW211")
    # Only four cases.
    story = dropped(4)
    assert not judged(story.analyze(tmp_path), "TW211")
    assert judged(story.analyze(tmp_path), "TW211", {"TW211.dropped": 4})


def test_the_kernels_counters_make_it_sure(tmp_path: Path) -> None:
    told = {
        "ss_b.txt": sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10"),
        "nstat_b.csv": "t,TCPRcvQDrop,TCPOFODrop,PruneCalled\n1600000000.0,3,0,0\n1600000001.0,8,0,0\n",
    }
    finding = one(dropped(5).analyze(tmp_path, snapshots=told), "TW211")
    assert finding.confidence == "certain"
    assert finding.evidence.values["TcpExtTCPRcvQDrop"] == 5
