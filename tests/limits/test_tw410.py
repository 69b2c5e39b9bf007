"""TW410 nagle: small writes that wait for the ACK of the one before, at the path's own pace."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged

OPTIONS = ("<mss 1460>", "<mss 1460>")


def written_in_parts(times: int, *, near: str = "a", second: int = 50, after: float = 0.0001) -> Story:
    """Round trip 40 ms: a writes 100 bytes, then others that leave with the ACK of the first."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160), near=near).wait(0.06)
    to_b, to_a = (0.04, 0.0) if near == "a" else (0.0, 0.04)
    for _ in range(times):
        story.data("a", 100, flags="PA")
        story.wait(to_b).ack("b")
        story.wait(to_a + after).data("a", second, flags="PA")
        story.wait(to_b).ack("b")
        story.wait(0.1)
    return story.close()


@pytest.mark.parametrize("near", ["a", "b"])
def test_fires_at_either_end(tmp_path: Path, near: str) -> None:
    [finding] = judged(written_in_parts(4, near=near).analyze(tmp_path), "TW410")
    assert blame(finding) == ("a_to_b", "client", "client_application", "likely")
    # A side is followed from its second message on.
    assert finding.cost_ns == pytest.approx(3 * 40e6, rel=0.01)


def test_shows_the_segment_its_ack_and_what_waited(tmp_path: Path) -> None:
    [finding] = judged(written_in_parts(4).analyze(tmp_path), "TW410")
    # Frames 1 to 3 are the handshake; each message has its first part, the ACK, the second part, an ACK.
    assert finding.evidence.frames == (4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # On two cases.
    assert not judged(written_in_parts(2).analyze(tmp_path), "TW410", {"TW410.cost_ns": 0})
    # If the second part comes later than its ACK.
    assert not judged(written_in_parts(5, after=0.02).analyze(tmp_path), "TW410", {"TW410.cost_ns": 0})
    # If the second part fills a segment, which Nagle's algorithm lets go.
    assert not judged(written_in_parts(5, second=1460).analyze(tmp_path), "TW410", {"TW410.cost_ns": 0})
    # If all segments have one size, as those of a stack that keeps one in flight.
    assert not judged(written_in_parts(5, second=100).analyze(tmp_path), "TW410", {"TW410.cost_ns": 0})


def two_flights(near: str) -> Story:
    """A small window is always full: two flights, 10 ms apart, each a round trip of 90 ms after its ACK before.

    As in lab world 3-026 (alike: receiver_window). Each flight begins and ends with a small segment.
    """
    sizes = ((580, 1460, 300), (300, 1460, 820))
    arrive_ms = 90 if near == "a" else 0
    story = Story().handshake(0.09, options=OPTIONS, scaled=(64_240, 4_920), near=near).wait(0.06)
    events: list[tuple[int, int, int]] = []
    for turn in range(40):
        for flight in (0, 1):
            sent_ms = turn * 90 + flight * 10
            events += [(sent_ms, 1, flight), (sent_ms + arrive_ms, 0 if arrive_ms else 2, flight)]
    ends: list[int] = []
    now_ms = 0
    for at_ms, what, flight in sorted(events):
        story.wait((at_ms - now_ms) / 1000)
        now_ms = at_ms
        if what != 1:
            story.ack("b", ends.pop(0), window=4_920)
            continue
        for size, flags in zip(sizes[flight], ("A", "A", "PA"), strict=True):
            story.data("a", size, flags=flags)
        ends.append(story.next["a"])
    return story.close()


@pytest.mark.parametrize("near", ["a", "b"])
def test_a_full_window_is_not_nagles(tmp_path: Path, near: str) -> None:
    analysis = two_flights(near).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.nagle_waits == 0
    assert not judged(analysis, "TW410")
    # The SYN/ACK offered more than the receiver ever did again.
    assert analysis.connections[0].verdict.limit in ("receiver_window", "receiver_application")
