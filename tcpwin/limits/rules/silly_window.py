"""## What it finds

The receiver offered less than a segment of window at a time, and the sender filled it with small segments.

## Why it matters

This is the silly window syndrome (RFC 813): high overhead for little data, and a sender that waits for space in
between. A receiver should offer nothing until a full segment, or half its buffer, is free (RFC 9293 §3.8.6.2.2).

## How it is judged

At least `sub_mss` accepted windows were above zero and smaller than one segment; the segments carried less than half of
the MSS on average; and the sender waited for space for at least `limited_ns` in total. A window that merely runs out
while data fills it does not count: its segments are full.

## When it is wrong

On loopback and with jumbo frames a small buffer may hold less than one segment; then the buffer is the cause. A program
that writes small amounts sends small segments anyway.

## What to do

A stack that offers such windows should offer zero until there is space (RFC 813 §4; RFC 9293 §3.8.6.2.2). If the buffer
is smaller than two segments, enlarge it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.window import held_back_ns, spread
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data, receiver = case.data, case.receiver
    if not data.data_segments or data.payload_bytes * 2 >= data.mss_bytes * data.data_segments:
        return
    held_ns = held_back_ns(data)
    if held_ns < case.settings["limited_ns"]:
        return
    mean_bytes = data.payload_bytes // data.data_segments
    holds_none = (data.receive_window_max_bytes or 0) < data.mss_bytes
    why = (
        f"its window never held a segment of {data.mss_bytes:,} bytes: the buffer is too small"
        if holds_none
        else "it should offer nothing until a whole one fits"
    )
    yield case.finding(
        f"{case.the_sender} waited {time_text(held_ns)} for window: {case.the_receiver} offered less than a segment "
        f"{count_text(data.sub_mss_windows, 'time')}, and segments carry {mean_bytes:,} bytes where {data.mss_bytes:,} "
        f"fit; {why}",
        owner="host",
        side=receiver,
        confidence="likely",
        cost_ns=held_ns,
        evidence=Evidence(
            frames=spread([event.frame for event in case.events("sub_mss_window", side=receiver)]),
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "sub_mss_windows": data.sub_mss_windows,
                "mss_bytes": data.mss_bytes,
                "segment_mean_bytes": mean_bytes,
                "window_max_bytes": data.receive_window_max_bytes or 0,
                "held_back_ns": held_ns,
            },
            ruled_out="Not a window that data fills: the segments would be full.",
        ),
        remedy=Remedy(
            f"Give {case.the_receiver} a buffer of at least two segments."
            if holds_none
            else (
                f"Update the stack or proxy on {case.the_receiver}: a window smaller than a segment is better offered "
                "as zero."
            ),
        ),
    )


RULE = Rule(
    code="TW206",
    name="silly-window",
    title="windows and segments smaller than the MSS",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window", "receiver_application"),
    judge=judge,
    page=__doc__,
    when=(("sub_mss_windows", ">=", "{sub_mss}"), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds={
        "sub_mss": Threshold(10, "count", "Any receiver whose buffer fills once advertises a few."),
        "limited_ns": Threshold(
            200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."
        ),
    },
)
