"""## What it finds

Window scaling is off for the connection, and the receive window of 65,535 bytes held the sender back.

## Why it matters

Without the option the window field can express at most 65,535 bytes (RFC 7323 §1.1, §2.2). The connection carries at
most one window per round trip: 6 Mbit/s over 85 ms, whatever the path could carry.

## How it is judged

A SYN or the SYN/ACK was captured without the option. The client has to offer it first, so if both lack it, the client
decided. The window stayed within 10 % of 65,535 bytes, and the next segment did not fit it for at least `limited_ns`
and at least `share` of the time from the first to the last data, at a rate of at least `fill` of that ceiling.

## When it is wrong

A middlebox may have removed the option: a capture near the host that seems to lack it, or its settings, shows whether
it did. The capacity of the path is unknown: the stated time is the most that a larger window could save.

## What to do

Switch window scaling on where it is off: `sysctl net.ipv4.tcp_window_scaling` on Linux, `netsh interface tcp show
global` on Windows (autotuning level "disabled"). This affects new connections only.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.window import (
    AFTER_SYN,
    HELD_BACK,
    MAX_FIELD,
    full_frames,
    held_back,
    is_at_field_limit,
    is_shown,
    kernel_denies,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import rate_text, share_text, time_text

SETTING = "net.ipv4.tcp_window_scaling"


def judge(case: Case) -> Iterator[Finding]:
    data, connection = case.data, case.connection
    held = held_back(case)
    if held is None or held.fill < case.settings["fill"] or not is_at_field_limit(data):
        return
    if kernel_denies(case, held.held_ns):
        return
    frames = full_frames(case)
    if not is_shown(case, frames):
        return
    by = data.window_scale.disabled_by
    culprit = "b" if by == "b" else "a"
    setting = _setting_of(case, culprit)
    packet = {"a": "the client's SYN", "b": "the server's SYN/ACK"}.get(
        by or "", "the client's SYN, and so the answer,"
    )
    from tcpwin.kernel import window_rate_bps

    ceiling_bps = round(window_rate_bps(MAX_FIELD, held.rtt_ns))
    was_removed = setting == 1
    # A capture on the host, or its setting, shows what it sent; elsewhere a middlebox may have removed the option.
    is_sure = setting == 0 or (setting is None and connection.vantage == culprit)
    clause = ""
    if setting == 0:
        clause = f"; {SETTING} is 0 on {case.the(culprit)}"
    elif was_removed:
        clause = f", though {SETTING} is 1 on {case.the(culprit)}: a box on the path may have removed it"
    yield case.finding(
        f"Window scaling is off: {packet} came without the option{clause}. {MAX_FIELD:,} bytes at most are "
        f"{rate_text(ceiling_bps)} over {time_text(held.rtt_ns)}; {case.the_sender} waited {time_text(held.held_ns)} "
        f"({share_text(held.share)} of the transfer)",
        owner="network" if was_removed else "host",
        side=None if was_removed else culprit,
        confidence="certain" if is_sure else "likely",
        cost_ns=held.held_ns,
        evidence=Evidence(
            frames=(connection.first_frame, *frames),
            frames_of=AFTER_SYN,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "window_max_bytes": data.receive_window_max_bytes or 0,
                "rtt_ns": held.rtt_ns,
                "ceiling_bps": ceiling_bps,
                "goodput_bps": round(data.goodput_bps or 0),
                "held_back_ns": held.held_ns,
            },
            ruled_out=(
                "Not a slow reader or a small buffer: the window stayed at the maximum that the field can express."
            ),
        ),
        remedy=Remedy(
            f"Switch on window scaling on {case.the(culprit)} ({SETTING}=1 on Linux). Both ends must offer it "
            "(RFC 7323 §2.2): if both do, a firewall on the path removes it from the SYN.",
            settings=_lines(case, culprit),
            side_effects="Affects new connections only. Larger windows use more of the receiver's memory.",
        ),
    )


def _lines(case: Case, side: str) -> tuple[str, ...]:
    linux, windows = f"sysctl -w {SETTING}=1", "netsh interface tcp set global autotuninglevel=normal"
    # A kernel release or sysctl names rule out Windows.
    host = case.host(side)
    return (linux,) if host is not None and (host.kernel or host.settings) else (linux, windows)


def _setting_of(case: Case, side: str) -> int | None:
    host = case.host(side)
    return None if host is None or host.settings is None else host.settings.number(SETTING)


RULE = Rule(
    code="TW101",
    name="window-scaling-not-negotiated",
    title="window scaling is off, and 65,535 bytes were too small a window",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    when=(("window_scale_state", "==", "disabled"), ("window_cost_ns", ">=", "{limited_ns}")),
    thresholds=HELD_BACK,
)
