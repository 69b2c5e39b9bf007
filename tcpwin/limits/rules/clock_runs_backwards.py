"""## What it finds

Packets in the capture are not in time order.

## Why it matters

Round trips, stalls and rates are computed from timestamps. If packets were merely written late (several queues, several
files), tcpwin recognises it. If the clock was set back, the times around that point are wrong: findings on loss and
reordering (TW3), and all time costs, have lower confidence there.

## How it is judged

At least `share` of all packets either have an earlier timestamp than the packet before them, or were written late
although their timestamps are in order.

## When it is wrong

Files that were concatenated step back once at each seam; this is harmless for connections within each file.

## What to do

Sort the packets by time, and capture with a single clock: one interface, one queue, and either hardware or software
timestamps, but not both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import event_frames, share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    backwards, packets = capture.time_backwards, capture.packets
    share = share_of(backwards, packets)
    if not backwards or share < case.settings["share"]:
        return
    late = _late_segments(case)
    _, frames = event_frames(case, "capture_reordered", "capture_reordered") if late else (None, ())
    yield case.finding(
        f"{count_text(backwards, 'packet')} of {packets:,} ({share_text(share, places=2)}) "
        f"{'has' if backwards == 1 else 'have'} an earlier time than the packet before: times there are less certain",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=frames,
            values={
                "time_backwards": backwards,
                "capture_reordered": late,
                "packets": packets,
                "share": share,
                "weakens": "TW3",
            },
            ruled_out="Not reordering on the network: packets that arrive out of order still have rising times.",
        ),
        remedy=Remedy(
            "Sort the packets by time, and capture with one clock and one queue.",
            settings=("reordercap IN OUT",),
            side_effects="If the clock was set back, sorting mixes earlier and later packets.",
        ),
    )


def _late_segments(case: Case) -> int:
    connections = case.analysis.connections
    return sum(int(connections.column(f"{way}.capture_reordered").sum()) for way in ("a_to_b", "b_to_a"))


RULE = Rule(
    code="TW606",
    name="clock-runs-backwards",
    title="times in the capture run backwards",
    severity=Severity.INFO,
    scope="capture",
    counts=("time_backwards",),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(0.001, "share", "Fewer than one packet in a thousand hardly affect any measured time."),
    },
)
