"""## What it finds

The receive window held the sender back at the maximum that the receiver's `net.ipv4.tcp_rmem` allows.

## Why it matters

A connection carries at most one window per round trip. Autotuning stops at the third value of the setting, however fast
the path is.

## How it is judged

The next segment did not fit the open window for at least `limited_ns` and at least `share` of the transfer, and the
rate was at least `fill` of one window per round trip. The window reached at least `reached` of what the setting allows
according to the model of the receiver's kernel, stayed above half of that, and was never closed. If socket samples (`ss
-m`) show a buffer below the setting, another limit came first and the rule is silent. The cost is the time in which the
window held the sender back. The lost rate is relative to the fastest connection between the same two addresses; it is
unknown if this one is the fastest.

## When it is wrong

The capture cannot show what the path would carry beyond the present rate: a larger buffer may soon meet the next limit.

## What to do

Raise the third value of `net.ipv4.tcp_rmem` on the receiver. The suggested value fits the fastest connection seen, and
at least twice the present rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import best_goodput_bps, kernel_version, sizes_of
from tcpwin.limits.evidence.receive_buffer import larger_buffer
from tcpwin.limits.evidence.window import FULL_FRAMES_OF, HELD_BACK, full_frames, held_back, kernel_denies
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, rate_text, share_text, time_text

SETTING = "net.ipv4.tcp_rmem"
AT_LIMIT = 0.95
"""A buffer within 5 % of the setting counts as at the limit: 65,535 of 65,536."""


def judge(case: Case) -> Iterator[Finding]:
    from tcpwin.kernel import adv_win_scale_of, audit, memory_models, window_rate_bps

    data, host = case.data, case.host(case.receiver)
    if host is None or host.settings is None or data.zero_window_ns:
        return
    sizes = sizes_of(host, SETTING)
    if sizes is None or host.settings.number("net.ipv4.tcp_moderate_rcvbuf") == 0:
        return
    buffers = [sample.rcvbuf_bytes for sample in case.sockets(case.receiver) if sample.rcvbuf_bytes]
    if buffers and max(buffers) < AT_LIMIT * sizes[2]:
        return
    models = memory_models(kernel_version(host), adv_win_scale=adv_win_scale_of(host.settings))
    allowed = min(model.window_from_space(sizes[2]) for model in models)
    most, mean = data.receive_window_max_bytes or 0, data.receive_window_mean_bytes or 0
    if most < case.settings["reached"] * allowed or 2 * mean < most:
        return
    held = held_back(case)
    if held is None or held.fill < case.settings["fill"] or kernel_denies(case, held.held_ns):
        return
    goodput_bps = data.goodput_bps or 0.0
    best_bps = best_goodput_bps(case)
    wanted_bps = max(best_bps, 2 * goodput_bps)
    found = audit(host.settings, held.rtt_ns, wanted_bps, kernel=kernel_version(host))
    advice = next((each for each in found if each.setting == SETTING), None)
    if advice is None or advice.line is None:
        return
    allowed_bps = float(window_rate_bps(allowed, held.rtt_ns))
    lost_bps = best_bps - goodput_bps if best_bps > goodput_bps else None
    yield case.finding(
        f"{case.the_receiver}'s {SETTING} allows a window of at most {bytes_text(allowed)}, which is "
        f"{rate_text(allowed_bps)} over {time_text(held.rtt_ns)}; {case.the_sender} waited for it "
        f"{share_text(held.share)} of the transfer",
        owner="host",
        side=case.receiver,
        cost_ns=held.held_ns,
        lost_bps=lost_bps,
        confidence="certain" if buffers else "likely",
        evidence=Evidence(
            frames=full_frames(case),
            frames_of=FULL_FRAMES_OF,
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "tcp_rmem_max_bytes": sizes[2],
                "allowed_window_bytes": allowed,
                "receive_window_max_bytes": most,
                "window_limited_ns": held.held_ns,
                "path_rtt_ns": held.rtt_ns,
                "goodput_bps": goodput_bps,
                "best_goodput_bps": best_bps,
                "largest_rcvbuf_bytes": max(buffers, default=0),
            },
            ruled_out="Not a slow reader: the window stayed near its largest, so data was read promptly.",
        ),
        remedy=Remedy(
            f"Raise the third value of {SETTING} on {case.the_receiver}.",
            settings=larger_buffer(case),
            side_effects=advice.side_effects,
        ),
    )


RULE = Rule(
    code="TW701",
    name="receive-buffer-setting-too-small",
    title="tcp_rmem limits the window, and the window limits the rate",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_window", "receiver_application"),
    needs_hosts=True,
    judge=judge,
    page=__doc__,
    # The window's cost is known from either end; the sender's or the capture point's view only from one.
    when=(("window_cost_ns", ">=", "{limited_ns}"), ("connection.path_rtt_ns", ">", 0)),
    thresholds={
        **HELD_BACK,
        "reached": Threshold(
            0.7,
            "share",
            "Linux advertises whole segments below what it allows, and rcv_ssthresh may stay a quarter lower.",
        ),
    },
    yields_to=("TW101", "TW105", "TW106", "TW202", "TW206", "TW207", "TW208"),
)
