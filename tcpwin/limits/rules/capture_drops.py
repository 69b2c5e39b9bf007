"""## What it finds

The capture lacks packets that were on the wire: the capturing interface reports drops, or data was acknowledged that
the capture does not contain.

## Why it matters

A packet lost only by the capture looks like one lost by the network. Findings on loss (TW3), and those that need the
bytes in flight (TW2, TW4), have lower confidence.

## How it is judged

The receiver acknowledged payload that is in no frame: at least `share` of all payload. Or the interface's drop counter
(pcapng's `isb_ifdrop`) is at least `share` of the packets.

## When it is wrong

Some packets may have taken another path around the capture point; then the capture lost nothing. The interface's
counter may include packets that a capture filter would have excluded.

## What to do

Give the capturing tool a larger buffer, keep headers only, and filter for the hosts in question.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import event_frames, payload_bytes, share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, share_text


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    drops, missed = capture.interface_drops or 0, capture.missed_bytes
    dropped_share = share_of(drops, drops + capture.packets)
    # Most captures are complete, so read the column of all connections only when bytes are missing.
    missed_share = share_of(missed, missed + payload_bytes(case)) if missed else 0.0
    reasons = []
    if drops and dropped_share >= case.settings["share"]:
        reasons.append(
            f"the interface reports {count_text(drops, 'dropped packet')} ({share_text(dropped_share, places=2)})"
        )
    if missed and missed_share >= case.settings["share"]:
        of_payload = f"{share_text(missed_share, places=2)} of the payload"
        reasons.append(f"{bytes_text(missed)} of acknowledged data is in no frame ({of_payload})")
    if not reasons:
        return
    _, frames = event_frames(case, "acked_unseen", "acked_unseen") if missed else (None, ())
    yield case.finding(
        f"The capture lacks packets: {'; '.join(reasons)}. Findings on loss and bytes in flight are less certain",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=frames,
            values={
                "interface_drops": drops,
                "missed_bytes": missed,
                "missed_share": missed_share,
                "weakens": "TW2, TW3, TW4",
            },
            ruled_out=(
                "Not loss on the network: what a receiver acknowledged had arrived."
                if missed
                else "Not loss on the network: the interface counted these packets."
            ),
        ),
        remedy=Remedy(
            "Capture again with a larger buffer, headers only, and a filter for these hosts.",
            settings=("tcpdump -B 65536 -s 128 -w FILE host ADDRESS",),
            side_effects="The buffer takes 64 MiB of kernel memory; payload beyond 128 bytes is not kept.",
        ),
    )


RULE = Rule(
    code="TW601",
    name="capture-drops",
    title="the capture lost packets",
    severity=Severity.WARNING,
    scope="capture",
    counts=("interface_drops", "missed_bytes"),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(
            0.001,
            "share",
            "One lost packet in a thousand begins to limit TCP's rate; fewer missing packets hide no loss that "
            "matters.",
        ),
    },
)
