"""## What it finds

The sender's socket buffer was too small: the application wanted to write more, and TCP could have sent more.

## Why it matters

Sent data stays in the send buffer until it is acknowledged. A buffer below the bandwidth-delay product limits the rate
to buffer ÷ round trip, like a small receive window, and nothing on the wire shows it.

## How it is judged

From the kernel only: `sndbuf_limited` in `ss -ti` is the time in which the queue was empty, neither window was full and
the application waited for space (Linux chronographs, commit 05b055e89121). It is at least `cost_ns` and at least
`share` of `busy`, in a transfer of at least `bytes`. Without samples of the sender's socket nothing is reported:
packets alone cannot distinguish this from a slow link.

## When it is wrong

The samples end before the connection does; time after the last one is not counted.

## What to do

Raise the third value of `net.ipv4.tcp_wmem` on the sender. If the application sets SO_SNDBUF, remove that call: an
explicitly set buffer does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.send_buffer import larger_send_buffer
from tcpwin.limits.evidence.sockets import LARGEST, grown
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    samples = case.sockets(case.sender)
    began = case.connection.initiator_known
    limited_ns = grown(samples, "sndbuf_limited_ns", since_start=began)
    busy_ns = grown(samples, "busy_ns", since_start=began)
    if not busy_ns or limited_ns < case.settings["cost_ns"] or limited_ns < case.settings["share"] * busy_ns:
        return
    buffer_bytes = min(max((sample.sndbuf_bytes or 0 for sample in samples), default=0), LARGEST)
    size = f", {bytes_text(buffer_bytes)} at most," if buffer_bytes else ""
    yield case.finding(
        f"{case.the_sender}'s send buffer{size} was too small for {time_text(limited_ns)} "
        f"({share_text(limited_ns / busy_ns)} of the time with data to send): its application waited for space",
        owner="host",
        side=case.sender,
        confidence="certain",
        cost_ns=limited_ns,
        evidence=Evidence(
            values={
                "sndbuf_limited_ns": limited_ns,
                "busy_ns": busy_ns,
                "sndbuf_bytes": buffer_bytes,
                "rwnd_limited_ns": grown(samples, "rwnd_limited_ns", since_start=began),
                "flight_max_bytes": case.data.flight_max_bytes or 0,
            },
            ruled_out="Not the receive or congestion window: the kernel counts this time separately.",
        ),
        remedy=_remedy(case, buffer_bytes),
    )


def _remedy(case: Case, buffer_bytes: int) -> Remedy:
    return Remedy(
        f"Let {case.the_sender}'s send buffer grow, and do not set SO_SNDBUF in its application.",
        settings=larger_send_buffer(case, buffer_bytes),
        side_effects=("Each connection may then use that much memory, and data waits longer in a larger buffer."),
    )


RULE = Rule(
    code="TW403",
    name="send-buffer-limited",
    title="the send buffer was too small",
    severity=Severity.WARNING,
    scope="direction",
    limits=("send_buffer",),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    when=(("unique_bytes", ">=", "{bytes}"),),
    thresholds={
        "cost_ns": Threshold(100_000_000, "ns", "People notice a delay of about a tenth of a second."),
        "share": Threshold(0.05, "share", "Less than 5 % of the busy time does not limit a transfer."),
        "bytes": Threshold(20_000, "bytes", "Even Linux's smallest default send buffer holds this much."),
    },
)
