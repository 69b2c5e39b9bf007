"""## What it finds

A host's clock, judged by its snapshots, does not match the capture's clock, or the offset between them is uncertain.

## Why it matters

Socket samples are compared with the packets of the same time. If the times do not match, findings that need both (TW2,
TW4) have lower confidence.

## How it is judged

Each sample bounds the clock offset by the bytes that had been sent, received and acknowledged. A warning means that no
offset fits 90 % of the samples, or that the bounds leave more than `uncertainty_ns`. An information finding means that
the clocks differ by at least `offset_ns`, which tcpwin corrects.

## When it is wrong

Snapshots from another run with the same addresses and ports contradict the packets in the same way. So does a capture
that lost packets (TW601).

## What to do

Synchronise both machines with NTP or PTP, or take the capture and the snapshots on one host. If you know the offset,
pass it instead of having it estimated (`clock_offset_ns`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import name_of, side_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text

if TYPE_CHECKING:
    from tcpwin.hosts import ClockOffset, Host


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        clock = host.clock
        if clock is None or not clock.samples:
            continue
        uncertainty_ns = clock.uncertainty_ns or 0
        name = name_of(host)
        if clock.method == "assumed":
            yield _finding(
                case,
                host,
                clock,
                f"The clock of {name} cannot be matched to the capture's: no offset fits more than {clock.agreeing:,} "
                f"of {clock.samples:,} samples. They are used without correction",
                Severity.WARNING,
            )
        elif clock.method == "estimated" and uncertainty_ns >= case.settings["uncertainty_ns"]:
            yield _finding(
                case,
                host,
                clock,
                f"The clock of {name} is {time_text(abs(clock.offset_ns))} off the capture's, ± "
                f"{time_text(uncertainty_ns)}: packets and samples of one moment cannot be compared well",
                Severity.WARNING,
            )
        elif clock.method == "estimated" and abs(clock.offset_ns) >= case.settings["offset_ns"]:
            way = "behind" if clock.offset_ns > 0 else "ahead of"
            yield _finding(
                case,
                host,
                clock,
                f"The clock of {name} is {time_text(abs(clock.offset_ns))} {way} the capture's; its samples were "
                "shifted by that",
                Severity.INFO,
            )


def _finding(case: Case, host: Host, clock: ClockOffset, text: str, severity: Severity) -> Finding:
    return case.finding(
        text,
        severity=severity,
        owner="nobody",
        side=side_of(host),
        confidence="certain",
        evidence=Evidence(
            values={
                "host": host.label,
                "offset_ns": clock.offset_ns,
                "uncertainty_ns": "none" if clock.uncertainty_ns is None else clock.uncertainty_ns,
                "samples": clock.samples,
                "agreeing": clock.agreeing,
                "weakens": "none" if severity == Severity.INFO else "TW2, TW4",
            }
        ),
        remedy=Remedy("Synchronise both machines with NTP or PTP, or take capture and snapshots on one host."),
    )


RULE = Rule(
    code="TW608",
    name="clocks-disagree",
    title="a host's clock does not match the capture's",
    severity=Severity.WARNING,
    scope="capture",
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "uncertainty_ns": Threshold(
            200_000_000, "ns", "A usual sampling interval: beyond it, one sample may be mistaken for the next."
        ),
        "offset_ns": Threshold(1_000_000_000, "ns", "Clocks under NTP differ by milliseconds, not by seconds."),
    },
)
