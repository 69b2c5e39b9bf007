"""TW304 burst-loss: ten adjacent losses, and as many spread over a long flight."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged

OPTIONS = ("<mss 1460,sackOK,ws 8>", "<mss 1460,sackOK,ws 8>")
LENGTH = 1460


def lose(numbers: list[int], *, flight: int, delay: float = 0.04) -> Story:
    """A flight loses some segments; after SACKs all are retransmitted 0.1 ms apart."""
    story = Story().handshake(options=OPTIONS).wait(0.001)
    start = story.next["a"]
    story.burst("a", flight, spacing=0.0).wait(delay)
    top = start + flight * LENGTH
    last = start + (numbers[-1] + 1) * LENGTH
    story.ack("b", start + numbers[0] * LENGTH)
    for upto in range(last + LENGTH, top + 1, LENGTH):
        story.ack("b", start + numbers[0] * LENGTH, rest=f"<sack {last}:{upto}>")
    for number in numbers:
        story.wait(0.0001).step("a", "A", f"len {LENGTH}", seq=start + number * LENGTH)
    story.wait(0.04).ack("b")
    return story.wait(0.1).close()


def test_fires_on_neighbours(tmp_path: Path) -> None:
    [finding] = judged(lose(list(range(2, 12)), flight=20).analyze(tmp_path), "TW304")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "network", "likely")
    # The ten leave within 0.9 ms, and a round trip of 40 ms follows.
    assert finding.cost_ns == 40_900_000
    # Frames 1 to 3 are the handshake, 4 to 23 the flight, 24 the ACK, 25 to 32 SACKs of the eight above.
    assert finding.evidence.frames == (6, 33, 7, 34, 8, 35, 9, 36, 10, 37)
    assert finding.evidence.values == {
        "bursts": 1,
        "largest_segments": 10,
        "out_before_loss_was_seen_ns": 40_100_000,
        "path_rtt_ns": 40_000_000,
    }
    assert "a small queue or a policer" in finding.text


def test_recognises_a_queue_by_the_time_segments_were_in_flight(tmp_path: Path) -> None:
    [finding] = judged(lose(list(range(2, 12)), flight=20, delay=0.09).analyze(tmp_path), "TW304")
    assert "a queue of 50.1 ms" in finding.text


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only nine cases.
    analysis = lose(list(range(2, 11)), flight=20).analyze(tmp_path)
    assert not judged(analysis, "TW304")
    assert judged(analysis, "TW304", {"TW304.segments": 9, "TW304.others": 8})
    # Scattered losses: ten of 42, every fourth; 10 of 37 from the first to the last are 27 %.
    analysis = lose(list(range(2, 39, 4)), flight=42).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.recovery_retransmissions == 9
    assert not judged(analysis, "TW304")
    assert judged(analysis, "TW304", {"TW304.density": 0.25})
