"""TW203 zero-window-dead: a window that never opens again, one that opens soon, and one nobody waits for."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged
from stories.window_stories import one

START_NS = 1_600_000_000_000_000_000


def closed(seconds: float, *, ending: str, probes: bool = True, times_before: int = 0) -> Story:
    """b takes 20 segments and closes its window; a probes from 0.2 s on, doubling each time, and b answers."""
    story = Story().handshake()
    for _ in range(times_before):
        story.burst("a", 1, spacing=0).wait(0.02)
        story.ack("b", window=0)
        story.wait(0.01)
        story.ack("b", window=509)
    story.burst("a", 20, spacing=0).wait(0.04)
    story.ack("b", window=0)
    since, interval, waited = story.now, 0.2, 0.0
    while probes and waited + interval < seconds:
        waited += interval
        story.now = since + waited
        story.step("a", "A", seq=story.next["a"] - 1)
        story.step("b", "A")
        interval *= 2
    story.now = since + seconds
    if ending == "reset":
        story.step("a", "RA")
    elif ending == "opened":
        story.ack("b", window=509)
    else:
        story.step("b", "A")
    return story


def test_fires_on_a_reset_after_twelve_seconds(tmp_path: Path) -> None:
    finding = one(closed(12.7, ending="reset").analyze(tmp_path), "TW203")
    assert blame(finding) == ("a_to_b", "server", "server_application", "certain")
    assert str(finding.severity) == "error"
    assert finding.cost_ns == 12_700_000_000
    # Handshake, 20 segments, the closing ACK; then six probes and answers, and the reset.
    assert finding.evidence.frames == (24, 37)
    assert finding.evidence.start_ns == START_NS + 80_000_000
    assert finding.evidence.end_ns == START_NS + 12_780_000_000
    assert finding.evidence.values == {"closed_ns": 12_700_000_000, "probes": 6, "ended_by": "reset"}


def test_an_end_of_the_capture_is_less_sure(tmp_path: Path) -> None:
    finding = one(closed(12.7, ending="cut").analyze(tmp_path), "TW203")
    assert finding.confidence == "likely"
    assert finding.evidence.frames == (24,)
    assert finding.evidence.values["ended_by"] == "open"


def test_fires_after_more_closed_windows_than_are_listed(tmp_path: Path) -> None:
    analysis = closed(12.7, ending="reset", times_before=1100).analyze(tmp_path)
    data = analysis.connections[0].a_to_b
    assert (data.zero_window_episode_count, len(data.zero_window_episodes)) == (1101, 1024)
    assert one(analysis, "TW203").cost_ns == 12_700_000_000


def test_is_a_warning_sooner(tmp_path: Path) -> None:
    story = closed(9.9, ending="reset")
    finding = one(story.analyze(tmp_path), "TW203")
    assert (str(finding.severity), finding.cost_ns) == ("warning", 9_900_000_000)
    [finding] = judged(story.analyze(tmp_path), "TW203", {"TW203.dead_ns": 9e9})
    assert str(finding.severity) == "error"


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Before a timer would expire.
    story = closed(0.19, ending="reset")
    assert not judged(story.analyze(tmp_path), "TW203")
    # The window opened again.
    assert not judged(closed(12.7, ending="opened").analyze(tmp_path), "TW203")
    # Nobody waited.
    assert not judged(closed(12.7, ending="reset", probes=False).analyze(tmp_path), "TW203")
