"""## What it finds

The receive window held the sender back and did not grow: it reached the maximum that the receiver's settings allow, or
never rose above its initial size.

## Why it matters

An autotuning receiver doubles its window every round trip as long as its application keeps up. If the window stays
small, the rate is one window per round trip, however fast the path is.

## How it is judged

The next segment did not fit the open window for at least `limited_ns` and at least `share` of the time from the first
to the last data, and the rate was at least `fill` of one window per round trip, for ten round trips or more. The window
stayed near its maximum. In addition, one of these holds: the largest window is within 10 % of what the third value of
`tcp_rmem` allows (from the receiver's settings: tcp_win_from_space); the socket's buffer was the same in all samples
and matches no value of tcp_rmem (SO_RCVBUF disables autotuning); or the window never exceeded its initial size by more
than 10 %.

## When it is wrong

Without snapshots the receiver's settings are unknown and the finding is only `likely`. A host short of TCP memory
(tcp_mem) also keeps buffers from growing. A program may want a small buffer.

## What to do

Raise the third value of `net.ipv4.tcp_rmem`, keep `net.ipv4.tcp_moderate_rcvbuf` at 1, and remove SO_RCVBUF from
programs: `ss -tm` shows the buffer as rb.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.receive_buffer import MODERATE, Bound, find_bound, larger_buffer
from tcpwin.limits.evidence.window import (
    FULL_FRAMES_OF,
    HELD_BACK,
    HeldBack,
    full_frames,
    held_back,
    is_at_field_limit,
    is_shown,
    kernel_denies,
    largest_rate_bps,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import rate_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    held = held_back(case)
    if held is None or held.fill < case.settings["fill"] or is_at_field_limit(data):
        return
    bound = find_bound(case)
    if bound is None or kernel_denies(case, held.held_ns):
        return
    frames = full_frames(case)
    if not is_shown(case, frames):
        return
    values: dict[str, float | int | str] = {
        "window_first_bytes": data.receive_window_initial_bytes or 0,
        "window_max_bytes": data.receive_window_max_bytes or 0,
        "rtt_ns": held.rtt_ns,
        "ceiling_bps": largest_rate_bps(data, held.rtt_ns),
        "goodput_bps": round(data.goodput_bps or 0),
        "held_back_ns": held.held_ns,
    }
    if bound.buffer_bytes is not None:
        values["buffer_bytes"] = bound.buffer_bytes
    yield case.finding(
        _text(case, held, bound),
        owner="application" if bound.cause == "fixed" else "host",
        side=case.receiver,
        confidence="likely" if bound.cause in ("unknown", "fixed") else "certain",
        cost_ns=held.held_ns,
        evidence=Evidence(
            frames=frames,
            frames_of=FULL_FRAMES_OF,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values=values,
            ruled_out="Not a slow reader: unread data would have made the window fall.",
        ),
        remedy=_remedy(case, bound),
    )


def _text(case: Case, held: HeldBack, bound: Bound) -> str:
    most, receiver = case.data.receive_window_max_bytes or 0, case.the_receiver
    why = {
        "rmem": (
            f"{receiver}'s receive window stopped at {most:,} bytes, the limit of its tcp_rmem "
            f"({bound.buffer_bytes or 0:,})"
        ),
        "fixed": (
            f"{receiver}'s receive buffer stayed at {bound.buffer_bytes or 0:,} bytes, which is none of its tcp_rmem "
            "values, and "
            f"its window at {most:,}: its program seems to set SO_RCVBUF"
        ),
        "off": f"{receiver}'s receive window stayed at {most:,} bytes: autotuning is off ({MODERATE} is 0)",
        "unknown": (
            f"{receiver}'s receive window never grew above {most:,} bytes: its receive buffer seems small or fixed"
        ),
    }[bound.cause]
    rate = rate_text(largest_rate_bps(case.data, held.rtt_ns))
    return (
        f"{why}. That is {rate} over {time_text(held.rtt_ns)}; {case.the_sender} waited {time_text(held.held_ns)} "
        f"({share_text(held.share)} of the transfer)"
    )


def _remedy(case: Case, bound: Bound) -> Remedy:
    receiver = case.the_receiver
    lines = larger_buffer(case)
    if bound.cause == "fixed":
        return Remedy(
            f"Remove SO_RCVBUF from {receiver}'s program, so that autotuning works; or set it larger "
            "(net.core.rmem_max is its limit).",
            side_effects="An autotuned buffer may grow to the third value of tcp_rmem.",
        )
    if bound.cause == "off":
        lines = (f"sysctl -w {MODERATE}=1", *lines)
    return Remedy(
        f"Let {receiver}'s receive buffer grow: if its program sets SO_RCVBUF, remove that, else raise "
        "net.ipv4.tcp_rmem.",
        settings=lines,
        side_effects="Each connection may use that much memory; net.ipv4.tcp_mem limits all of them.",
    )


RULE = Rule(
    code="TW207",
    name="autotuning-stuck",
    title="the receive window did not grow and limited the sender",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window", "receiver_application"),
    judge=judge,
    page=__doc__,
    when=(("window_scale_shift", ">=", 0.0), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds=HELD_BACK,
    yields_to=("TW105", "TW106", "TW206"),
)
