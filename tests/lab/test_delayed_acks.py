"""Delayed ACKs are those that the receiver's kernel counted, sent by its timer rather than by an arrival.

DelayedACKs counts what tcp_delack_timer sends. In virtual time all other packets leave at the instant of an arrival, so
the timer's ACKs are distinguishable at the receiver. tcpwin reports those of a single segment: with a slow reader, the
closed window delays ACKs of several, which no capture distinguishes from a reader's pace.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.both_ends import Passage, ack_way, data_way, distance
from lab.runs import MILLISECOND_NS, Run
from lab.selection import CLOSED, IPERF3, LATE, STALL, on
from lab.wire import ACK, FIN, RST, SYN

# TCP_DELACK_MIN minus the tick in which the timer is armed.
TIMER_MIN_NS = 38 * MILLISECOND_NS
# The reader takes data as it arrives.
AT_ONCE = (*IPERF3, *(scenario for scenario in CLOSED if scenario not in (*LATE, *STALL)))
CUT_SHORT = ("loss1_cubic_sack1", "loss1_reno_sack0")


@dataclass(frozen=True)
class Late:
    """A pure ACK of one segment, which had been there for the timer's duration.

    Attributes:
        by_timer: no arrival triggered it; otherwise a segment behind a hole did, just before the timer.
    """

    passage: Passage
    by_timer: bool


def late_acks(run: Run) -> list[Late]:
    """Return the late ACKs in the order of departure, from the receiver's capture."""
    way = data_way(run)
    arrivals = {arrival.frame: (passage, arrival) for passage, arrival in way.data_arrivals}
    acks = {passage.left.frame: passage for passage in ack_way(run).passages if passage.left.flags & ACK}
    first = way.passages[0].left
    base = first.seq + (first.flags & SYN > 0)
    # End and arrival of the data waiting for its ACK; a retransmitted segment is ambiguous and excluded.
    waiting: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    last_ns = last_start = una = 0
    late = []
    for frame in sorted({*arrivals, *acks}):
        if frame in arrivals:
            passage, arrival = arrivals[frame]
            last_ns, last_start = arrival.time_ns, passage.start
            if passage.start not in seen:
                waiting[passage.start] = (passage.end, last_ns)
            else:
                waiting.pop(passage.start, None)
            seen.add(passage.start)
            continue
        ack = acks[frame].left
        reached = distance(ack.ack, base)
        covered = [(start, time_ns) for start, (end, time_ns) in waiting.items() if una < end <= reached]
        for start in [start for start, (end, _) in waiting.items() if end <= reached]:
            del waiting[start]
        is_lone = len(covered) == 1 and covered[0][0] == una
        una = max(una, reached)
        is_pure = ack.flags & (ACK | SYN | FIN | RST) == ACK
        if is_pure and is_lone and ack.time_ns - covered[0][1] >= TIMER_MIN_NS:
            by_timer = ack.time_ns > last_ns
            if by_timer or last_start > reached:
                late.append(Late(acks[frame], by_timer))
    return late


@on(AT_ONCE, ends=["rcv"], copies=False)
def test_acks_by_the_timer_are_the_kernels(run: Run) -> None:
    """Guards the truth: the counts are equal in every run without a slow reader."""
    by_timer = [each for each in late_acks(run) if each.by_timer]
    assert len(by_timer) == run.counter("rcv", "TcpExt.DelayedACKs")


@on(AT_ONCE, copies=False)
def test_delayed_acks_are_as_many_as_the_kernel_counted(run: Run) -> None:
    """One more in either run with loss but no reordering: a segment behind a hole arrived just before the timer's
    tick.
    """
    cut_short = sum(not each.by_timer for each in late_acks(run))
    assert cut_short == (run.scenario in CUT_SHORT)
    assert run.data.delayed_acks == run.counter("rcv", "TcpExt.DelayedACKs") + cut_short
    assert run.back.delayed_acks == 0


@on(without=LATE, copies=False)
def test_delayed_acks_are_exactly_those_that_waited(run: Run) -> None:
    """Compared ACK by ACK, at the end where it left and where it arrived."""
    ends = [each.passage.left if run.end == "rcv" else each.passage.arrived for each in late_acks(run)]
    columns = run.columns
    named = {
        int(frame)
        for frame, events in zip(columns["frame"], columns["events"], strict=True)
        if "delayed_ack" in str(events).split("|")
    }
    assert named == {each.frame for each in ends if each is not None}
