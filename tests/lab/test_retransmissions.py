"""Retransmissions at the sender equal the kernel's RetransSegs, in total and at every sample of ss."""

from __future__ import annotations

import numpy as np
from lab.agreement import agrees, rows_near, samples_inside
from lab.runs import MILLISECOND_NS, Run
from lab.selection import on
from numpy.typing import NDArray

RESENT = {"retransmission", "fast_retransmission", "rto_retransmission", "spurious_retransmission", "tail_loss_probe"}
# The counter is ahead of the capture by the data queued in the tbf.
QUEUE_NS = 10 * MILLISECOND_NS


def resent(run: Run) -> NDArray[np.bool_]:
    """Return the rows that tcpwin calls retransmissions of the data's sender, of any kind."""
    names = [str(events).split("|") for events in run.columns["events"]]
    again = [any(name in RESENT for name in each) for each in names]
    return np.array(again) & run.from_sender


def times_ns(run: Run) -> list[int]:
    return [int(time_ns) for time_ns in run.columns["time_ns"][resent(run)]]


@on(ends=["snd"])
def test_retransmissions_are_as_many_as_the_kernel_counted(run: Run) -> None:
    assert run.data.retransmissions == run.counter("snd", "Tcp.RetransSegs")
    assert len(times_ns(run)) == run.data.retransmissions
    assert run.back.retransmissions == run.counter("rcv", "Tcp.RetransSegs")


@on(ends=["snd"])
def test_retransmissions_are_seen_when_the_kernel_counted_them(run: Run) -> None:
    times = times_ns(run)
    for looked_ns, count in run.counters("snd", "RetransSegs"):
        before = sum(time_ns < looked_ns for time_ns in times)
        soon = sum(time_ns <= looked_ns + QUEUE_NS for time_ns in times)
        assert before <= count <= soon, looked_ns


@on(ends=["snd"])
def test_bytes_sent_again_are_the_kernels_at_every_sample(run: Run) -> None:
    """bytes_retrans, while nothing is queued in the tbf."""
    columns = run.columns
    total = np.cumsum(np.where(resent(run), columns["length"], 0))
    for sample in samples_inside(run, "snd"):
        if sample.skmem["t"]:
            continue
        rows = [row for row in rows_near(run, sample.time_ns) if agrees(run, sample, row)]
        assert sample.number("bytes_retrans") in {int(total[row]) for row in rows}, sample
