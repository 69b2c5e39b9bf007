"""TW211 window-over-advertised: segments that reached the receiver but had to be retransmitted, and others."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged
from stories.window_stories import one, sample, scaled

START_NS = 1_600_000_000_000_000_000


def dropped(times: int, *, arrived: bool = True) -> Story:
    """Captured at b, round trip 40 ms. b keeps three of four segments; the first is resent a round trip later."""
    story = Story().handshake(options=scaled(7), scaled=(502, 509), near="b")
    for _ in range(times):
        first = story.next["a"]
        if arrived:
            story.data("a")
        else:
            story.next["a"] += 1460
        for number in (1, 2, 3):
            story.wait(0.0001).data("a")
            story.ack("b", first, rest=f"<sack {first + 1460}:{first + 1460 * (number + 1)}>")
        story.wait(0.04).step("a", "A", "len 1460", seq=first)
        story.ack("b")
        story.wait(0.04)
    return story


def test_fires_on_segments_that_reached_the_receiver(tmp_path: Path) -> None:
    finding = one(dropped(5).analyze(tmp_path), "TW211")
    assert blame(finding) == ("a_to_b", "server", "server_host", "likely")
    # After the handshake nine frames each time: the segment, three pairs, the retransmission, its ACK.
    assert finding.evidence.frames == (4, 11, 13, 20, 22, 29)
    assert finding.evidence.start_ns == START_NS + 40_000_000 + 40_300_000
    assert finding.evidence.end_ns == START_NS + 40_000_000 + 4 * 80_300_000 + 40_300_000
    values = dict(finding.evidence.values)
    # As seen by a: each time from the ACK that triggered the retransmission, a round trip earlier, to the next ACK.
    assert 5 * 40_000_000 <= int(values.pop("recovery_ns")) <= 5 * 45_000_000
    assert values == {"sent_again": 5, "resent_segments": 5}
    # The flight never recovers from one drop before the next.
    assert finding.cost_ns == 4 * 80_300_000 + 40_100_000


def shrinking(refuses: bool, near: str = "a", options: tuple[str, str] = scaled(7)) -> Story:
    """A reader that stops in each of twelve rounds: the window falls from 64 kB to nothing as its buffer fills.

    The receiver refuses the segment that would fill the buffer, or the path loses one at the start of the flight.
    """
    story = Story().handshake(options=options, scaled=(502, 502), near=near)
    for _ in range(12):
        base, lost = story.next["a"], 43 if refuses else 3
        for number in range(44):
            if not (near == "b" and not refuses and number == lost):
                story.data("a", rest="")
            else:
                story.next["a"] += 1460
            story.wait(0.0001)
            if number < lost:
                story.ack("b", base + 1460 * (number + 1), window=(64_240 - 1460 * (number + 1)) >> 7)
            elif number > lost:
                gap = base + 1460 * lost
                story.ack("b", gap, rest=f"<sack {gap + 1460}:{base + 1460 * (number + 1)}>")
            story.wait(0.0001)
        story.wait(0.3).step("a", "A", "len 1460", seq=base + 1460 * lost)
        story.wait(0.04 if near == "a" else 0.0001).ack("b", window=502)
        story.wait(0.04)
    return story


@pytest.mark.parametrize("near", ["a", "b"])
def test_refusals_are_the_hosts_fault_and_random_loss_is_not(tmp_path: Path, near: str) -> None:
    analysis = shrinking(True, near).analyze(tmp_path)
    verdict = analysis.connections[0].verdict
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_memory", "server_host", "server"), near
    assert verdict.is_problem
    assert "path" not in (verdict.fix or "path")
    data = analysis.connections[0].a_to_b
    # One in each of the twelve rounds, after all but the last of 44 segments.
    assert (data.loss_times, data.loss_times_unread, data.loss_unread_share) == (12, 12, 0.875), near
    # In each round the last five segments before.
    assert data.loss_unread_arrived_share == pytest.approx(5 / 44, abs=0.001)
    other = shrinking(False, near).analyze(tmp_path).connections[0]
    assert "receiver_memory" not in (other.verdict.limit, other.verdict.also), near
    assert (other.a_to_b.loss_times, other.a_to_b.loss_times_unread) == (12, 0)


def refused_until_read(near: str, *, times: int = 4, stray: int = 0, six: bool = False) -> Story:
    """In some rounds the reader stops, and everything is refused until it reads, as on the patched kernel.

    The window falls from 64 kB to 24 kB; what follows, and the timer's first two tries, get no answer. `stray` segments
    are lost on the path before each.
    """
    story = Story()
    if six:
        story.lines.insert(0, "ip 6")
    story.handshake(options=scaled(7), scaled=(502, 502), near=near)
    there_s, back_s = (0.04, 0.0) if near == "a" else (0.0001, 0.04)

    def accepted(window: int) -> None:
        story.burst("a", 2).wait(there_s).ack("b", window=window)
        story.wait(back_s)

    for _ in range(times):
        for _ in range(100):
            accepted(502)
        for _ in range(stray):
            accepted(502)
            first = story.next["a"]
            if near == "a":
                story.data("a", 1460)
            else:
                story.next["a"] += 1460
            story.burst("a", 3).wait(there_s)
            for _ in range(3):
                story.ack("b", first)
            story.wait(back_s).step("a", "A", "len 1460", seq=first)
            story.wait(there_s).ack("b")
            story.wait(back_s)
        for taken in range(1, 15):
            accepted(502 - 22 * taken)
        refused = story.next["a"]
        story.burst("a", 6)
        for pause_s in (0.3, 0.6):
            story.wait(pause_s).step("a", "A", "len 1460", seq=refused)
        story.wait(0.8).ack("b", refused, window=502)
        story.wait(0.4)
        for each in range(6):
            story.step("a", "A", "len 1460", seq=refused + 1460 * each)
            story.wait(there_s).ack("b", refused + 1460 * (each + 1), window=502)
            story.wait(back_s)
    return story


@pytest.mark.parametrize("near", ["a", "b"])
@pytest.mark.parametrize(("times", "stray"), [(2, 0), (4, 0), (4, 2)])
@pytest.mark.parametrize("six", [False, True])
def test_what_is_refused_until_the_reader_returns_is_no_outage(
    tmp_path: Path, near: str, times: int, stray: int, six: bool
) -> None:
    """As in lab worlds memory-41-004, -011 and -017, where more memory saves a third to half of the time.

    The path loses twice as often, so only the times in which everything was refused show it.
    """
    analysis = refused_until_read(near, times=times, stray=stray, six=six).analyze(tmp_path)
    verdict, data = analysis.connections[0].verdict, analysis.connections[0].a_to_b
    assert (data.loss_times, data.loss_times_unread) == (times * (1 + stray), times), near
    assert (verdict.limit, verdict.owner) == ("receiver_memory", "server_host"), near
    assert "memory" in (verdict.fix or ""), near
    assert judged(analysis, "TW211")
    assert not judged(analysis, "TW313")


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Segments lost before the receiver.
    assert not judged(dropped(5, arrived=False).analyze(tmp_path), "TW211")
    # Only four cases.
    story = dropped(4)
    assert not judged(story.analyze(tmp_path), "TW211")
    assert judged(story.analyze(tmp_path), "TW211", {"TW211.dropped": 4})


def test_the_kernels_counters_make_it_sure(tmp_path: Path) -> None:
    told = {
        "ss_b.txt": sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10"),
        "nstat_b.csv": "t,TCPRcvQDrop,TCPOFODrop,PruneCalled\n1600000000.0,3,0,0\n1600000001.0,8,0,0\n",
    }
    finding = one(dropped(5).analyze(tmp_path, snapshots=told), "TW211")
    assert finding.confidence == "certain"
    assert finding.evidence.values["TcpExtTCPRcvQDrop"] == 5
