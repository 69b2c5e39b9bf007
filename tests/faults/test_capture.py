"""Faults of the capture itself: no time, size, cause or sentence is invented for what it does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.cut import records, snapped, write
from stories.boxes import exchange, outage
from stories.story import Story

import tcpwin
from tcpwin.sources import write_headers

DAY_S = 86_400


@pytest.mark.parametrize("size", [96, 128])
def test_lengths_that_a_truncating_program_falsified(tmp_path: Path, size: int) -> None:
    """The original length equals the captured one; IP's total length is the truth, also in a copy of the headers."""
    whole = outage(near="b", sender="b").write(tmp_path, "whole")
    header, packets = records(whole)
    cut, headers = write(tmp_path / "cut.pcap", header, snapped(packets, size)), tmp_path / "headers.pcapng"
    with cut.open("rb") as file:
        assert write_headers(file, headers, name="cut.pcap", whole=False, max_bytes=1 << 30).packets_cut
    true = tcpwin.analyze(whole)
    for told in (tcpwin.analyze(cut), tcpwin.analyze(headers)):
        for way in ("a_to_b", "b_to_a"):
            one, other = getattr(told.connections[0], way), getattr(true.connections[0], way)
            assert (one.payload_bytes, one.unique_bytes) == (other.payload_bytes, other.unique_bytes)
            assert one.missed_bytes == 0
        assert told.connections[0].verdict.limit == true.connections[0].verdict.limit


def test_a_damaged_length_is_not_believed(tmp_path: Path) -> None:
    """The total length of one packet is wrong, and with it the header's checksum."""
    header, packets = records(exchange().write(tmp_path))
    damaged = [each._replace(data=each.data[:16] + b"\x0f\xff" + each.data[18:]) for each in packets]
    connection = tcpwin.analyze(write(tmp_path / "damaged.pcap", header, damaged)).connections[0]
    assert connection.a_to_b.payload_bytes < 4 * 4095


def test_another_captures_time_is_not_a_wait(tmp_path: Path) -> None:
    """A window is closed for 0.8 s; the file's next packets, of another connection, come 17 days later."""
    story = Story().handshake(0.04, near="a").burst("a", 10)
    story.wait(0.04).ack("b", window=0)
    story.wait(0.3).step("a", "A", seq=story.next["a"] - 1)
    story.wait(0.001).ack("b", window=0)
    story.wait(0.5).step("a", "A", seq=story.next["a"] - 1)
    first = story.write(tmp_path, "first")
    late = Story(now=17 * DAY_S).setting("port a 41000")
    second = late.handshake(0.04).close().write(tmp_path, "second")
    header, packets = records(first)
    analysis = tcpwin.analyze(write(tmp_path / "joined.pcap", header, [*packets, *records(second)[1]]))
    connection = analysis.connections[0]
    assert connection.duration_ns < 4e9
    assert all(each.cost_ns < 4e9 for each in analysis.findings)


def one_side(folder: Path, side: str, story: Story) -> tcpwin.Analysis:
    """Keep only the packets that a side sent."""
    header, packets = records(story.write(folder))
    kept = [each for each in packets if each.is_upward == (side == "a")]
    return tcpwin.analyze(write(folder / f"{side}.pcap", header, kept))


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(
    "build", [exchange, lambda: outage(near="b", sender="b"), lambda: outage(near="a", sender="a")]
)
def test_one_side_alone_blames_nobody(tmp_path: Path, side: str, build: type[Story]) -> None:
    analysis = one_side(tmp_path, side, build())
    assert analysis.capture.connections_one_way == 1
    for connection in analysis.connections:
        verdict = connection.verdict
        assert verdict.owner == "nobody" or verdict.confidence == "possible", verdict.text
        assert not verdict.is_problem or verdict.confidence == "possible", verdict.text
    blamed = [each for each in analysis.findings if each.connection is not None and each.confidence != "possible"]
    assert not [each.text for each in blamed if int(each.severity) >= 2]


def test_backscatter_of_a_server(tmp_path: Path) -> None:
    """A server's SYN/ACKs, three times, and its RST an hour later, to a client that the capture does not hold."""
    story = Story()
    for pause_s in (1, 2, 3600):
        story.step("b", "SA", "<mss 1460>", seq=0, ack=1)
        story.wait(pause_s)
    story.step("b", "R", seq=1)
    analysis = story.analyze(tmp_path)
    texts = " ".join([analysis.connections[0].verdict.text, *(each.text for each in analysis.findings)])
    assert "never answered" not in texts
    assert not analysis.problems


def test_a_lone_fin_sent_twice(tmp_path: Path) -> None:
    story = Story()
    story.step("a", "FA", seq=100, ack=1)
    story.wait(21).step("a", "FA", seq=100, ack=1)
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].verdict.limit not in ("path_loss", "retransmission_timer")
    assert not analysis.problems
