"""## What it finds

The sender's congestion window was reduced after pauses, and `net.ipv4.tcp_slow_start_after_idle` is on at its host.

## Why it matters

After a pause Linux halves the congestion window for every retransmission timeout that passed, down to ten segments
(`tcp_cwnd_restart`); the next data needs several round trips to ramp up again. TW401 reports the cost.

## How it is judged

At least `restarts` idle restarts were seen in the direction, and the setting of the sender's host is 1. BBR ignores the
setting, so senders with BBR are not judged.

## When it is wrong

The setting belongs to a network namespace: the host's value says nothing about a container.

## What to do

Where bursts after pauses matter, switch it off inside the sender's namespace.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FRAMES
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

SETTING = "net.ipv4.tcp_slow_start_after_idle"


def judge(case: Case) -> Iterator[Finding]:
    host, data = case.host(case.sender), case.data
    if host is None or host.settings is None or host.settings.number(SETTING) != 1:
        return
    if any((sample.congestion_control or "").startswith("bbr") for sample in case.sockets(case.sender)[-1:]):
        return
    restarts = [event.frame for event in case.events("idle_restart", side=case.sender)]
    yield case.finding(
        f"{SETTING} is on at {case.the_sender}: after {count_text(data.idle_restarts, 'pause')} it restarted with a "
        f"smaller congestion window, {time_text(data.idle_restart_cost_ns)} total (see TW401)",
        owner="host",
        side=case.sender,
        confidence="certain",
        evidence=Evidence(
            frames=tuple(restarts[:FRAMES]),
            values={
                SETTING: 1,
                "idle_restarts": data.idle_restarts,
                "idle_restart_cost_ns": data.idle_restart_cost_ns,
            },
        ),
        remedy=Remedy(
            f"Switch it off on {case.the_sender}; for a container, in its own network namespace.",
            settings=(f"sysctl -w {SETTING}=0",),
            side_effects="After a pause the whole previous window leaves at once, into a path that may have changed.",
        ),
    )


RULE = Rule(
    code="TW705",
    name="slow-start-after-idle-on",
    title="idle restarts, with tcp_slow_start_after_idle on",
    severity=Severity.INFO,
    scope="direction",
    limits=("idle_restart",),
    needs_hosts=True,
    judge=judge,
    page=__doc__,
    when=(("idle_restarts", ">=", "{restarts}"),),
    thresholds={
        "restarts": Threshold(1, "count", "One restart shows that the setting has an effect; TW401 reports the cost.")
    },
)
