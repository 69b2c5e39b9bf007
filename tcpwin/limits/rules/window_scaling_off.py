"""## What it finds

Window scaling is switched off on a host: `net.ipv4.tcp_window_scaling` is 0.

## Why it matters

Without scaling no window exceeds 65,535 bytes in either direction (RFC 7323 §1.1): over 100 ms that is 5.2 Mbit/s per
connection, whatever the path could carry.

## How it is judged

From the host's settings, unless its captured SYNs offer scaling anyway or the longest round trip of its connections is
below `rtt_ns`.

## When it is wrong

The setting was changed after the connections were opened, or belongs to another network namespace.

## What to do

Switch it on. It affects new connections only.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import longest_rtt_ns, name_of, side_of, syns_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import rate_text, time_text

SETTING = "net.ipv4.tcp_window_scaling"
MAX_FIELD = 65_535


def judge(case: Case) -> Iterator[Finding]:
    from tcpwin.kernel import window_rate_bps

    for host in case.analysis.hosts:
        if host.settings is None or host.settings.number(SETTING) != 0:
            continue
        offers = [syn.syn_window_scale is not None for syn in syns_of(case, host)]
        if any(offers):
            continue
        rtt_ns = longest_rtt_ns(case, host)
        if rtt_ns is not None and rtt_ns < case.settings["rtt_ns"]:
            continue
        ceiling = None if rtt_ns is None else float(window_rate_bps(MAX_FIELD, rtt_ns))
        over = "" if ceiling is None else f": {rate_text(ceiling)} at most over {time_text(rtt_ns or 0)}"
        yield case.finding(
            f"Window scaling is off on {name_of(host)}: no window exceeds 65,535 bytes{over}",
            owner="host",
            side=side_of(host),
            confidence="certain" if offers else "likely",
            evidence=Evidence(
                values={
                    SETTING: 0,
                    "host": host.label,
                    "syns_without_scale": len(offers),
                    **({} if rtt_ns is None or ceiling is None else {"path_rtt_ns": rtt_ns, "ceiling_bps": ceiling}),
                },
                ruled_out="Not a middlebox that strips the option: the host itself does not send it.",
            ),
            remedy=Remedy(
                f"Switch window scaling on at {name_of(host)}.",
                settings=(f"sysctl -w {SETTING}=1",),
                side_effects="The shift is fixed in the SYNs: open connections keep theirs.",
            ),
        )


RULE = Rule(
    code="TW703",
    name="window-scaling-off",
    title="window scaling is switched off on a host",
    severity=Severity.WARNING,
    scope="capture",
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "rtt_ns": Threshold(
            500_000,
            "ns",
            "Below half a millisecond an unscaled window carries more than 1 Gbit/s and is hardly a limit.",
        ),
    },
)
