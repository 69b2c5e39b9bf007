"""## What it finds

The SYN offered window scaling and the SYN/ACK did not accept it, although the same server does elsewhere in the
capture: a device on the path may have removed the option.

## Why it matters

Without the option in both SYNs windows are limited to 65,535 bytes (RFC 7323 §2.2). It is worse if a middlebox removes
the option from one packet only: one side scales and the other does not, and windows are misread by a factor of up to
16,384.

## How it is judged

The SYN carried the option, the SYN/ACK did not, and at least `elsewhere` connections to the same address and port have
it in both. Or the server's `ss` shows `wscale:` for the connection: its kernel believes that scaling was negotiated,
which proves that the option was removed.

## When it is wrong

A server with scaling off looks the same, and one address may represent several servers (load balancer). Linux answers
with a SYN cookie when its SYN queue is full; the option is then absent if the client has no timestamps. Without `ss`
the finding is `possible`, or `likely` if the SYN/ACK has other options and cannot be such a cookie.

## What to do

Capture on both sides of firewalls, load balancers and WAN accelerators, and compare the options of the SYN and SYN/ACK.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

if TYPE_CHECKING:
    from tcpwin.limits.connection import Connection

MOST = 10_000
"""Maximum number of connections without the option to examine."""


def judge(case: Case) -> Iterator[Finding]:
    analysis = case.analysis
    ids = sorted({id for id, _ in case.asked[0]})[:MOST]
    if not ids:
        return
    by_responder: dict[tuple[str, int], list[Connection]] = {}
    for id in ids:
        connection = analysis.connections[id]
        by_responder.setdefault((str(connection.b.address), connection.b.port), []).append(connection)
    taking = analysis.responders("direction", [("window_scale_state", "==", "known")])
    for responder, stripped in by_responder.items():
        sure = next((each for each in stripped if _kernel_scales(each)), None)
        elsewhere = taking.get(responder, 0)
        if sure is None and elsewhere < case.settings["elsewhere"]:
            continue
        yield _finding(case, sure or stripped[0], len(stripped), elsewhere, is_sure=sure is not None)


def _finding(case: Case, shown: Connection, count: int, elsewhere: int, *, is_sure: bool) -> Finding:
    judged = replace(case, subject=shown)
    answer = shown.b_to_a
    # A SYN cookie without timestamps keeps the MSS only.
    is_no_cookie = answer.syn_timestamps or answer.syn_sack_permitted
    proof = (
        "its kernel considers scaling negotiated: something on the path removed the option"
        if is_sure
        else f"{elsewhere} others to the same address and port have it in both: a box on the path may have removed it"
    )
    return judged.finding(
        f"The SYN/ACK of {shown.b} lacks the window scale that the SYN offered, in {count_text(count, 'connection')}: "
        f"{proof}",
        owner="network",
        confidence="certain" if is_sure else "likely" if is_no_cookie else "possible",
        evidence=Evidence(
            frames=(shown.first_frame,),
            start_ns=shown.start_ns,
            end_ns=shown.start_ns + (shown.handshake_rtt_ns or 0),
            values={"without_in_answer": count, "with_in_both": elsewhere},
            ruled_out=(
                "Not a server with scaling off: it accepts it elsewhere, unless several servers share the address."
            ),
        ),
        remedy=Remedy(
            "Capture on both sides of firewalls, load balancers and accelerators, and compare the options of the SYNs."
        ),
    )


def _kernel_scales(connection: Connection) -> bool:
    return any(claim.by == "b" and claim.side == "b" and claim.shift > 0 for claim in connection.scale_claims)


RULE = Rule(
    code="TW102",
    name="window-scale-stripped",
    title="the window scale option was lost between SYN and SYN/ACK",
    severity=Severity.WARNING,
    scope="capture",
    asks=(("direction", (("window_scale_disabled_by", "==", "b"), ("acked_bytes", ">", 0.0))),),
    limits=("receiver_window",),
    judge=judge,
    page=__doc__,
    thresholds={
        "elsewhere": Threshold(3, "count", "One or two may have reached another server behind the same address.")
    },
)
