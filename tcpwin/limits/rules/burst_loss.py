"""## What it finds

Many segments of one flight were lost together.

## Why it matters

An overflowing queue, or a policer that cuts a burst, drops runs of segments. Each must be retransmitted at the rate of
a window that has just been reduced. Without SACK that means one per round trip, which usually ends in a timeout.

## How it is judged

The rule looks only at directions with more than `others` retransmissions beyond the first of each recovery. It
separates fast recoveries by their first retransmission. A burst is a recovery that retransmitted at least `segments`
segments with neighbouring sequence numbers: they make up at least `density` of the bytes between the first and the last
of them. The cost is the time from the recovery's first to its last retransmission, plus one round trip for the ACK. If
the first lost segment had been outstanding for `grown` times the path's minimum round trip, a queue had built up before
the loss; otherwise the queue was small or a policer dropped the burst. If a timer took part in the repair, the finding
makes no claim about the queue.

## When it is wrong

A receiver that drops segments because it is out of memory produces the same pattern. The rule is silent when this is
likely (the receive window was nearly full at times, or the host's `nstat` shows drops). If the window scale is unknown,
so that a full window would not show, the finding is only `possible`. It is also only possible on a path that reorders,
because the receiver discards segments that arrive too late (PAWS, RFC 7323 §5). A short routing outage also drops runs
of segments.

## What to do

If a queue overflowed, pace the sender (`fq`) or use a queue that signals early (`fq_codel`, `cake`, ECN). If it was a
policer, ask for a shaper or set the sender's rate below the policed rate. Keep SACK on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.analysis import Event
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.loss import culprit, has_known_windows, pairs, reorders, resent, round_trip_ns
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity, of_many
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text

HALF_SPACE = 1 << 31
"""Half of the sequence numbers (RFC 9293 §3.4)."""


def judge(case: Case) -> Iterator[Finding]:
    recoveries: list[list[Event]] = []
    for event in resent(case, "fast", "recovery"):
        if event.cause == "fast":
            recoveries.append([])
        if recoveries:
            recoveries[-1].append(event)
    wanted, density = int(case.settings["segments"]), case.settings["density"]
    bursts = sorted((each for each in recoveries if _is_burst(each, wanted, density)), key=len, reverse=True)
    if not bursts:
        return
    worst = bursts[0]
    guilty = culprit(case, worst)
    if guilty.owner != "network" or guilty.confidence == "possible" or reorders(case):
        return
    cost_ns = sum(each[-1].time_ns - each[0].time_ns + round_trip_ns(case) for each in bursts)
    out_ns, least_ns = worst[0].age_ns or 0, case.connection.path_rtt_ns or 0
    times = "" if len(bursts) == 1 else f", {len(bursts)} times,"
    yield case.finding(
        f"{len(worst)} neighbouring segments of one flight were lost{times} {guilty.where}; repair took "
        f"{time_text(cost_ns)}{_shape(case, out_ns, least_ns)}",
        owner="network",
        confidence="likely" if has_known_windows(case.data) else "possible",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=pairs(worst),
            start_ns=worst[0].time_ns,
            end_ns=worst[-1].time_ns,
            values={
                "bursts": len(bursts),
                "largest_segments": len(worst),
                "out_before_loss_was_seen_ns": out_ns,
                "path_rtt_ns": least_ns,
            },
            ruled_out="Not single losses: the lost segments are neighbours. " + guilty.ruled_out,
            frames_of=of_many("largest", 1, len(bursts)),
            span_of=of_many("largest", 1, len(bursts)),
        ),
        remedy=Remedy(
            f"Pace {case.the_sender} with the fq queue, or use a queue at the bottleneck that signals before it is "
            "full (fq_codel, cake, ECN).",
            settings=("tc qdisc replace dev <interface> root fq",),
            side_effects="fq spreads a flight over the round trip: short responses end a little later.",
        ),
    )


def _is_burst(events: list[Event], wanted: int, density: float) -> bool:
    if len(events) < wanted:
        return False
    base = events[0].seq
    spans = sorted(((each.seq - base + HALF_SPACE) % (2 * HALF_SPACE), each.length) for each in events)
    for first, last in zip(spans, spans[wanted - 1 :], strict=False):
        width = last[0] + last[1] - first[0]
        lost = sum(length for at, length in spans if first[0] <= at <= last[0])
        if lost >= density * width:
            return True
    return False


def _shape(case: Case, out_ns: int, least_ns: int) -> str:
    if not (out_ns and least_ns) or case.data.tail_loss_probes or case.data.rto_retransmissions:
        return ""
    if out_ns >= case.settings["grown"] * least_ns:
        return f": a queue of {time_text(out_ns - least_ns)} overflowed"
    return ": the round trip had not grown, so a small queue or a policer dropped them"


RULE = Rule(
    code="TW304",
    name="burst-loss",
    title="many segments of one flight were lost",
    severity=Severity.WARNING,
    scope="direction",
    limits=("path_loss",),
    judge=judge,
    page=__doc__,
    when=(("recovery_retransmissions", ">=", "{others}"), ("recoveries", ">=", 1)),
    thresholds={
        "segments": Threshold(10, "count", "Slow start loses fewer when it first reaches the path's limit."),
        "density": Threshold(0.3, "share", "Random loss of a few percent never hits a third of neighbouring segments."),
        "others": Threshold(
            9, "count", "Retransmissions beyond the first of each recovery, in total; one less than segments."
        ),
        "grown": Threshold(1.5, "times", "A queue of half the round trip is more than jitter on most paths."),
    },
    yields_to=("TW308",),
)
