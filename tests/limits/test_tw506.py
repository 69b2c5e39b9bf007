"""TW506 peer-silent: unanswered data, to the end or to a reset, and answered data."""

from __future__ import annotations

from pathlib import Path

from hangs.stories import closed, keep_alives, reset, tail_probe, transfer, unanswered
from stories.boxes import two_connections
from stories.story import Story, judged


def told(story: Story, folder: Path) -> tuple[str, str, int]:
    """Return severity, confidence and cost of the only finding."""
    [finding] = judged(story.analyze(folder), "TW506")
    assert (finding.direction, finding.side, finding.owner) == ("a_to_b", "server", "network")
    return str(finding.severity), finding.confidence, finding.cost_ns


def test_fires_on_retransmissions_without_an_answer(tmp_path: Path) -> None:
    # Timeouts after 240 ms, doubling each time: 0.24 · (2^5 − 1).
    assert told(unanswered(5), tmp_path) == ("error", "certain", 7_440_000_000)


def test_evidence_shows_what_was_asked(tmp_path: Path) -> None:
    [finding] = judged(unanswered(5).analyze(tmp_path), "TW506")
    # The last of three segments, then the first five times.
    assert finding.evidence.frames == (27, 28, 29, 30, 31, 32)
    assert finding.evidence.values["tries"] == 5
    assert finding.evidence.values["unacknowledged_bytes"] == 3 * 1460
    assert (finding.evidence.frames_of, "sent 5 retransmissions, and nothing came back" in finding.text) == (None, True)


def test_evidence_says_how_many_it_shows(tmp_path: Path) -> None:
    [finding] = judged(unanswered(8).analyze(tmp_path), "TW506")
    assert finding.evidence.frames == (27, 28, 29, 30, 31, 32, 33)
    assert finding.evidence.frames_of == "last data and the first 6 of 8"


def test_a_single_timeout_is_a_warning(tmp_path: Path) -> None:
    story = unanswered(1)
    story.wait(0.1)
    story.step("b", "A", ack=1)
    assert told(story, tmp_path) == ("warning", "likely", 340_000_000)


def test_is_an_error_where_it_lasts(tmp_path: Path) -> None:
    story = unanswered(1)
    story.wait(10)
    story.step("b", "A", ack=1)
    assert told(story, tmp_path)[0] == "error"


def test_fires_on_keep_alives_without_an_answer(tmp_path: Path) -> None:
    assert told(keep_alives(4), tmp_path) == ("error", "certain", 30_000_000_000)
    [finding] = judged(keep_alives(4).analyze(tmp_path), "TW506")
    assert "sent 4 keep-alives, and nothing came back" in finding.text
    # The data before them was acknowledged, so it is no evidence.
    assert len(finding.evidence.frames) == 4


def test_fires_on_a_reset_with_data_unanswered(tmp_path: Path) -> None:
    assert told(reset(unanswered(4), "a"), tmp_path) == ("error", "certain", 3_700_000_000)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Recent data.
    assert not judged(transfer().burst("a", 3).analyze(tmp_path), "TW506")
    assert not judged(tail_probe().analyze(tmp_path), "TW506")
    # The data was answered.
    story = unanswered(5)
    story.wait(0.04)
    story.ack("b")
    assert not judged(story.analyze(tmp_path), "TW506")
    assert not judged(keep_alives(5, answered=5).analyze(tmp_path), "TW506")
    # A closed window.
    analysis = closed(6).analyze(tmp_path)
    assert not judged(analysis, "TW506")
    assert judged(analysis, "TW203")
    # Nothing was retransmitted for minutes.
    story = unanswered(0)
    story.wait(100)
    story.step("b", "A", ack=1)
    assert not judged(story.analyze(tmp_path), "TW506")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(unanswered(5).analyze(tmp_path), "TW506", {"TW506.stall_ns": 8e9})


def test_is_possible_where_no_timer_sent_it_again(tmp_path: Path) -> None:
    # Sent once, and nine seconds later an ACK for other data: a timer would have retransmitted it.
    story = unanswered(0)
    story.wait(9)
    story.step("b", "A", ack=1)
    assert told(story, tmp_path)[1] == "possible"


def test_counts_all_tries_since_the_last_acknowledgment(tmp_path: Path) -> None:
    # b sends between two retransmissions, and acknowledges nothing.
    story = transfer()
    first = story.next["a"]
    story.burst("a", 1)
    for wait_s in (0.3, 0.6):
        story.wait(wait_s)
        story.step("a", "A", "len 1460", seq=first)
        story.wait(0.05)
        story.step("b", "A", ack=first)
    story.wait(1)
    story.step("b", "A", ack=1)
    [finding] = judged(story.analyze(tmp_path), "TW506")
    assert finding.evidence.values["tries"] == 2


def test_a_copy_in_the_capture_is_not_an_attempt(tmp_path: Path) -> None:
    story = transfer()
    first = story.next["a"]
    story.burst("a", 1, spacing=0)
    story.step("a", "A", "len 1460", seq=first)
    story.wait(1)
    story.step("b", "A", ack=1)
    [finding] = judged(story.analyze(tmp_path), "TW506")
    assert finding.evidence.values["tries"] == 0


def test_a_dropped_connection_of_a_peer_that_lives(tmp_path: Path) -> None:
    verdict = two_connections(tmp_path, alive=True).connections[0].verdict
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")
    assert "another connection" in verdict.reason
    alone = two_connections(tmp_path, alive=False).connections[0].verdict
    assert alone.limit == "peer_silent"


def test_what_the_receiver_has_by_sack_counts_as_acknowledged(tmp_path: Path) -> None:
    """Of five segments the first is lost, four times; SACK reports the others."""
    story = Story().handshake(0.04)
    first = story.next["a"]
    story.burst("a", 5).wait(0.04)
    story.ack("b", first, rest=f"<sack {first + 1460}:{first + 5 * 1460}>")
    for number in range(4):
        story.wait(0.25 * 2**number).step("a", "A", "len 1460", seq=first)
    story.wait(4.0).step("b", "FA", ack=first)
    [finding] = judged(story.analyze(tmp_path), "TW506")
    assert finding.evidence.values["unacknowledged_bytes"] == 1460
    assert finding.evidence.values["sacked_bytes"] == 4 * 1460
    assert "did not acknowledge 1.46 kB, although it has 5.84 kB behind them (SACK)," in finding.text
