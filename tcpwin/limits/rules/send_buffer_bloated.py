"""## What it finds

The sender's kernel holds far more data than it can send soon: each byte waits for seconds in the send buffer.

## Why it matters

Data that an application writes now leaves only after everything queued before it. A bulk transfer does not care. A
connection that also carries something urgent (a proxy, HTTP/2, video, a game, remote control) does: it responds seconds
late, on an idle network.

## How it is judged

In `ss -ti` samples of the sender, `notsent` ÷ the connection's rate is the time that a byte waits. Its median is at
least `delay_ns` and at least `round_trips` times the round trip, in a transfer of at least `bytes`. This does not slow
a bulk transfer, so no cost is given.

## When it is wrong

A bulk transfer fills its buffer by design. A strongly varying rate makes the median imprecise.

## What to do

Set TCP_NOTSENT_LOWAT on the socket, or `net.ipv4.tcp_notsent_lowat`: the application is asked to write only when less
than that is unsent, so it decides as late as possible what to send next.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import round_trip_ns
from tcpwin.limits.evidence.sockets import LARGEST
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, rate_text, time_text

SETTING = "net.ipv4.tcp_notsent_lowat"
UNSET = 1 << 31
"""Values from here on mean no limit; the default is 4294967295."""
LOWAT_BYTES = 131_072
FEWEST_SAMPLES = 5


def judge(case: Case) -> Iterator[Finding]:
    if not case.data.goodput_bps:
        return
    samples = [each for each in case.sockets(case.sender) if each.state == "ESTAB" and each.count("busy_ns")]
    if len(samples) < FEWEST_SAMPLES:
        return
    unsent = sorted(min(each.count("notsent_bytes") or 0, LARGEST) for each in samples)
    median_bytes = unsent[len(unsent) // 2]
    delay_ns = round(median_bytes * 8e9 / case.data.goodput_bps)
    rtt_ns = round_trip_ns(case)
    if delay_ns < max(case.settings["delay_ns"], case.settings["round_trips"] * rtt_ns):
        return
    host = case.host(case.sender)
    setting = host.settings.number(SETTING) if host is not None and host.settings is not None else None
    if setting is not None and setting < UNSET:
        return
    yield case.finding(
        f"{case.the_sender}'s data waits {time_text(delay_ns)} in the send buffer before it leaves: "
        f"{bytes_text(median_bytes)} unsent at {rate_text(case.data.goodput_bps)}. Bulk data does not suffer",
        owner="host",
        side=case.sender,
        confidence="certain",
        evidence=Evidence(
            values={
                "notsent_median_bytes": median_bytes,
                "notsent_max_bytes": unsent[-1],
                "samples": len(samples),
                "goodput_bps": round(case.data.goodput_bps),
                "delay_ns": delay_ns,
                "rtt_ns": rtt_ns,
            },
            ruled_out="Not a queue on the path: these bytes had not left the kernel.",
        ),
        remedy=Remedy(
            f"If the connection carries more than bulk data, limit the unsent data on {case.the_sender}.",
            settings=(f"sysctl -w {SETTING}={LOWAT_BYTES}",),
            side_effects="The application is woken more often and must wait until the socket is writable.",
        ),
    )


RULE = Rule(
    code="TW404",
    name="send-buffer-bloated",
    title="data waited for seconds in the send buffer",
    severity=Severity.INFO,
    scope="direction",
    needs_hosts=True,
    judge=judge,
    page=__doc__,
    when=(("unique_bytes", ">=", "{bytes}"),),
    thresholds={
        "delay_ns": Threshold(2_000_000_000, "ns", "Two seconds: longer than a person waits for a response."),
        "round_trips": Threshold(4, "times", "One or two round trips of unsent data keep a sender busy."),
        "bytes": Threshold(100_000, "bytes", "A smaller transfer does not fill a send buffer."),
    },
)
