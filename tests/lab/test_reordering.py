"""Reordering proved by both captures: a segment is out of order if a later one overtook it.

netem's jitter reorders the data's direction in two runs, one of which also has loss; the return direction and the other
runs keep their order. Only the receiver's capture, behind the jitter, can show it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from lab.both_ends import Passage, ack_way, data_way
from lab.events import frames_of, frames_resent
from lab.resends import resends
from lab.runs import MILLISECOND_NS, Run
from lab.selection import LATE, ROUGH, on

JITTER_ONLY = ("reorder_only_cubic",)
REORDERED = (*JITTER_ONLY, "loss1_reorder_cubic_sack1")


@dataclass(frozen=True)
class Overtaken:
    """A segment that arrived after one that left later.

    Attributes:
        frame: of its arrival.
        extent_bytes: from its end to that of the highest data that had arrived.
        late_ns: since the arrival of the first segment above it.
    """

    passage: Passage
    frame: int
    extent_bytes: int
    late_ns: int


def overtaken(run: Run) -> list[Overtaken]:
    """Return the segments with data that a later one overtook; a retransmission left after everything it follows."""
    again = {each.passage.index for each in resends(run)}
    # Arrivals higher than all before them, so both lists increase.
    starts: list[int] = []
    times_ns: list[int] = []
    highest = 0
    late = []
    for passage, arrival in data_way(run).data_arrivals:
        if passage.start >= highest:
            starts.append(passage.start)
            times_ns.append(arrival.time_ns)
        elif passage.index not in again:
            late_ns = arrival.time_ns - times_ns[bisect_right(starts, passage.start)]
            late.append(Overtaken(passage, arrival.frame, highest - passage.end, late_ns))
        highest = max(highest, passage.end)
    return late


@on(ends=["snd"], copies=False)
def test_only_the_jitter_reorders(run: Run) -> None:
    """Guards the truth: by IP ids the sender's segments left in order, and in other runs arrive in order."""
    arrivals = [passage.index for passage, _ in data_way(run).data_arrivals]
    assert (arrivals == sorted(arrivals)) == (run.scenario not in REORDERED)
    back = [passage.arrived.frame for passage in ack_way(run).passages if passage.arrived is not None]
    if not run.is_iperf3:
        assert back == sorted(back)


@on(REORDERED, ends=["rcv"], copies=False)
def test_out_of_order_is_exactly_what_was_overtaken(run: Run) -> None:
    late = overtaken(run)
    truth = {each.frame for each in late}
    assert len(truth) > 2000
    assert frames_of(run, "out_of_order") == truth
    assert run.data.out_of_order == len(truth)
    assert not frames_resent(run) & truth
    assert run.data.reordering_max_bytes == max(each.extent_bytes for each in late)
    assert run.data.reordering_max_ns == max(each.late_ns for each in late)
    # A segment can be late by at most the full width of the jitter.
    assert run.jitter_ns < run.data.reordering_max_ns <= 2 * run.jitter_ns


@on(JITTER_ONLY, copies=False)
def test_reordering_alone_is_not_loss(run: Run) -> None:
    """At both ends, for every kind of retransmission: the kernel sent none."""
    assert run.counter("snd", "Tcp.RetransSegs") == 0
    assert run.data.retransmissions == run.data.resent_bytes == run.data.resent_segments == 0
    assert run.data.recoveries == 0
    assert run.data.missed_bytes == run.data.acked_unseen == 0
    assert not frames_resent(run)
    assert (run.data.out_of_order > 0) == (run.end == "rcv")


@on(without=REORDERED)
def test_nothing_else_is_out_of_order(run: Run) -> None:
    """Covers loss, refused segments, go-back-N and probes at both ends of every other run."""
    for way in (run.data, run.back):
        assert way.out_of_order == 0
        assert not way.reordering_max_bytes
        assert not way.reordering_max_ns
    assert not frames_of(run, "out_of_order")


@on(REORDERED, ends=["snd"])
def test_the_sender_end_sees_its_own_order(run: Run) -> None:
    assert run.data.out_of_order == 0
    assert not run.data.reordering_max_bytes


@on([*ROUGH, *LATE])
def test_the_captures_order_is_the_wires(run: Run) -> None:
    """The lab has one clock: no timestamp runs backwards, so the capture caused no reordering."""
    times = run.columns["time_ns"]
    assert (times[1:] >= times[:-1]).all()
    assert run.data.capture_reordered == run.back.capture_reordered == 0
    assert run.jitter_ns in {0, MILLISECOND_NS, 3 * MILLISECOND_NS}
