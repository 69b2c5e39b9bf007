"""## What it finds

After a long silence, the first packet was answered by a RST, or by nothing: a device on the path had forgotten the
connection.

## Why it matters

Load balancers, NATs and firewalls keep a table of connections and drop entries that were idle for a while: 350 s on
some load balancers, 60 s or less on others, five minutes to an hour on NATs. The next request then fails although both
hosts are well, and applications with connection pools see it as errors that come and go.

## How it is judged

Neither side sent anything for `idle_ns` or more, neither had sent a FIN, and the first packet after that was answered
by a RST within `answer_ns`; or it was never answered, although it was retransmitted at least three times, while the
same hosts used another connection. The longest silence that the connection survived bounds the time-out from below.

## When it is wrong

A host that restarted in the meantime, or whose application was killed, also answers with a RST. A host that closes idle
connections sends a FIN, which would have been captured.

## What to do

Send keep-alives at intervals shorter than the time-out, at either end, or raise the device's time-out. In connection
pools, close connections that were idle for longer, or retry a request that fails at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.resets import ResetOrigin, reset_origin
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.roles import other_side
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text

SECOND_NS = 1_000_000_000


def judge(case: Case) -> Iterator[Finding]:
    found = reset_origin(case)
    if found is None or not found.is_after_idle or found.answer_ns is None:
        return
    if found.idle_ns < case.settings["idle_ns"] or found.answer_ns > case.settings["answer_ns"]:
        return
    asker = case.the(other_side(found.side))
    survived = ""
    if found.earlier_idle_ns >= SECOND_NS:
        bounds = f"{time_text(found.earlier_idle_ns)} and {time_text(found.idle_ns)}"
        survived = f". Its idle time-out lies between {bounds}: a shorter silence did no harm"
    sooner = ", sooner than the server can answer" if found.is_too_soon and found.side == "b" else ""
    yield case.finding(
        f"The connection was idle for {time_text(found.idle_ns)}; then a RST answered the next packet of {asker} after "
        f"{time_text(found.answer_ns)}{sooner}: a device on the path had forgotten the connection{survived}",
        owner="network",
        side=None,
        confidence="likely",
        evidence=Evidence(
            frames=(found.answered_frame, found.frame),
            start_ns=found.time_ns - found.answer_ns - found.idle_ns,
            end_ns=found.time_ns,
            values={
                "idle_ns": found.idle_ns,
                "longest_survived_ns": found.earlier_idle_ns,
                "answer_ns": found.answer_ns,
                "round_trip_ns": found.round_trip_ns,
            },
            ruled_out=f"Not a close by {case.the(found.side)}: it sent no FIN.",
        ),
        remedy=keep_alive_remedy(asker, found),
    )


def keep_alive_remedy(asker: str, found: ResetOrigin) -> Remedy:
    """Return the advice to keep an idle connection alive."""
    bound_s = max(found.idle_ns // (2 * SECOND_NS), 1)
    survived_s = found.earlier_idle_ns // SECOND_NS
    interval_s = max(min(bound_s, max(survived_s, bound_s // 4)), 1)
    return Remedy(
        f"Send keep-alives well within {time_text(found.idle_ns)}, for instance every {interval_s} s (socket options "
        f"SO_KEEPALIVE and TCP_KEEPIDLE on {asker}), or raise the idle time-out of the load balancer, NAT or firewall. "
        "Or let connection pools close what is idle before the device forgets it.",
        settings=(f"sysctl -w net.ipv4.tcp_keepalive_time={interval_s}",),
        side_effects="The sysctl has an effect only on sockets with SO_KEEPALIVE.",
    )


RULE = Rule(
    code="TW508",
    name="idle-timeout",
    title="a device on the path forgot an idle connection",
    severity=Severity.ERROR,
    scope="connection",
    limits=("middlebox",),
    judge=judge,
    page=__doc__,
    when=(("close", "==", "reset"), ("duration_ns", ">=", "{idle_ns}")),
    thresholds={
        "idle_ns": Threshold(30e9, "ns", "The shortest common idle time-outs of load balancers are 30 to 60 s."),
        "answer_ns": Threshold(3e9, "ns", "A RST that takes longer answers something else."),
    },
)
