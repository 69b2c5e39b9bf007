"""## What it finds

The sender's application writes in small pieces, and each leaves as a separate packet.

## Why it matters

Every packet costs at least 40 bytes of headers, an interrupt, a lookup at each router and an ACK, whatever it carries.
A receiver charges its buffer by packet memory, not payload, so many small packets also shrink the window.

## How it is judged

`tinygrams` counts segments below the MSS that were followed by more data before they were acknowledged: pieces of
something larger. There are at least `segments` of them, they are at least `share` of the data segments, and the mean
payload is below half of the MSS. The rule is silent if the receiver's window was below one segment, because then the
window cut them, and for captures made before segmentation without the SYN, where the size of a full segment is unknown.

## When it is wrong

Individual events that are written as they happen (keystrokes, market ticks) are small by nature.

## What to do

Let the application collect a message before it writes (a buffer, `writev`, TCP_CORK), or leave TCP_NODELAY off.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FRAMES, rows_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text

JUMBO_BYTES = 8960
"""The payload of an Ethernet jumbo frame."""
HEADER_BYTES = 40
"""IPv4 and TCP without options."""


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    mean_bytes = data.payload_bytes / data.data_segments
    if data.tinygrams < case.settings["share"] * data.data_segments or mean_bytes * 2 >= data.mss_bytes:
        return
    if data.mss_bytes > JUMBO_BYTES and case.back.syn_mss is None:
        # Captured before segmentation and without the SYN, so the size of a full segment is unknown.
        return
    if data.sub_mss_windows or data.zero_window_episode_count:
        return
    small = [
        row["frame"] for row in rows_of(case) if row["direction"] == case.sender and 0 < row["length"] < data.mss_bytes
    ]
    needed = -(-data.payload_bytes // data.mss_bytes)
    yield case.finding(
        f"{case.the_sender}'s application writes small pieces: {data.data_segments:,} segments of "
        f"{bytes_text(mean_bytes)} where {count_text(needed, 'segment')} of {data.mss_bytes:,} bytes would do",
        owner="application",
        side=case.sender,
        confidence="certain",
        evidence=Evidence(
            frames=tuple(small[:FRAMES]),
            values={
                "tinygrams": data.tinygrams,
                "data_segments": data.data_segments,
                "mean_payload_bytes": round(mean_bytes),
                "mss_bytes": data.mss_bytes,
                "header_bytes": HEADER_BYTES * (data.data_segments - needed),
            },
            ruled_out="Not the receive window: it was never below a segment.",
        ),
        remedy=Remedy(
            f"Make {case.the_sender}'s application write whole messages (a buffer, writev, TCP_CORK), or leave "
            "TCP_NODELAY off.",
            side_effects="Collected data waits in the application: flush at the end of each message.",
        ),
    )


RULE = Rule(
    code="TW407",
    name="small-segments",
    title="data was sent in small pieces",
    severity=Severity.INFO,
    scope="direction",
    limits=("sender_application",),
    judge=judge,
    page=__doc__,
    when=(("tinygrams", ">=", "{segments}"),),
    thresholds={
        "segments": Threshold(100, "count", "Fewer have no measurable cost."),
        "share": Threshold(0.3, "share", "A short segment at the end of each write is normal."),
    },
)
