"""TW316 lost-before-capture: packets lost before a capture at the receiver, and senders that were only silent."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import all_cases
from stories.boxes import RTT_S, answer
from stories.story import Story, judged


def silence(*, seconds: float = 4.0, skipped: int = 15, ttl: int = 64, six: bool = False, size: int = 1460) -> Story:
    """An answer stops coming for a time; the sender's IP ID counts on, and then the next bytes arrive."""
    story = Story()
    if six:
        story.lines.insert(0, "ip 6")
    story.handshake(RTT_S, near="a")
    number = 7000

    def send(length: int, skip: int = 0) -> None:
        nonlocal number
        number += 1 + skip
        story.data("b", length, rest=f"ipid {number} ttl {ttl}")

    for _ in range(2):
        for _ in range(4):
            send(400 if size < 1460 else size)
        story.ack("a")
        story.wait(RTT_S)
    story.data("a", 300, flags="PA")
    story.wait(seconds).acked["b"] = story.next["a"]
    send(size, skipped)
    story.ack("a")
    for _ in range(3):
        story.wait(RTT_S)
        for _ in range(4):
            send(size)
        story.ack("a")
    return story


def lost_acks(tries: int = 4) -> Story:
    """The sender repeats what the receiver has acknowledged, by its doubling timer; then new data comes."""
    story = Story().handshake(RTT_S, near="a")
    for _ in range(3):
        story.burst("b", 4).ack("a")
        story.wait(RTT_S)
    last = story.next["b"] - 1460
    for number in range(tries):
        story.wait(0.25 * 2**number).step("b", "A", "len 1460", seq=last)
        story.ack("a", rest=f"<sack {last}:{last + 1460}>")
    for _ in range(3):
        story.wait(RTT_S).burst("b", 4).ack("a")
    return story


def test_a_silence_in_which_the_sender_counted_on(tmp_path: Path) -> None:
    verdict, analysis = answer(silence(), tmp_path)
    [finding] = judged(analysis, "TW316")
    assert (verdict.limit, verdict.owner) == ("path_outage", "network")
    assert verdict.cost_ns == pytest.approx(4e9, rel=0.1)
    assert finding.evidence.values["lost"] == 15
    assert "by its IP IDs it sent 15 packets" in finding.text


def test_acknowledgments_that_had_no_effect(tmp_path: Path) -> None:
    verdict, analysis = answer(lost_acks(), tmp_path)
    [finding] = judged(analysis, "TW316")
    assert (verdict.limit, verdict.owner) == ("path_outage", "network")
    assert "from the client to the server" in finding.text
    assert verdict.cost_ns == pytest.approx(3.75e9, rel=0.1)


@all_cases(
    "story",
    [
        silence(skipped=0),
        silence(seconds=0.5),
        # Windows counts the packets of all connections.
        silence(ttl=128),
        silence(six=True),
        lost_acks(1),
    ],
)
def test_silences_without_a_loss(story: Story, tmp_path: Path) -> None:
    assert not judged(story.analyze(tmp_path), "TW316")


def test_a_silence_that_smaller_segments_end_is_the_paths_mtu(tmp_path: Path) -> None:
    verdict, analysis = answer(silence(size=1024), tmp_path)
    assert (verdict.limit, verdict.owner) == ("path_mtu", "network")
    [finding] = judged(analysis, "TW316")
    assert (finding.confidence, finding.evidence.values["largest_arrived_bytes"]) == ("likely", 1024)
    assert "lost 15 packets meanwhile" in finding.text
