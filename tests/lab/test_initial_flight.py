"""The first flight is Linux's initial window of ten segments, if the program has enough to send.

The truth is the sender's capture: data that left before an ACK or SACK of data. The receiver's capture can give the
same by applying each ACK when it reached the sender, or give nothing.
"""

from __future__ import annotations

from lab.both_ends import data_way, distance
from lab.runs import Run
from lab.selection import IPERF3, LATE, on
from lab.wire import ACK, SYN, read_segments

INITIAL_WINDOW = 10


def first_flight_bytes(run: Run) -> int:
    """Return the payload that left before any of it was acknowledged."""
    first = data_way(run).passages[0].left
    base = first.seq + (first.flags & SYN > 0)
    ports = (run.sender_port, run.receiver_port)
    sent = 0
    for segment in read_segments(run.truth / "snd.pcap.gz"):
        if (segment.source_port, segment.target_port) == ports:
            sent = max(sent, distance(segment.seq, base) + segment.length)
        is_answer = (segment.target_port, segment.source_port) == ports and segment.flags & ACK
        if is_answer and (segment.sacks or distance(segment.ack, base) > 0):
            return sent
    raise AssertionError("nothing was acknowledged")


@on(ends=["snd"], without=[*LATE, *IPERF3], copies=False)
def test_the_first_flight_is_linuxs_initial_window(run: Run) -> None:
    """Guards the truth; iperf3 first sends its cookie alone."""
    assert first_flight_bytes(run) == INITIAL_WINDOW * run.samples("snd")[0].number("mss")


@on(without=[*LATE, *IPERF3], copies=False)
def test_initial_flight_is_the_senders(run: Run) -> None:
    """On a path with jitter, the receiver's capture cannot show when the first ACK reached the sender."""
    said = run.data.initial_flight_bytes
    if run.end == "rcv" and "reorder" in run.scenario:
        assert said >= first_flight_bytes(run)
    else:
        assert said == first_flight_bytes(run)


@on(IPERF3, copies=False)
def test_a_first_message_of_one_segment_hides_the_first_flight(run: Run) -> None:
    """The cookie is acknowledged alone, so no first flight is recorded."""
    assert first_flight_bytes(run) < run.samples("snd")[0].number("mss")
    assert run.data.initial_flight_bytes is None


@on(LATE)
def test_a_late_capture_has_no_first_flight(run: Run) -> None:
    assert run.data.initial_flight_bytes is None
