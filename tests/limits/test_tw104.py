"""TW104 window-scale-unknown: a capture that began late, with and without samples of the sockets."""

from __future__ import annotations

from pathlib import Path

from stories.story import judged
from stories.window_stories import one

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures"
LATE = CAPTURES / "lab" / "mid-connection.pcap.gz"


def test_fires_on_a_capture_that_began_late() -> None:
    finding = one(tcpwin.analyze(LATE), "TW104")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("b_to_a", None, "nobody", "certain")
    assert str(finding.severity) == "info"
    assert finding.evidence.frames == (1,)
    # 354,760 bytes in flight do not fit the raw window with a shift below 5.
    assert finding.evidence.values == {
        "shift_min": 5,
        "shift_max": 14,
        "flight_max_bytes": 354_760,
        "payload_bytes": 5_430_000,
    }
    assert finding.remedy.settings == ("ss -tin 'sport = :37260 or dport = :37260'",)


def test_does_not_fire_otherwise() -> None:
    # A sample of the socket gives the scale.
    assert not judged(tcpwin.analyze(CAPTURES / "bundles" / "without-syn.zip"), "TW104")
    # Less data.
    assert not judged(tcpwin.analyze(LATE), "TW104", {"TW104.least_bytes": 5_430_001})
    # The SYNs were captured.
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "window-scaling.pcap.gz"), "TW104")
