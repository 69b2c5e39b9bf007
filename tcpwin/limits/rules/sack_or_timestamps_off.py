"""## What it finds

Selective acknowledgments (`net.ipv4.tcp_sack`) or timestamps (`net.ipv4.tcp_timestamps`) are switched off on a host.

## Why it matters

Without SACK a sender learns of one loss per round trip: several losses in one window take as many round trips, or a
timeout (RFC 6675). Without timestamps round trips are measured less often, and old segments cannot be distinguished
from new ones when sequence numbers wrap on a fast path (RFC 7323 §5).

## How it is judged

From the host's settings, unless its captured SYNs offer the option anyway. SACK off is a warning if the host's
connections had at least `retransmissions`; everything else is for information.

## When it is wrong

The setting was changed after the connections were opened, or belongs to another network namespace.

## What to do

Switch both on, which is the default. Advice to switch them off is older than most networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.hosts import connections_of, name_of, side_of, syns_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

if TYPE_CHECKING:
    from tcpwin.hosts import Host

SACK, TIMESTAMPS = "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"


def judge(case: Case) -> Iterator[Finding]:
    for host in case.analysis.hosts:
        syns = list(syns_of(case, host))
        off = []
        if host.settings is not None and host.settings.number(SACK) == 0:
            off += [SACK] if not any(syn.syn_sack_permitted for syn in syns) else []
        if host.settings is not None and host.settings.number(TIMESTAMPS) == 0:
            off += [TIMESTAMPS] if not any(syn.syn_timestamps for syn in syns) else []
        if not off:
            continue
        lost = _retransmissions(case, host)
        is_felt = SACK in off and lost >= case.settings["retransmissions"]
        words = " and ".join({SACK: "SACK", TIMESTAMPS: "timestamps"}[name] for name in off)
        again = (
            f": {count_text(lost, 'segment')} sent again, and without SACK only one loss per round trip is repaired"
            if is_felt
            else ""
        )
        yield case.finding(
            f"{words[0].upper()}{words[1:]} {'are' if TIMESTAMPS in off else 'is'} off on {name_of(host)}{again}",
            severity=Severity.WARNING if is_felt else None,
            owner="host" if is_felt else "nobody",
            side=side_of(host),
            confidence="certain" if syns else "likely",
            evidence=Evidence(
                values={
                    **dict.fromkeys(off, 0),
                    "host": host.label,
                    "syns_without_option": len(syns),
                    "retransmissions": lost,
                },
                ruled_out="Not a middlebox that strips the option: the host itself does not send it.",
            ),
            remedy=Remedy(
                f"Switch it on at {name_of(host)}.",
                settings=tuple(f"sysctl -w {name}=1" for name in off),
                side_effects="Timestamps take 12 bytes per segment. Open connections keep what they negotiated."
                if TIMESTAMPS in off
                else "Open connections keep what they negotiated.",
            ),
        )


def _retransmissions(case: Case, host: Host) -> int:
    return sum(each.a_to_b.resent_segments + each.b_to_a.resent_segments for each, _ in connections_of(case, host))


RULE = Rule(
    code="TW704",
    name="sack-or-timestamps-off",
    title="SACK or timestamps are switched off on a host",
    severity=Severity.INFO,
    scope="capture",
    judge=judge,
    page=__doc__,
    needs_hosts=True,
    thresholds={
        "retransmissions": Threshold(
            3, "count", "SACK helps from the second loss in a window on; one or two losses prove little."
        ),
    },
)
