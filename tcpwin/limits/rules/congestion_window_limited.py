"""## What it finds

The transfer ended before the congestion window had opened: slow start set its pace.

## Why it matters

A new connection does not know its path. It begins with ten segments and doubles each round trip (RFC 5681 §3.1). A
transfer that ends during this phase depends only on the round trip, whatever the link and the receive window could
carry.

## How it is judged

`slow_start_ns`, the round trips whose flight was at least a third larger than the one before, is at least `share` of
the time from the first to the last data, and there were at least `round_trips` of them. Nothing was retransmitted, the
receive window never held the sender back, and there was no pause. This is TCP working as designed, so the finding is
for information only. It gives no cost, because the path's rate is unknown.

## When it is wrong

An application that writes at an increasing rate looks like slow start.

## What to do

Reuse connections instead of opening new ones. Move the ends closer together (a cache, a proxy at the edge). On paths
known to carry it, a larger `initcwnd` saves a round trip for each doubling.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    data, rtt_ns = case.data, case.connection.path_rtt_ns
    if data.first_data_ns is None or data.last_data_ns is None or not rtt_ns:
        return
    lasted_ns = data.last_data_ns - data.first_data_ns
    trips = data.slow_start_ns // rtt_ns
    if lasted_ns <= 0 or data.slow_start_ns < case.settings["share"] * lasted_ns:
        return
    if trips < case.settings["round_trips"] or data.messages > 1:
        return
    yield case.finding(
        f"Slow start set {case.the_sender}'s pace: {bytes_text(data.unique_bytes)} took {time_text(lasted_ns)}, and "
        f"the congestion window was still opening for {count_text(trips, 'round trip')}",
        owner="nobody",
        confidence="likely",
        evidence=Evidence(
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "slow_start_ns": data.slow_start_ns,
                "transfer_ns": lasted_ns,
                "path_rtt_ns": rtt_ns,
                "initial_flight_bytes": data.initial_flight_bytes or 0,
                "flight_max_bytes": data.flight_max_bytes or 0,
                "receive_window_max_bytes": data.receive_window_max_bytes or 0,
            },
            ruled_out="Not loss or the receive window: nothing was retransmitted, and the window always had space.",
        ),
        remedy=Remedy(
            f"Reuse the connection for further transfers. If the path can take it, raise {case.the_sender}'s initial "
            "window.",
            settings=("ip route change <route> initcwnd 20",),
            side_effects=(
                "Affects only new connections over the route. A longer first burst may be lost on a slow link."
            ),
        ),
    )


RULE = Rule(
    code="TW409",
    name="congestion-window-limited",
    title="the transfer ended in slow start",
    severity=Severity.INFO,
    scope="direction",
    limits=("congestion_control",),
    judge=judge,
    page=__doc__,
    when=(
        ("slow_start_ns", ">=", "{slow_start_ns}"),
        ("retransmissions", "==", 0),
        ("window_limited_ns", "==", 0),
        ("idle_gaps", "==", 0),
    ),
    thresholds={
        "share": Threshold(0.8, "share", "Below it, the time after slow start mattered as much."),
        "round_trips": Threshold(2, "count", "A transfer of one or two flights is short on any path."),
        "slow_start_ns": Threshold(100_000_000, "ns", "People notice a delay of about a tenth of a second."),
    },
)
