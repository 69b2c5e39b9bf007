"""TW505 reset-after-close: harmless, with data lost, and a close without a reset."""

from __future__ import annotations

from pathlib import Path

from stories.parts import SYNS, joined
from stories.story import Story, judged, says

import tcpwin
from tcpwin.limits import Severity


def closed(*, all_acknowledged: bool = True, reset: bool = True, port: int = 41_000) -> Story:
    """a closes; b sends three segments and its FIN, which a acknowledges or not; then a resets."""
    story = Story().setting(f"port a {port}").handshake(0.04, options=SYNS)
    story.step("a", "FA")
    story.next["a"] += 1
    story.wait(0.04)
    story.acked["b"] = story.next["a"]
    story.burst("b", 3)
    story.step("b", "FA")
    story.next["b"] += 1
    story.wait(0.04)
    if all_acknowledged:
        story.ack("a")
    if reset:
        story.step("a", "R" if not all_acknowledged else "RA")
    return story


def test_says_that_nothing_was_lost(tmp_path: Path) -> None:
    [finding] = judged(closed().analyze(tmp_path), "TW505")
    assert (finding.owner, finding.side, finding.confidence) == ("nobody", None, "certain")
    assert (finding.connection, finding.severity, finding.cost_ns) == (0, Severity.INFO, 0)
    # SYN, SYN/ACK, ACK, FIN, three segments, FIN, ACK, RST.
    assert finding.evidence.frames == (10,)
    assert finding.evidence.values == {"connections": 1, "most_unacknowledged_bytes": 0}
    assert says(finding, "1 connection was reset", "nothing was lost")


def test_warns_of_data_lost(tmp_path: Path) -> None:
    analysis = closed(all_acknowledged=False).analyze(tmp_path)
    [finding] = judged(analysis, "TW505")
    assert (finding.owner, finding.side, finding.confidence) == ("client_application", "client", "likely")
    assert (finding.connection, finding.severity) == (0, Severity.WARNING)
    assert finding.evidence.frames == (9,)
    assert finding.evidence.values == {"reset_by": "a", "unacknowledged_a_bytes": 0, "unacknowledged_b_bytes": 3 * 1460}
    [finding] = judged(analysis, "TW505", {"TW505.lost_bytes": 3 * 1460 + 1})
    assert finding.severity == Severity.INFO
    assert says(finding, "1 connection was reset", "4.38 kB", "close_notify")


def test_reports_harmless_ones_together(tmp_path: Path) -> None:
    stories = [closed(port=41_000), closed(port=41_001), closed(port=41_002, all_acknowledged=False)]
    lost, harmless = judged(tcpwin.analyze(joined(tmp_path, stories, sort=False)), "TW505")
    assert (lost.connection, lost.severity) == (2, Severity.WARNING)
    assert (harmless.connection, harmless.severity) == (None, Severity.INFO)
    assert harmless.evidence.frames == (1, 11)
    assert harmless.evidence.values == {"connections": 2, "most_unacknowledged_bytes": 0}


def test_does_not_fire_without_a_reset(tmp_path: Path) -> None:
    assert not judged(closed(reset=False).analyze(tmp_path), "TW505")
