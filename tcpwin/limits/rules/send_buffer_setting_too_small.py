"""## What it finds

The sender's kernel recorded time in which the send buffer was full while the network could take more, and the buffer
had reached the maximum that `net.ipv4.tcp_wmem` allows.

## Why it matters

Data in flight stays in the send buffer until it is acknowledged. A buffer below about twice the window leaves the
application no space to write the next data in time.

## How it is judged

`sndbuf_limited` from `ss -ti` is at least `share` of `busy`, and at least `limited_ns`. `ss -m` shows the buffer (`tb`)
at the third value of the setting; without `-m` the finding is `likely`. Packets alone cannot show this.

## When it is wrong

A program that sets SO_SNDBUF chose its own buffer, which is then below the setting; the rule is silent.

## What to do

Raise the third value of `net.ipv4.tcp_wmem` on the sender. All rules on send buffers suggest the same value: the
largest of twice the buffer, what the fastest connection between the same two addresses needs, and the kernel's default.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import best_goodput_bps, kernel_version, sizes_of
from tcpwin.limits.evidence.send_buffer import larger_send_buffer
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, share_text, time_text

SETTING = "net.ipv4.tcp_wmem"
AT_LIMIT = 0.95


def judge(case: Case) -> Iterator[Finding]:
    from tcpwin.kernel import audit

    data, connection, host = case.data, case.connection, case.host(case.sender)
    if host is None or host.settings is None:
        return
    sizes = sizes_of(host, SETTING)
    if sizes is None:
        return
    samples = case.sockets(case.sender)
    busy_ns = max((sample.busy_ns or 0 for sample in samples), default=0)
    limited_ns = max((sample.sndbuf_limited_ns or 0 for sample in samples), default=0)
    if not busy_ns or limited_ns < case.settings["limited_ns"] or limited_ns < case.settings["share"] * busy_ns:
        return
    buffers = [sample.sndbuf_bytes for sample in samples if sample.sndbuf_bytes]
    if buffers and max(buffers) < AT_LIMIT * sizes[2]:
        return
    goodput_bps, rtt_ns = data.goodput_bps or 0.0, connection.path_rtt_ns or 0
    best_bps = best_goodput_bps(case)
    wanted_bps = max(best_bps, 2 * goodput_bps)
    if wanted_bps <= 0:
        return
    found = audit(host.settings, rtt_ns, wanted_bps, kernel=kernel_version(host))
    advice = next((each for each in found if each.setting == SETTING), None)
    if advice is None or advice.line is None:
        return
    yield case.finding(
        f"{case.the_sender}'s send buffer was full for {time_text(limited_ns)} ({share_text(limited_ns / busy_ns)} of "
        f"the time with data to send): {SETTING} allows at most {bytes_text(sizes[2])}",
        owner="host",
        side=case.sender,
        cost_ns=limited_ns,
        confidence="certain" if buffers else "likely",
        evidence=Evidence(
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "tcp_wmem_max_bytes": sizes[2],
                "largest_sndbuf_bytes": max(buffers, default=0),
                "sndbuf_limited_ns": limited_ns,
                "busy_ns": busy_ns,
                "path_rtt_ns": rtt_ns,
                "goodput_bps": goodput_bps,
                "best_goodput_bps": best_bps,
            },
            ruled_out="Not a slow application: the kernel counts this only while a writer waits for room.",
        ),
        remedy=Remedy(
            f"Raise the third value of {SETTING} on {case.the_sender}.",
            settings=larger_send_buffer(case, max(buffers, default=0)),
            side_effects=advice.side_effects,
        ),
    )


RULE = Rule(
    code="TW702",
    name="send-buffer-setting-too-small",
    title="tcp_wmem limits the send buffer, and the buffer limits the rate",
    severity=Severity.WARNING,
    scope="direction",
    limits=("send_buffer",),
    needs_hosts=True,
    judge=judge,
    page=__doc__,
    when=(("acked_bytes", ">=", 65_536), ("connection.path_rtt_ns", ">", 0)),
    thresholds={
        "share": Threshold(0.05, "share", "5 % of the time: less cannot be separated from other limits."),
        "limited_ns": Threshold(
            200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."
        ),
    },
    yields_to=("TW403",),
)
