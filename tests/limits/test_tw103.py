"""TW103 window-scale-ignored: flights that end at the raw field's value, and data beyond every window."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.cut import records, write
from reference import ROOT
from stories.conversation import Conversation, Exchange
from stories.story import Story, blame, judged
from stories.window_stories import NO_SCALE, full, one, rounds, scaled

import tcpwin

LAB = ROOT / "captures" / "lab"
TRUE_SHIFT = 2


def offered(folder: Path, shift: int) -> Path:
    """Write a capture of the receiver, whose SYN offered another shift before a device changed it."""
    header, packets = records(LAB / "receive-buffer-64k-receiver.pcap.gz")
    syn = packets[0].data.replace(bytes([3, 3, TRUE_SHIFT]), bytes([3, 3, shift]))
    return write(folder / "offered.pcap", header, [packets[0]._replace(data=syn), *packets[1:]])


@pytest.mark.parametrize("shift", [3, 5, 7])
def test_a_device_made_the_scale_smaller(tmp_path: Path, shift: int) -> None:
    """Captured at the receiver; the sender's capture of the same transfer shows the shift that came."""
    path = offered(tmp_path, shift)
    connection = tcpwin.analyze(path).connections[0]
    assert (connection.verdict.limit, connection.verdict.owner) == ("middlebox", "network")
    [finding] = judged(tcpwin.analyze(path), "TW103")
    assert (finding.evidence.values["shift"], finding.evidence.values["shift_used"]) == (shift, TRUE_SHIFT)
    judgement = tcpwin.pair(LAB / "receive-buffer-64k.pcap.gz", path).judge(0)
    assert judgement is not None
    verdict = judgement.verdict
    assert (verdict.limit, verdict.owner, verdict.confidence) == ("middlebox", "network", "certain")
    assert f"by {shift}, but its SYN came with {TRUE_SHIFT}" in verdict.reason
    assert verdict.cost_ns > 0.8 * verdict.total_ns


def test_a_scale_that_the_receiver_sees_ignored(tmp_path: Path) -> None:
    """The sender reads 502 as 502 bytes; captured at the receiver, a round trip away."""
    story = Story().handshake(options=scaled(7), scaled=(502, 502), near="b")
    for _ in range(12):
        story.wait(0.04).data("a", 502)
        story.ack("b")
    [finding] = judged(story.analyze(tmp_path), "TW103")
    assert blame(finding) == ("a_to_b", "client", "client_host", "likely")


def stops_after(size: int, *, count: int = 11) -> Story:
    """b offers 502 << 7 bytes; a sends this much per round trip."""
    story = Story().handshake(options=scaled(7), scaled=(502, 502))
    return rounds(story, count, [size]).close()


def overruns(count: int, window: int = 509) -> Story:
    """b offers an unscaled window; a sends three segments per round trip, two of which end beyond it."""
    story = Story(window={"a": 64_240, "b": window}).handshake(options=NO_SCALE, scaled=(64_240, window))
    return rounds(story, count, [400, 1460, 1460]).close()


def test_fires_on_a_sender_that_reads_502_as_502_bytes(tmp_path: Path) -> None:
    finding = one(stops_after(502).analyze(tmp_path), "TW103")
    assert (finding.connection, finding.direction, finding.side) == (0, "a_to_b", "client")
    assert (finding.owner, finding.confidence, finding.cost_ns) == ("client_host", "likely", 400_000_000)
    # The first flight had the SYN/ACK's window of 65,160. Segments and ACKs alternate: frames 6, 8, ... 24; six of ten
    # are listed.
    assert finding.evidence.frames == (6, 8, 12, 16, 20, 24)
    assert finding.evidence.values == {
        "stops_at_raw_window": 10,
        "stops": 11,
        "shift": 7,
        "flight_max_bytes": 502,
        "window_max_bytes": 65_160,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Flights that end at other values.
    assert not judged(stops_after(501).analyze(tmp_path), "TW103")
    # Only nine flights.
    story = stops_after(502, count=10)
    assert not judged(story.analyze(tmp_path), "TW103")
    assert judged(story.analyze(tmp_path), "TW103", {"TW103.times": 9})
    # Messages of exactly that size, each of them answered.
    for place in (0.0, 0.5, 1.0):
        story = Conversation([Exchange(request_bytes=509)] * 30, place=place).story()
        assert not judged(story.analyze(tmp_path), "TW103"), place
    # Data within the window.
    assert not judged(overruns(5, window=3_320).analyze(tmp_path), "TW103")
    assert not judged(overruns(4).analyze(tmp_path), "TW103")
    # A full window: 502 raw, and all of 502 << 7 in flight, as expected.
    story = Story().handshake(options=scaled(7), scaled=(502, 502))
    assert not judged(rounds(story, 10, full(502 << 7)).close().analyze(tmp_path), "TW103")


def test_fires_on_a_sender_that_scales_an_unscaled_window(tmp_path: Path) -> None:
    finding = one(overruns(5).analyze(tmp_path), "TW103")
    assert blame(finding) == ("a_to_b", "client", "client_host", "possible")
    assert finding.evidence.values == {
        "window_overrun": 10,
        "shift": 0,
        "flight_max_bytes": 3_320,
        "window_max_bytes": 509,
    }
    # After the handshake, three segments and an ACK each time; the second and third segment end beyond 509 bytes.
    assert finding.evidence.frames == (5, 6, 10, 14, 18, 22)
