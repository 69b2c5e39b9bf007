"""Delayed ACKs are those that the receiver's kernel counted: sent by its timer, not by an arrival.

DelayedACKs counts what tcp_delack_timer sends. In virtual time all else leaves at the instant of an arrival, so that
at the receiver's end the timer's ACKs stand apart. tcpwin names those of a single segment: where the reader lags, the
window that does not open delays ACKs of several, which no capture tells from a reader's own pace.
"""

from __future__ import annotations

from lab.both_ends import Passage, ack_way, data_way, distance
from lab.runs import ACK, FIN, MILLISECOND_NS, RST, SYN, Run
from lab.selection import CLOSED, IPERF3, LATE, STALL, on

# TCP_DELACK_MIN, less the tick in which the timer is armed.
TIMER_MIN_NS = 38 * MILLISECOND_NS
# The reader takes what arrives at once.
AT_ONCE = (*IPERF3, *(scenario for scenario in CLOSED if scenario not in (*LATE, *STALL)))


def by_timer(run: Run) -> list[Passage]:
    """Return the receiver's pure ACKs of one segment that no arrival set off."""
    waiting: list[tuple[int, int]] = []
    arrivals = {arrival.frame: (passage, arrival) for passage, arrival in data_way(run).data_arrivals}
    acks = {passage.left.frame: passage for passage in ack_way(run).passages}
    first = next(iter(data_way(run).passages)).left
    base = first.seq + (first.flags & SYN > 0)
    last_ns = una = 0
    late = []
    for frame in sorted({*arrivals, *acks}):
        if frame in arrivals:
            passage, arrival = arrivals[frame]
            last_ns = arrival.time_ns
            waiting.append((passage.end, last_ns))
            continue
        ack = acks[frame].left
        reached = distance(ack.ack, base)
        covered = [time_ns for end, time_ns in waiting if una < end <= reached]
        waiting = [(end, time_ns) for end, time_ns in waiting if end > reached]
        una = max(una, reached)
        is_pure = ack.flags & (ACK | SYN | FIN | RST) == ACK
        if is_pure and len(covered) == 1 and ack.time_ns > last_ns and ack.time_ns - covered[0] >= TIMER_MIN_NS:
            late.append(acks[frame])
    return late


@on(AT_ONCE, ends=["rcv"], copies=False)
def test_acks_by_the_timer_are_the_kernels(run: Run) -> None:
    """Guards the truth: to the last one, in every run whose reader does not lag."""
    assert len(by_timer(run)) == run.counter("rcv", "TcpExt.DelayedACKs")


@on(AT_ONCE)
def test_delayed_acks_are_as_many_as_the_kernel_counted(run: Run) -> None:
    assert run.data.delayed_acks == run.counter("rcv", "TcpExt.DelayedACKs")
    assert run.back.delayed_acks == run.counter("snd", "TcpExt.DelayedACKs") * (not run.is_iperf3)


@on(without=LATE, copies=False)
def test_delayed_acks_are_exactly_the_timers(run: Run) -> None:
    """ACK by ACK, at the end where it left and where it arrived."""
    ends = [each.left if run.end == "rcv" else each.arrived for each in by_timer(run)]
    columns = run.columns
    named = {
        int(frame)
        for frame, events in zip(columns["frame"], columns["events"], strict=True)
        if "delayed_ack" in str(events).split("|")
    }
    assert named == {each.frame for each in ends if each is not None}
