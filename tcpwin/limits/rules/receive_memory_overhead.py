"""## What it finds

Packets take more receive buffer memory than the kernel assumes, so the buffer fills before the window does.

## Why it matters

Before Linux 6.6 the window is a fixed share of the buffer, set by `net.ipv4.tcp_adv_win_scale`. If a byte of payload
takes more memory than that share assumes, the window promises more than fits: the kernel collapses queues and then
drops packets.

## How it is judged

The receiver's kernel is known to be older than 6.6. In the `ss -tm` samples with at least `least_bytes` unread and the
buffer at least half full, the median of memory in use (r) ÷ unread payload (Recv-Q) exceeds the ratio that the scale
assumes by at least a factor of `times`. (From 6.6 on the kernel measures the ratio itself.)

## When it is wrong

Out-of-order packets count in r but not in Recv-Q, so an open hole makes the overhead look too high. The median of
several samples reduces this, but heavy loss may still distort it.

## What to do

Set a scale that matches the measured overhead, and raise the third value of `net.ipv4.tcp_rmem` so that the window
stays as large. Or use Linux 6.6 or later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.receive_buffer import kernel_at, more_overhead
from tcpwin.limits.finding import Evidence, Finding, Severity
from tcpwin.limits.rule import Rule, Threshold

if TYPE_CHECKING:
    from tcpwin.kernel import ReceiveMemory

FEWEST = 3


def judge(case: Case) -> Iterator[Finding]:
    host = case.host(case.receiver)
    kernel = kernel_at(host)
    if host is None or kernel is None:
        return
    from tcpwin.kernel import SCALING_RATIO_SINCE, adv_win_scale_of, memory_models, receive_memory

    if kernel >= SCALING_RATIO_SINCE:
        return
    read = [receive_memory(each, settings=host.settings, kernel=kernel) for each in case.sockets(case.receiver)]
    usable = [each for each in read if _is_usable(each, case.settings["least_bytes"])]
    if len(usable) < FEWEST:
        return
    from statistics import median

    measured = median(each.measured_overhead or 0.0 for each in usable)
    [model] = memory_models(kernel, adv_win_scale=adv_win_scale_of(host.settings))
    assumed = float(model.overhead)
    if measured < assumed * case.settings["times"]:
        return
    side = case.receiver
    yield case.finding(
        f"{case.the_receiver}'s window promises more than its buffer holds: a byte of payload takes {measured:.2f} "
        f"bytes of the buffer, and the kernel assumes {assumed:.2f} ({model.name})",
        owner="host",
        side=side,
        confidence="certain",
        evidence=Evidence(
            start_ns=case.data.first_data_ns,
            end_ns=case.data.last_data_ns,
            values={
                "measured_overhead": round(measured, 2),
                "assumed_overhead": round(assumed, 2),
                "samples": len(usable),
                "rcvbuf_bytes": usable[-1].rcvbuf_bytes or 0,
            },
            ruled_out=(
                "Not only out-of-order data: this is the median of several samples, each with much unread in-order "
                "data."
            ),
        ),
        remedy=more_overhead(host, case.the_receiver, measured),
    )


def _is_usable(memory: ReceiveMemory, least_bytes: float) -> bool:
    return (memory.recv_q_bytes or 0) >= least_bytes and (memory.fill or 0.0) >= 0.5 and bool(memory.measured_overhead)


RULE = Rule(
    code="TW212",
    name="receive-memory-overhead",
    title="packets take more receive memory than the kernel expects",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window",),
    needs_hosts=True,
    judge=judge,
    page=__doc__,
    when=(("payload_bytes", ">=", "{least_bytes}"), ("receive_window_max_bytes", ">=", "{least_bytes}")),
    thresholds={
        "least_bytes": Threshold(65_536, "bytes", "With less in the queue, one packet's overhead dominates."),
        "times": Threshold(
            1.05, "times", "Receive memory (r) is charged one packet late, which is less than 5 % of such a queue."
        ),
    },
)
