"""## What it finds

The receive window was open, but too small for the next segment for much of the transfer.

## Why it matters

A connection carries at most one window per round trip. A faster path or a larger congestion window changes nothing
while the receive window is smaller.

## How it is judged

The next segment did not fit the open window (Linux `tcp_snd_wnd_test`) for at least `limited_ns` and at least `share`
of the time from the first to the last data, and the closed window took less than that. Then one of two causes applies.
If the window was below half of its previous size for `drained` of the time, unread data filled the buffer and the
reader is slow; this is only `possible` if loss recovery took at least half as long, because out-of-order data fills the
buffer as well. If the rate was at least `fill` of one window per round trip, the buffer, and so the window, is too
small. Otherwise nothing is reported: if round trips are longer than the path's minimum, a queue has built up and the
path is full.

If the sender's `ss -ti` is available, its kernel's `rwnd_limited` is compared: less than a quarter of the time rules
the finding out.

## When it is wrong

The capacity of the path is unknown: the stated time is the most that a larger window or a faster reader could save. If
scaling is off (TW101), the shift is too small (TW105) or the window did not grow (TW207), those rules report instead,
as does TW208 if the receiver's `ss -tm` shows the full buffer.

## What to do

If the reader is slow, find what it waits for. If the buffer is small, raise the third value of `net.ipv4.tcp_rmem` on
the receiver, and remove SO_RCVBUF from programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.full_buffer import full_buffer
from tcpwin.limits.evidence.receive_buffer import find_bound, larger_buffer
from tcpwin.limits.evidence.window import (
    FULL_FRAMES_OF,
    HELD_BACK,
    HeldBack,
    confidence_of,
    drained_share,
    full_frames,
    held_back,
    is_at_field_limit,
    is_shown,
    kernel_denies,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.names import read_faster
from tcpwin.limits.reader import only_stop_ns
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import rate_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    held = held_back(case)
    if held is None or held.held_ns <= data.zero_window_ns or kernel_denies(case, held.held_ns):
        return
    is_full = held.fill >= case.settings["fill"]
    if is_full and (is_at_field_limit(data) or find_bound(case) is not None):
        return
    if full_buffer(case) is not None:
        return
    frames = full_frames(case)
    if not is_shown(case, frames):
        return
    drained = drained_share(case)
    if drained >= case.settings["drained"]:
        yield _slow_reader(case, held, drained, frames)
    elif is_full:
        yield _small_window(case, held, frames)


def _slow_reader(case: Case, held: HeldBack, drained: float, frames: tuple[int, ...]) -> Finding:
    return case.finding(
        f"{case.the_sender} waited {time_text(held.held_ns)} ({share_text(held.share)} of the transfer) for "
        f"{case.the_receiver}'s receive window. It was below half of its largest {share_text(drained)} of the time: "
        "the application seems to read too slowly",
        owner="application",
        side=case.receiver,
        # Out-of-order data takes memory too and may have filled the buffer during long recoveries.
        confidence="possible" if case.data.recovery_ns * 2 > held.held_ns else "likely",
        cost_ns=held.held_ns,
        evidence=_evidence(
            case,
            held,
            frames,
            {"drained_share": round(drained, 2)},
            "Not a small buffer: the window had been more than twice as large.",
        ),
        remedy=Remedy(
            read_faster(case.the_receiver, only_stop_ns(case.data)),
            side_effects="A larger receive buffer only postpones the wait, and adds delay.",
        ),
    )


def _small_window(case: Case, held: HeldBack, frames: tuple[int, ...]) -> Finding:
    return case.finding(
        f"{case.the_sender} waited {time_text(held.held_ns)} ({share_text(held.share)} of the transfer) for "
        f"{case.the_receiver}'s receive window: {held.window_bytes:,} bytes on average carry "
        f"{rate_text(held.ceiling_bps)} over {time_text(held.rtt_ns)}, and {rate_text(case.data.goodput_bps or 0)} "
        "were reached",
        owner="host",
        side=case.receiver,
        confidence=confidence_of(case),
        cost_ns=held.held_ns,
        evidence=_evidence(
            case,
            held,
            frames,
            {},
            "Not a full path: its queue would have made round trips longer, and the rate was one window per minimum "
            "round trip.",
        ),
        remedy=Remedy(
            f"Let {case.the_receiver}'s receive buffer grow: if its program sets SO_RCVBUF, remove that, else raise "
            "net.ipv4.tcp_rmem.",
            settings=larger_buffer(case),
            side_effects="Each connection may use that much memory; net.ipv4.tcp_mem limits all of them.",
        ),
    )


def _evidence(case: Case, held: HeldBack, frames: tuple[int, ...], more: dict[str, float], ruled_out: str) -> Evidence:
    data = case.data
    values: dict[str, float | int | str] = {
        "window_mean_bytes": held.window_bytes,
        "window_max_bytes": data.receive_window_max_bytes or 0,
        "rtt_ns": held.rtt_ns,
        "ceiling_bps": held.ceiling_bps,
        "goodput_bps": round(data.goodput_bps or 0),
        "held_back_ns": held.held_ns,
    }
    return Evidence(frames, data.first_data_ns, data.last_data_ns, values | more, ruled_out, frames_of=FULL_FRAMES_OF)


RULE = Rule(
    code="TW202",
    name="receive-window-limited",
    title="the receive window was open but too small",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window", "receiver_application"),
    judge=judge,
    page=__doc__,
    when=(("window_scale_shift", ">=", 0.0), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds=HELD_BACK
    | {"drained": Threshold(0.3, "share", "A buffer that fills in bursts empties within a few round trips.")},
    yields_to=("TW101", "TW105", "TW106", "TW206", "TW207", "TW208"),
)
