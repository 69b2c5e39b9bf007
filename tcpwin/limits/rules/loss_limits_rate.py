"""## What it finds

Segments are lost repeatedly: each loss reduces the congestion window, and the transfer spends its time in recovery.

## Why it matters

With loss-based congestion control (Reno, CUBIC) the loss rate and the round trip determine the throughput, whatever the
link could carry. A larger receive window changes nothing.

## How it is judged

There were at least `recoveries` fast recoveries, `recovery_share` is at least `share`, and the cost is at least
`cost_ns`. The cost is `recovery_ns` without the time spent waiting for timers, which TW301 and TW302 report. The rule
is silent if half of the retransmissions are proved needless, if the receive window held the sender back for most of the
time, or if the path was full for most of the time and loss itself cost less than `cost_ns` or than `share` of the time:
a full queue drops segments, and BBR at the path's rate is almost always in recovery. The value `mathis_bps` is what a
Reno sender achieves at this loss rate on this path: MSS ÷ RTT · √(3/2) ÷ √p, where p is recoveries per data segment
(Mathis et al., CCR 27(3), 1997). It is a rough guide, not a measurement.

## When it is wrong

Loss is also how a path signals that it is full: a transfer that fills a bottleneck loses some segments by design. The
cost covers recovery only; the reduced window afterwards costs more. From the sender, a receiver that refuses segments
for lack of memory looks the same.

## What to do

Find where the path loses packets: interface error counters, radio links, a policer, a queue that is too small. Consider
BBR on the sender: it does not treat every loss as congestion. This advice is omitted if the sender already uses BBR,
according to `ss` or to how its flight changes (`sender_algorithm`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.analysis import Direction
from tcpwin.limits.algorithm import algorithms_of
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.doubled import copied_after_ns
from tcpwin.limits.evidence.loss import (
    busy_ns,
    culprit,
    memory_remedy,
    needless,
    pairs,
    pairs_shown,
    resent,
    round_trip_ns,
)
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.names import FIND_LOSS, find_loss
from tcpwin.limits.reading import span_of
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, rate_text, share_text, time_text

HALF = 0.5


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    window_ns = data.window_limited_ns + data.zero_window_ns
    cost_ns = _cost_ns(data)
    if cost_ns < case.settings["cost_ns"] or window_ns > HALF * busy_ns(case):
        return
    life_ns = case.connection.duration_ns
    if _is_the_paths(data, max(case.settings["cost_ns"], case.settings["share"] * life_ns), life_ns):
        return
    if copied_after_ns(case) is not None:
        return
    if needless(case) + data.spurious_retransmissions > HALF * data.retransmissions:
        return
    events = resent(case, "fast", "recovery", "lost_retransmission")
    start_ns, end_ns = span_of(events)
    guilty = culprit(case, events)
    share = data.recovery_ns / life_ns if life_ns else 0.0
    lost = data.resent_segments / data.data_segments
    mathis_bps = mathis_rate_bps(data.mss_bytes, round_trip_ns(case), data.recoveries / data.data_segments)
    yield case.finding(
        f"Loss slows {case.the_sender} to {rate_text(data.goodput_bps or 0)}: {share_text(lost, places=1)} of its "
        f"segments were sent again, its congestion window was cut {count_text(data.recoveries, 'time')}. "
        f"{time_text(data.recovery_ns)} ({share_text(share)} of the connection) went into recovery"
        f"{_afterwards(data)}. The segments were lost {guilty.where}.",
        owner=guilty.owner,
        limits=guilty.limits,
        side=case.receiver if guilty.owner == "host" else None,
        confidence=guilty.confidence,
        cost_ns=cost_ns + data.budget_after_loss_ns,
        evidence=Evidence(
            frames=pairs(events),
            start_ns=start_ns,
            end_ns=end_ns,
            values={
                "resent_segments": data.resent_segments,
                "data_segments": data.data_segments,
                "recoveries": data.recoveries,
                "recovery_ns": data.recovery_ns,
                "goodput_bps": round(data.goodput_bps or 0),
                "mathis_bps": round(mathis_bps),
            },
            ruled_out="Not reordering: no DSACK or other sign that retransmitted data had already arrived. "
            + guilty.ruled_out,
            frames_of=pairs_shown("first", events),
        ),
        remedy=_remedy(case, guilty.owner),
    )


def _cost_ns(data: Direction) -> int:
    """Return the time in recovery without timeouts and probes, at least the budget's share for fast recovery."""
    if not (data.rto_retransmissions or data.tail_loss_probes):
        return max(data.recovery_ns - data.budget_peer_silent_ns, 0)
    left_ns = data.recovery_ns - data.budget_timeout_ns - data.budget_tail_ns - data.budget_peer_silent_ns
    return min(max(left_ns, data.budget_fast_recovery_ns), data.recovery_ns)


def _is_the_paths(data: Direction, least_ns: float, life_ns: int) -> bool:
    """Whether the path was full for most of the time and loss itself cost too little to report."""
    own_ns = data.budget_fast_recovery_ns + data.budget_after_loss_ns
    return own_ns < least_ns and data.budget_path_ns > HALF * life_ns


def _afterwards(data: Direction) -> str:
    """Describe the time lost to the smaller window after recovery."""
    after_ns = data.budget_after_loss_ns
    return f", {time_text(after_ns)} more into the smaller window afterwards" if after_ns > data.recovery_ns else ""


def mathis_rate_bps(mss_bytes: int, rtt_ns: int, loss: float) -> float:
    """Return Reno's rate at a loss share in bit/s, MSS ÷ RTT · √(3/2) ÷ √p, or 0 if any input is 0."""
    if rtt_ns <= 0 or loss <= 0:
        return 0.0
    return float(mss_bytes * 8e9 / rtt_ns * (1.5 / loss) ** 0.5)


def _remedy(case: Case, owner: str) -> Remedy:
    if owner == "host":
        return memory_remedy(case)
    algorithm = algorithms_of(case.connection)[case.direction or ""]
    if algorithm is not None and algorithm.is_bbr:
        return Remedy(FIND_LOSS)
    return Remedy(
        find_loss(case.the_sender),
        settings=("sysctl -w net.core.default_qdisc=fq", "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
        side_effects="This changes new connections only. BBR may take more than its share of a bottleneck from "
        "loss-based senders.",
    )


RULE = Rule(
    code="TW307",
    name="loss-limits-rate",
    title="loss limits the rate",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("recovery_share", ">=", "{share}"), ("recoveries", ">=", "{recoveries}")),
    thresholds={
        "recoveries": Threshold(3, "count", "Slow start ends with a loss by design: one or two recoveries."),
        "share": Threshold(
            0.05, "share", "A transfer that fills an otherwise idle bottleneck spends less of its time in recovery."
        ),
        "cost_ns": Threshold(100_000_000, "ns", "People notice a delay of about a tenth of a second."),
    },
    yields_to=("TW211", "TW304", "TW308", "TW309"),
)
