"""TW204 window-update-late: a lost update, the same at the receiver, and an update between two probes."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged
from stories.window_stories import one

import tcpwin

WILD = Path(__file__).parents[2] / "captures" / "wild"


def test_fires_on_an_update_that_was_lost() -> None:
    finding = one(tcpwin.analyze(WILD / "lost-window-update.pcap.gz"), "TW204")
    # The receiver's IP identification skips one ACK.
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "network", "likely")
    # Probes at 0.685036, 1.201030 and 2.161001 s; the last was answered with an open window. At the receiver it had
    # opened 0.44 s before.
    assert sum(finding.items_ns.values()) == 959_971_000
    # Nothing passed while the window was closed, and little before.
    assert finding.items_ns["zero_window"] < finding.cost_ns < 959_971_000
    assert finding.evidence.frames == (85, 91)
    assert finding.evidence.values == {
        "ended_by_probe": 1,
        "episodes": 1,
        "episodes_looked_at": 1,
        "late_at_most_ns": 959_971_000,
        "closed_ns": 1_732_209_000,
    }


def test_does_not_fire_otherwise() -> None:
    # At the receiver, which sent the update.
    assert not judged(tcpwin.analyze(WILD / "lost-window-update-receiver.pcap.gz"), "TW204")
    # An update long after a probe. Loopback; frame 16 opens the window 134 ms after the unanswered probe in frame 15.
    assert not judged(tcpwin.analyze(WILD / "aborted-by-reader.pcapng"), "TW204")


def opened_by_a_probe(near: str) -> Story:
    """b closes its window; the probe after 0.2 s is answered with zero, the one 0.4 s later with a window."""
    story = Story().handshake(near=near)
    there_and_back = 0.04 if near == "a" else 0.0
    story.burst("a", 20, spacing=0).wait(there_and_back)
    story.ack("b", window=0)
    for seconds, window in ((0.2, 0), (0.4, 509)):
        story.wait(seconds).step("a", "A", seq=story.next["a"] - 1)
        story.wait(there_and_back)
        story.ack("b", window=window)
    story.wait(0.04).burst("a", 20, spacing=0).wait(there_and_back)
    story.ack("b")
    return story


def test_near_the_receiver_none_was_sent(tmp_path: Path) -> None:
    finding = one(opened_by_a_probe("b").analyze(tmp_path), "TW204")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_host", "likely")
    assert finding.cost_ns == 400_000_000


def test_near_the_sender_it_is_not_known_who(tmp_path: Path) -> None:
    story = opened_by_a_probe("a")
    finding = one(story.analyze(tmp_path), "TW204")
    # From probe to probe: 0.4 s plus the round trip of 40 ms.
    assert (finding.side, finding.owner, finding.confidence) == (None, "nobody", "possible")
    assert finding.cost_ns == 440_000_000
    assert not judged(story.analyze(tmp_path), "TW204", {"TW204.late_ns": 440_000_001})


def test_of_how_many_it_speaks(tmp_path: Path) -> None:
    """1,100 windows opened by a probe each; the analysis lists the first 1,023 and the last."""
    story = Story().handshake(near="b")
    for _ in range(1100):
        story.burst("a", 2, spacing=0)
        story.ack("b", window=0)
        story.wait(0.3).step("a", "A", seq=story.next["a"] - 1)
        story.ack("b", window=509)
        story.wait(0.01)
    finding = one(story.analyze(tmp_path), "TW204")
    assert finding.evidence.values["episodes"] == 1100
    assert finding.evidence.values["episodes_looked_at"] == 1024
    assert "1,100" in finding.text
    assert "1,024" in finding.text
