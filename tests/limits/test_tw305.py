"""TW305 handshake-segments-lost: lost SYNs and SYN/ACKs; a slow path, and a SYN/ACK repeated afterwards."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, judged, says

OPTIONS = "<mss 1460>"


def syn_again(tries: int = 2, *, answer: float = 0.04, rtt: float = 0.04) -> Story:
    """SYNs after 0, 1, 3, 7 s, an answer to the last, and one segment of data."""
    story = Story()
    for number in range(tries):
        story.step("a", "S", OPTIONS, seq=0)
        if number < tries - 1:
            story.wait(2.0**number)
    story.wait(answer)
    story.next["a"], story.acked["b"] = 1, 1
    story.step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.step("a", "A")
    story.wait(0.001).data("a", 1000)
    story.wait(rtt).ack("b")
    return story.wait(0.1).close(rtt)


def test_fires_on_two_lost_syns(tmp_path: Path) -> None:
    [finding] = judged(syn_again(3).analyze(tmp_path), "TW305")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "network", "likely")
    assert finding.cost_ns == 3_000_000_000
    assert finding.evidence.frames == (1, 2, 3)
    assert finding.evidence.values == {"sent_again": 2, "waited_ns": 3_000_000_000, "answer_after_ns": 40_000_000}
    assert says(finding, "3 s longer", "the client sent its SYN 3 times")


def test_blames_the_responder_at_its_end(tmp_path: Path) -> None:
    """Captured at b: an immediate SYN/ACK, and the ACK a round trip later."""
    story = Story()
    story.step("a", "S", OPTIONS, seq=0)
    story.wait(1.0).step("a", "S", OPTIONS, seq=0)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.wait(0.04).step("a", "A")
    story.wait(0.001).data("a", 1000)
    story.wait(0.0001).ack("b")
    story.wait(0.001).data("b", 1000)
    story.wait(0.04).ack("a")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].vantage == "b"
    [finding] = judged(analysis, "TW305")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_host", "certain")
    assert finding.cost_ns == 1_000_000_000


def test_blames_the_path_where_the_responder_answered_at_once(tmp_path: Path) -> None:
    """Captured at b: its SYN/ACK is lost, and both a and b retransmit."""
    story = Story()
    story.step("a", "S", OPTIONS, seq=0)
    story.acked["b"] = 1
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.wait(1.0).step("a", "S", OPTIONS, seq=0)
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next.update(a=1, b=1)
    story.acked["a"] = 1
    story.wait(0.04).step("a", "A")
    story.wait(0.001).data("b", 1000)
    story.wait(0.04).ack("a")
    [finding] = judged(story.analyze(tmp_path), "TW305")
    assert (finding.direction, finding.side, finding.owner, finding.confidence) == ("a_to_b", None, "network", "likely")
    assert "the server's SYN/ACK" in finding.text
    assert finding.evidence.frames == (1, 3)
    assert finding.cost_ns == 1_000_100_000


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Slow path, round trip 1.2 s: the answer arrives 0.2 s after the second SYN, but answers the first.
    analysis = syn_again(2, answer=0.2, rtt=1.2).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.syn_retransmissions == 1
    assert not judged(analysis, "TW305")
    # 0.1 s is less than half of a round trip of 2.1 s, so nothing was lost; if the round trip is 0.1 s, the SYN was.
    assert not judged(both_again(2.1).analyze(tmp_path), "TW305")
    [finding] = judged(both_again(0.1).analyze(tmp_path), "TW305")
    assert (finding.direction, finding.evidence.frames) == ("a_to_b", (1, 4))
    # A SYN/ACK repeated afterwards.
    story = Story().handshake()
    story.wait(1.0).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.step("a", "A")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].b_to_a.syn_retransmissions == 1
    assert not judged(analysis, "TW305")


def both_again(rtt: float) -> Story:
    """Captured at b: each SYN/ACK is sent immediately, and repeated; the ACK arrives 0.1 s after the last."""
    story = Story()
    story.step("a", "S", OPTIONS, seq=0)
    story.acked["b"] = 1
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.wait(1.0).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.wait(1.0).step("a", "S", OPTIONS, seq=0)
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next.update(a=1, b=1)
    story.acked["a"] = 1
    story.wait(0.1).step("a", "A")
    story.data("a", 1000)
    story.wait(0.0001).ack("b")
    story.data("b", 1000)
    story.wait(rtt).ack("a")
    return story


def test_fires_on_a_lost_syn_ack(tmp_path: Path) -> None:
    story = Story()
    story.step("a", "S", OPTIONS, seq=0)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(0.04).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.wait(1.0).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.wait(0.04).step("a", "A")
    [finding] = judged(story.analyze(tmp_path), "TW305")
    assert (finding.direction, finding.owner, finding.cost_ns) == ("b_to_a", "network", 1_000_000_000)
    assert finding.evidence.frames == (2, 3)
    assert finding.evidence.values == {"sent_again": 1, "waited_ns": 1_000_000_000, "answer_after_ns": 40_000_000}


def test_does_not_fire_on_a_syn_ack_whose_first_copy_was_answered(tmp_path: Path) -> None:
    """Captured at b: the round trip is 2.5 s, and b repeats its SYN/ACK 0.3 s before the ACK arrives."""
    story = Story()
    story.step("a", "S", OPTIONS, seq=0)
    story.acked["b"] = 1
    story.wait(0.0001).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.wait(2.2).step("b", "SA", OPTIONS, seq=0, ack=1)
    story.next.update(a=1, b=1)
    story.acked["a"] = 1
    story.wait(0.3).step("a", "A")
    story.wait(0.001).data("b", 1000)
    story.wait(2.5).ack("a")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].b_to_a.syn_retransmissions == 1
    assert not judged(analysis, "TW305")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(syn_again(3).analyze(tmp_path), "TW305", {"TW305.cost_ns": 3.1e9})
