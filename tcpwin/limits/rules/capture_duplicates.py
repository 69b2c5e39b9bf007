"""## What it finds

The capture contains the same packets twice.

## Why it matters

To most tools duplicates look like retransmissions and duplicate ACKs. tcpwin leaves them out of all counts; of each
pair, only the first copy counts.

## How it is judged

A packet is a duplicate if its headers, including the IP identification, equal those of a packet shortly before it.
Duplicates are at least `share` of all segments.

## When it is wrong

A network that really duplicates packets (a loop, a misconfigured bond) looks the same; there the copies have a
different TTL or arrive some time later.

## What to do

Capture on one interface, not on `any`, and mirror only one direction of each switch port. If captures from two points
were merged, so that nearly every packet appears twice, `tcpwin pair FILE` splits them and reports what was lost in
between.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import event_frames, share_of
from tcpwin.limits.evidence.doubled import pair_command
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import share_text

TWO_POINTS_SHARE = 0.3
"""Share of copies above which two captures were probably merged: there nearly every segment has a copy."""
REMEDY = Remedy(
    "Capture on one interface, not on `any`; or remove the copies.",
    settings=("editcap -d IN OUT",),
    side_effects="editcap compares whole packets: copies with another TTL stay.",
)


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    share = share_of(capture.capture_duplicates, capture.segments)
    if not capture.capture_duplicates or share < case.settings["share"]:
        return
    _, frames = event_frames(case, "capture_duplicates", "capture_duplicate")
    yield case.finding(
        f"{share_text(share)} of the segments ({capture.capture_duplicates:,} of {capture.segments:,}) were captured "
        "twice; copies are left out of all counts",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=frames,
            values={
                "capture_duplicates": capture.capture_duplicates,
                "segments": capture.segments,
                "share": share,
                "weakens": "none",
            },
            ruled_out="Not retransmissions: those have a new IP identification or timestamp.",
        ),
        remedy=_remedy(case) if share >= TWO_POINTS_SHARE else REMEDY,
    )


def _remedy(case: Case) -> Remedy:
    return Remedy(
        "If captures of two points were merged, split and pair them. Otherwise capture on one interface, not on `any`.",
        settings=(pair_command(case),),
    )


RULE = Rule(
    code="TW602",
    name="capture-duplicates",
    title="the capture holds packets twice",
    severity=Severity.INFO,
    scope="capture",
    counts=("capture_duplicates",),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(
            0.01, "share", "A capture on two interfaces doubles half of its packets, not one in a hundred."
        ),
    },
)
