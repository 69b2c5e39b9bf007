"""TW302 tail-loss: a probe that repairs a lost tail, and one that a late ACK made unnecessary."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged

SACK = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")


def probed(*, is_lost: bool) -> Story:
    """Round trip 40 ms. One segment is lost, or its ACK late; after 240 ms it is sent again as a probe."""
    story = Story().handshake(options=SACK, scaled=(64_240, 65_160))
    story.wait(0.001).data("a", 1000)
    story.wait(0.2405)
    story.step("a", "A", "len 1000", seq=1)
    if is_lost:
        story.wait(0.04).ack("b")
    else:
        story.wait(0.0085).ack("b")
        story.wait(0.0315).ack("b", rest="<sack 1:1001>")
    return story.wait(0.1).close()


def test_fires_on_a_lost_tail(tmp_path: Path) -> None:
    [finding] = judged(probed(is_lost=True).analyze(tmp_path), "TW302")
    assert blame(finding) == ("a_to_b", "client", "network", "likely")
    # 240.5 ms since it was sent, minus the round trip of 40 ms.
    assert finding.cost_ns == 200_500_000
    assert finding.evidence.frames == (4, 5)
    assert finding.evidence.values == {
        "tail_loss_probes": 1,
        "needless": 0,
        "waited_ns": 200_500_000,
        "longest_wait_ns": 200_500_000,
    }


def test_does_not_fire_on_a_needless_probe(tmp_path: Path) -> None:
    analysis = probed(is_lost=False).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.tail_loss_probes == 1
    assert not judged(analysis, "TW302", {"TW302.cost_ns": 0, "TW302.share": 0})


def test_threshold_can_be_set(tmp_path: Path) -> None:
    assert not judged(probed(is_lost=True).analyze(tmp_path), "TW302", {"TW302.cost_ns": 201e6})


def test_does_not_fire_on_data_that_a_syn_ack_left_out(tmp_path: Path) -> None:
    """TCP Fast Open refused (RFC 7413 §4.2): the SYN's data is sent again after the handshake; nothing was lost."""
    story = Story()
    story.step("a", "S", "<mss 1460,sackOK> len 500", seq=0)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(0.01).step("b", "SA", "<mss 1460,sackOK>", seq=0, ack=1)
    for _ in range(2):
        story.wait(0.5).step("a", "S", "<mss 1460,sackOK>", seq=0)
    story.wait(0.01).step("b", "SA", "<mss 1460,sackOK>", seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.wait(0.01).data("a", 500)
    story.wait(0.04).ack("b")
    analysis = story.wait(0.1).close().analyze(tmp_path)
    assert analysis.connections[0].a_to_b.tail_loss_probes == 1
    assert not judged(analysis, "TW302")
