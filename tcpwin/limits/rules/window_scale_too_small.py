"""## What it finds

The window scale shift is too small: the receive window reached the maximum that the shift can express, and the sender
waited.

## Why it matters

The shift is fixed in the SYN (RFC 7323 §2.2), and a window is at most 65,535 << shift. However large the buffer grows
later, no more can be offered.

## How it is judged

The shift is known and below 14. The window stayed within 10 % of 65,535 << shift, and the next segment did not fit it
for at least `limited_ns` and at least `share` of the time from the first to the last data, at a rate of at least `fill`
of one such window per round trip.

## When it is wrong

The capacity of the path is unknown: the stated time is the most that a larger window could save.

## What to do

Linux derives the shift from the largest of `net.ipv4.tcp_rmem`, `net.core.rmem_max` and the socket's buffer at the time
of the SYN (`tcp_select_initial_window`): raise tcp_rmem, and set SO_RCVBUF, if at all, before connect or listen.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.kernel import MAX_SHIFT
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.receive_buffer import larger_buffer
from tcpwin.limits.evidence.window import (
    FULL_FRAMES_OF,
    HELD_BACK,
    MAX_FIELD,
    confidence_of,
    full_frames,
    held_back,
    is_at_field_limit,
    is_shown,
    kernel_denies,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import rate_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    shift = data.window_scale.shift
    held = held_back(case)
    if held is None or shift is None or held.fill < case.settings["fill"] or not is_at_field_limit(data):
        return
    if data.window_scale.state == "disabled" or kernel_denies(case, held.held_ns):
        return
    frames = full_frames(case)
    if not is_shown(case, frames):
        return
    largest = MAX_FIELD << shift
    from tcpwin.kernel import window_rate_bps

    ceiling_bps = round(window_rate_bps(largest, held.rtt_ns))
    yield case.finding(
        f"{case.the_receiver} chose a window scale of {shift}: its window cannot exceed {largest:,} bytes, "
        f"{rate_text(ceiling_bps)} over {time_text(held.rtt_ns)}. It reached {data.receive_window_max_bytes:,}, and "
        f"{case.the_sender} waited for it {time_text(held.held_ns)} ({share_text(held.share)} of the transfer)",
        owner="host",
        side=case.receiver,
        confidence=confidence_of(case),
        cost_ns=held.held_ns,
        evidence=Evidence(
            frames=frames,
            frames_of=FULL_FRAMES_OF,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "shift": shift,
                "window_max_bytes": data.receive_window_max_bytes or 0,
                "largest_window_bytes": largest,
                "rtt_ns": held.rtt_ns,
                "goodput_bps": round(data.goodput_bps or 0),
                "held_back_ns": held.held_ns,
            },
            ruled_out="Not a slow reader: the window stayed at the maximum that the shift can express.",
        ),
        remedy=Remedy(
            f"Raise {case.the_receiver}'s largest receive buffer before the connection is made: Linux derives the "
            "shift from it. A program that sets SO_RCVBUF must do so before connect() or listen().",
            settings=larger_buffer(case),
            side_effects="Affects new connections only. Each may use that much memory.",
        ),
    )


RULE = Rule(
    code="TW105",
    name="window-scale-too-small",
    title="the window reached the maximum of its scale",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    when=(("window_scale_shift", "<", MAX_SHIFT), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds=HELD_BACK,
    yields_to=("TW106",),
)
