"""## What it finds

A RST that a device on the path sent in the name of one of the hosts.

## Why it matters

Firewalls, intrusion prevention, NATs and load balancers end connections by sending RSTs with the peer's address. Both
applications then report "connection reset by peer", and each looks for the fault at the other.

## How it is judged

The RST's TTL or hop limit differs by two or more from that of all other packets of the host in whose name it was sent,
or it acknowledges data before that host's answer can have arrived: sooner than three quarters of the round trip that
the handshake took. If it answers the first packet after a silence of 30 s or more, and the host never sent a FIN, the
device had forgotten the idle connection (TW508).

## When it is wrong

A host behind several paths of different lengths, or one whose stack sends RSTs with another initial TTL (64 and 255
are both common), looks the same. Compare the RST that the host sends for a closed port.

## What to do

Find the device: the RST's initial TTL (64, 128 or 255) less its TTL is the number of routers between it and the
capture point. Capture at both ends: the host in whose name it was sent has no such packet.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.resets import ResetOrigin, reset_origin
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.roles import other_side
from tcpwin.limits.rule import Rule
from tcpwin.units import time_text

INITIAL_TTLS = (64, 128, 255)
"""Initial TTLs in use."""


def judge(case: Case) -> Iterator[Finding]:
    found = reset_origin(case)
    if found is None or not found.is_foreign or found.is_after_idle:
        return
    name, other = case.the(found.side), case.the(other_side(found.side))
    yield case.finding(
        f"A device on the path reset the connection in the name of {name}: {_signs(found, name)}",
        owner="network",
        side=None,
        confidence="likely",
        evidence=Evidence(
            frames=tuple(frame for frame in (found.frame, found.answered_frame) if frame),
            start_ns=found.time_ns,
            values={
                "ttl": found.ttl,
                "usual_ttl": found.usual_ttl,
                "ip_id": found.ip_id,
                "answer_ns": found.answer_ns if found.answer_ns is not None else -1,
                "round_trip_ns": found.round_trip_ns,
            },
            ruled_out=f"Not {name}: its own packets differ.",
        ),
        remedy=Remedy(
            f"Find the device that sends RSTs between {name} and {other} (firewall, intrusion prevention, NAT, load "
            f"balancer){_distance(found)}, and ask it why: its log names the rule or the time-out."
        ),
    )


def _signs(found: ResetOrigin, name: str) -> str:
    signs = []
    if found.has_other_ttl:
        signs.append(f"the RST has TTL {found.ttl} where all other packets of {name} have {found.usual_ttl}")
    if found.ip_id == 0 and found.has_other_ttl:
        signs.append("its IP ID is 0")
    if found.is_too_soon and found.answer_ns is not None:
        signs.append(
            f"it came {time_text(found.answer_ns)} after the packet that it answers, sooner than the round trip of "
            f"{time_text(found.round_trip_ns)}"
        )
    return ", and ".join(signs)


def _distance(found: ResetOrigin) -> str:
    if not found.has_other_ttl:
        return ""
    initial = next((each for each in INITIAL_TTLS if each >= found.ttl), 255)
    return f", {initial - found.ttl} routers from the capture point if its initial TTL was {initial}"


RULE = Rule(
    code="TW507",
    name="reset-by-device",
    title="a device on the path reset the connection",
    severity=Severity.ERROR,
    scope="connection",
    limits=("middlebox",),
    judge=judge,
    page=__doc__,
    when=(("close", "==", "reset"),),
)
