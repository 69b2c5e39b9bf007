"""## What it finds

The capture contains segments larger than any packet on the wire: the network card splits them later (TSO), or the host
merged them before the capture (GRO, LRO).

## Why it matters

Byte counts are right, packet counts are not. Everything that counts packets has lower confidence: duplicate ACKs, small
segments, stretch ACKs, the initial window in segments, and the time between packets (TW3, TW4).

## How it is judged

Segments longer than the MSS are at least `share` of all segments, and the largest is at least `times` the MSS. Segments
only slightly longer come from a sender that received a different MSS than the capture shows.

## When it is wrong

If a middlebox reduced the MSS to less than two thirds between one host and the capture point, full segments look
merged.

## What to do

Nothing, for judging windows and rates. To see individual packets, switch offload off on the capturing host, or capture
on another machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FRAMES, share_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import share_text


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    share = share_of(capture.super_segments, capture.segments)
    if not capture.super_segments or share < case.settings["share"]:
        return
    id, direction, largest, mss = _largest(case)
    if largest < case.settings["times"] * mss:
        return
    yield case.finding(
        f"Captured where offload changes segments: {share_text(share)} of the segments ({capture.super_segments:,} of "
        f"{capture.segments:,}) are longer than the MSS, up to {largest:,} bytes. Rates and windows are right; "
        "findings that count packets are less certain",
        owner="nobody",
        confidence="certain",
        evidence=Evidence(
            frames=_frames(case, id, direction, mss),
            values={
                "super_segments": capture.super_segments,
                "segments": capture.segments,
                "max_payload_bytes": largest,
                "mss_bytes": mss,
                "weakens": "TW3, TW4",
            },
            ruled_out=_jumbo_frames(case, id),
        ),
        remedy=Remedy(
            "To see the packets as on the wire, switch offload off on the capturing host.",
            settings=("ethtool -K eth0 tso off gso off gro off lro off",),
            side_effects="More CPU load, which may limit the rate: use it only while capturing.",
        ),
    )


def _largest(case: Case) -> tuple[int, str, int, int]:
    """Return the connection and direction whose largest segment exceeds the MSS most, with its size and MSS."""
    connections = case.analysis.connections
    found = []
    for direction in ("a_to_b", "b_to_a"):
        largest, mss = (
            connections.column(f"{direction}.max_payload_bytes"),
            connections.column(f"{direction}.mss_bytes"),
        )
        id = int((largest.astype("int64") - mss).argmax())
        found.append((int(largest[id]) - int(mss[id]), id, direction, int(largest[id]), int(mss[id])))
    _, id, direction, largest_bytes, mss_bytes = max(found)
    return id, direction, largest_bytes, mss_bytes


def _jumbo_frames(case: Case, id: int) -> str:
    connection = case.analysis.connections[id]
    if connection.a_to_b.syn_mss is None and connection.b_to_a.syn_mss is None:
        return "Jumbo frames: without the MSS option at most 536 bytes may be sent (RFC 9293 §3.7.1)."
    return "Jumbo frames: both sides may send up to the MSS in the SYNs, and these segments are longer."


def _frames(case: Case, id: int, direction: str, mss: int) -> tuple[int, ...]:
    table = case.table(id)
    if table is None:
        return ()
    chosen = (table["length"] > mss) & (table["direction"] == direction[0])
    return tuple(int(frame) for frame in table["frame"][chosen][:FRAMES])


RULE = Rule(
    code="TW603",
    name="offload",
    title="segments larger than packets: captured where offload splits or merges them",
    severity=Severity.INFO,
    scope="capture",
    counts=("super_segments",),
    judge=judge,
    page=__doc__,
    thresholds={
        "share": Threshold(0.01, "share", "Fewer change packet counts by a few percent at most."),
        "times": Threshold(1.5, "times", "Offload merges whole segments: two are twice the MSS."),
    },
)
