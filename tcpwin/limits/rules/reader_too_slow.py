"""## What it finds

The receiver's application did not read data that its kernel held: the receive buffer was full.

## Why it matters

The window that a receiver offers is the free space in its buffer. While unread data fills it, the sender waits, however
fast the path is. The application sets the pace.

## How it is judged

In at least `full` of the `ss -tm` samples on the receiver, memory in use (r) was at least 80 % of the limit (rb), and
at least a quarter of it was unread payload (Recv-Q). The packets also show that the window, closed or too small, cost
the sender at least `limited_ns`.

## When it is wrong

Infrequent samples may catch the buffer at its fullest by chance. Out-of-order data also counts in r; requiring a
quarter of r in Recv-Q keeps a hole alone from looking like a slow reader.

## What to do

Find what the receiver's application waits for: a disk, a lock, one thread serving many sockets, its own consumer. A
larger buffer only postpones the problem.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.full_buffer import full_buffer
from tcpwin.limits.evidence.window import FULL_FRAMES_OF, full_frames, held_back_ns, kernel_denies
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.names import read_faster
from tcpwin.limits.reader import only_stop_ns
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    cost_ns = held_back_ns(data) + data.zero_window_ns
    full = full_buffer(case, case.settings["full"])
    if full is None or cost_ns < case.settings["limited_ns"] or kernel_denies(case, cost_ns):
        return
    worst = full.worst
    yield case.finding(
        f"{case.the_receiver}'s application reads too slowly: its receive buffer was full in {full.full} of "
        f"{full.samples} samples, with up to {worst.recv_q_bytes or 0:,} bytes unread, and {case.the_sender} waited "
        f"{time_text(cost_ns)} for its window",
        owner="application",
        side=case.receiver,
        confidence="certain",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=full_frames(case),
            frames_of=FULL_FRAMES_OF,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "full_samples": full.full,
                "samples": full.samples,
                "recv_q_bytes": worst.recv_q_bytes or 0,
                "rmem_alloc_bytes": worst.rmem_alloc_bytes or 0,
                "rcvbuf_bytes": worst.rcvbuf_bytes or 0,
                "held_back_ns": cost_ns,
            },
            ruled_out="Not a small buffer with a fast reader: Recv-Q would be near zero.",
        ),
        remedy=Remedy(
            read_faster(case.the_receiver, only_stop_ns(case.data)),
            side_effects="A larger receive buffer only postpones the wait, and adds delay.",
        ),
    )


RULE = Rule(
    code="TW208",
    name="reader-too-slow",
    title="data waited unread in the receiver's kernel",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_application",),
    judge=judge,
    page=__doc__,
    when=(("window_cost_ns", ">=", "{limited_ns}"),),
    thresholds={
        "full": Threshold(0.2, "share", "A buffer that is full a fifth of the time sets the transfer's pace."),
        "limited_ns": Threshold(
            200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."
        ),
    },
    yields_to=("TW101", "TW105", "TW106", "TW201", "TW203", "TW204", "TW206", "TW207"),
)
