"""TW405 nagle-delayed-ack: small writes that wait for delayed ACKs, and the same at the path's pace."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

OPTIONS = ("<mss 1460>", "<mss 1460>")


def written_in_parts(times: int, ack_after: float, *, gap: float = 0.1) -> Story:
    """Round trip 40 ms: a writes 100 bytes, then 50 that leave with the ACK of the first; b delays its ACK."""
    story = Story().handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.06)
    for _ in range(times):
        story.data("a", 100, flags="PA")
        story.wait(ack_after).ack("b")
        story.wait(0.0001).data("a", 50, flags="PA")
        story.wait(0.04).ack("b")
        story.wait(gap)
    return story.close()


def test_fires_on_three_messages_in_two_parts(tmp_path: Path) -> None:
    [finding] = judged(written_in_parts(3, 0.081).analyze(tmp_path), "TW405")
    assert blame(finding) == ("a_to_b", "client", "client_application", "certain")
    # Each ACK arrived 81 ms after its segment, 41 ms later than the fastest. Without Nagle's algorithm, the round
    # trip's 40 ms are saved as well. A side is followed from its second message on.
    assert (finding.limits, finding.cost_ns) == (("nagle",), 2 * 81_000_000)
    # Frames 1 to 3 are the handshake; each message has its first part, the delayed ACK, the second part, an ACK.
    assert finding.evidence.frames == (5, 9, 13)
    assert finding.evidence.values == {
        "nagle_delays": 3,
        "nagle_delay_ns": 123_000_000,
        "delayed_acks": 3,
        "rtt_min_ns": 40_000_000,
    }


def test_over_a_short_path_the_delayed_ack_is_the_limit(tmp_path: Path) -> None:
    """Each ACK comes after 42 ms over a round trip of 1 ms: Nagle's algorithm adds less than a twentieth."""
    story = Story().handshake(rtt=0.001, options=OPTIONS, scaled=(64_240, 65_160)).wait(0.06)
    for _ in range(6):
        story.data("a", 100, flags="PA")
        story.wait(0.042).ack("b")
        story.wait(0.0001).data("a", 50, flags="PA")
        story.wait(0.001).ack("b")
        story.wait(0.1)
    analysis = story.close(rtt=0.001).analyze(tmp_path)
    [finding] = judged(analysis, "TW405")
    assert finding.limits == ("delayed_ack",)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Only two cases.
    analysis = written_in_parts(2, 0.081).analyze(tmp_path)
    assert not judged(analysis, "TW405")
    [finding] = judged(analysis, "TW405", {"TW405.cost_ns": 80e6})
    assert finding.confidence == "likely"
    # The ACK is on time: Nagle at the path's pace, because 40 ms is the round trip.
    assert not judged(written_in_parts(5, 0.04).analyze(tmp_path), "TW405", {"TW405.cost_ns": 0, "TW405.share": 0})


def test_does_not_fire_where_the_share_is_small(tmp_path: Path) -> None:
    """123 ms of 7.3 s, without a pause longer than the timeout."""
    analysis = written_in_parts(3, 0.081, gap=2.3).analyze(tmp_path)
    direction = analysis.connections[0].a_to_b
    assert direction.nagle_delays == 3
    busy_ns = analysis.connections[0].duration_ns - direction.idle_ns
    assert judged(analysis, "TW405", {"TW405.share": 0.99 * direction.nagle_delay_ns / busy_ns})
    assert not judged(analysis, "TW405", {"TW405.share": 1.01 * direction.nagle_delay_ns / busy_ns})
