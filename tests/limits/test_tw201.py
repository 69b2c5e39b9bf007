"""TW201 zero-window-stall: a long closed window, and a short one."""

from __future__ import annotations

from pathlib import Path

from stories.story import blame, closed_for, judged


def test_fires_on_a_window_closed_for_a_second(tmp_path: Path) -> None:
    story = closed_for(1.0)
    [finding] = judged(story.analyze(tmp_path), "TW201")
    assert blame(finding) == ("a_to_b", "server", "server_application", "certain")
    assert finding.cost_ns == 1_000_000_000
    # SYN, SYN/ACK, ACK, 20 segments, then the ACKs that close and open the window.
    assert finding.evidence.frames == (24, 25)
    assert finding.evidence.values == {"zero_window_ns": 1_000_000_000, "episodes": 1, "longest_ns": 1_000_000_000}


def test_does_not_fire_on_a_window_closed_for_a_moment(tmp_path: Path) -> None:
    assert not judged(closed_for(0.19).analyze(tmp_path), "TW201")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert judged(closed_for(0.19).analyze(tmp_path), "TW201", {"TW201.stall_ns": 150e6})
