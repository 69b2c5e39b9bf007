"""TW301 retransmission-timeouts: a lost tail repaired by the timer, and an unnecessary timeout."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.story import Story, blame, judged

import tcpwin
from tcpwin.limits import Finding

PLAIN = ("<mss 1460>", "<mss 1460>")
STAMPED = ("<mss 1460,ts 1000 0>", "<mss 1460,ts 500 1000>")


def timed_out(after: float) -> Story:
    """Round trip 40 ms. Four segments without SACK; the last is lost and retransmitted `after` seconds."""
    story = Story().handshake(options=PLAIN, scaled=(64_240, 65_160))
    story.wait(0.001).burst("a", 4, spacing=0)
    story.wait(0.04).ack("b", 1 + 3 * 1460)
    story.wait(after - 0.04)
    story.step("a", "A", "len 1460", seq=1 + 3 * 1460)
    story.wait(0.04).ack("b")
    return story.wait(0.1).close()


def test_fires_on_a_lost_tail(tmp_path: Path) -> None:
    [finding] = judged(timed_out(0.3).analyze(tmp_path), "TW301")
    assert isinstance(finding, Finding)
    assert blame(finding) == ("a_to_b", "client", "network", "certain")
    # 300 ms since it was sent, minus the round trip of 40 ms.
    assert finding.cost_ns == 260_000_000
    # Frames 1 to 3 are the handshake, 4 to 7 the data, 8 the ACK.
    assert finding.evidence.frames == (7, 9)
    start_ns = 1_600_000_000_041_000_000
    assert (finding.evidence.start_ns, finding.evidence.end_ns) == (start_ns, start_ns + 300_000_000)
    assert finding.evidence.values == {
        "timeouts": 1,
        "waited_ns": 260_000_000,
        "longest_wait_ns": 260_000_000,
        "retransmissions": 1,
        "sack": "no",
    }
    assert finding.remedy.settings == ("sysctl -w net.ipv4.tcp_sack=1",)
    assert "on the client and the server" in finding.remedy.text


def late_ack() -> Story:
    """The path stalls for 260 ms; the ACK after the timeout echoes the original's timestamp (RFC 3522 §3.2)."""
    story = Story().handshake(options=STAMPED, scaled=(64_240, 65_160))
    story.lines[-1] += " <ts 1040 500>"
    story.wait(0.001)
    story.data("a", 1000, rest="<ts 1041 500>")
    story.wait(0.2405)
    story.step("a", "A", "len 1000 <ts 1281 500>", seq=1)
    story.wait(0.0185)
    story.ack("b", rest="<ts 780 1041>")
    return story


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # An unnecessary timeout.
    analysis = late_ack().analyze(tmp_path)
    assert analysis.connections[0].a_to_b.rto_retransmissions == 1
    assert not judged(analysis, "TW301", {"TW301.cost_ns": 0, "TW301.share": 0})
    # The connection had closed before.
    analysis = left_alone(is_closed=True).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.rto_retransmissions == 2
    assert not judged(analysis, "TW301", {"TW301.cost_ns": 0, "TW301.share": 0})


def test_does_not_fire_where_the_share_is_small(tmp_path: Path) -> None:
    """260 ms of 20 s are 1.3 %; gaps between messages, some with data in flight, do not count as pauses."""
    story = Story().handshake(options=PLAIN, scaled=(64_240, 65_160))
    story.wait(0.001).burst("a", 4, spacing=0)
    story.wait(0.04).ack("b", 1 + 3 * 1460)
    story.wait(0.26).step("a", "A", "len 1460", seq=1 + 3 * 1460)
    story.wait(0.04).ack("b")
    for _ in range(150):
        story.wait(0.1).data("a")
        story.wait(0.04).ack("b")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].a_to_b.rto_retransmissions == 1
    assert not judged(analysis, "TW301")
    assert judged(analysis, "TW301", {"TW301.share": 0.01})


def test_does_not_count_retransmissions_too_late_for_a_timer(tmp_path: Path) -> None:
    """The timeout is 240 ms: 3 s are more than twelve times that, 1.5 s six times."""
    assert judged(timed_out(1.5).analyze(tmp_path), "TW301")
    analysis = timed_out(3.0).analyze(tmp_path)
    assert not judged(analysis, "TW301")
    assert judged(analysis, "TW301", {"TW301.overdue": 20})


def test_does_not_fire_on_data_that_a_syn_ack_left_out(tmp_path: Path) -> None:
    """TCP Fast Open refused (RFC 7413 §4.2): the SYN's data is sent again after the handshake; nothing was lost."""
    story = Story()
    story.step("a", "S", "<mss 1460> len 500", seq=0)
    story.wait(1.0).step("a", "S", "<mss 1460>", seq=0)
    story.next["a"], story.acked["b"] = 1, 1
    story.wait(0.04).step("b", "SA", "<mss 1460>", seq=0, ack=1)
    story.next["b"], story.acked["a"] = 1, 1
    story.wait(0.0001).data("a", 500)
    story.wait(0.04).ack("b")
    analysis = story.wait(0.1).close().analyze(tmp_path)
    assert analysis.connections[0].a_to_b.rto_retransmissions == 1
    assert not judged(analysis, "TW301")


def left_alone(*, is_closed: bool) -> Story:
    """b acknowledges, closes or not, and is silent from then on; a sends its last segment three times."""
    story = Story().handshake(options=PLAIN, scaled=(64_240, 65_160))
    story.wait(0.001).burst("a", 4, spacing=0)
    story.wait(0.04).ack("b")
    if is_closed:
        story.step("b", "FA")
        story.next["b"] += 1
        story.ack("a")
    story.wait(0.1)
    first = story.next["a"]
    story.data("a")
    for after in (0.3, 0.6):
        story.wait(after).step("a", "A", "len 1460", seq=first)
    return story


def test_leaves_a_receiver_that_never_answers_again_to_another_rule(tmp_path: Path) -> None:
    analysis = left_alone(is_closed=False).analyze(tmp_path)
    assert not judged(analysis, "TW301", {"TW301.cost_ns": 0, "TW301.share": 0})
    assert judged(analysis, "TW506")


def test_two_timeouts_of_a_lab_run() -> None:
    """The sender's kernel counted 2 TCPTimeouts in 27.6 s: too small a share to report."""
    analysis = tcpwin.analyze(LAB_RUNS / "loss1_reno_sack0" / "snd.pcap.gz")
    assert not judged(analysis, "TW301")
    [finding] = judged(analysis, "TW301", {"TW301.share": 0.001})
    assert finding.evidence.values["timeouts"] == 2
    assert finding.cost_ns == pytest.approx(2 * 0.2e9, rel=0.2)
