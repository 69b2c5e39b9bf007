"""## What it finds

The file is damaged or ends in the middle of a packet, or the snapshot length cut off TCP headers or options.

## Why it matters

Nothing after the damage is analysed: connections look unfinished and transfers look short. A truncated SYN hides the
window scale, and a truncated ACK hides its SACK blocks and timestamps, so findings on scaling (TW1), windows (TW2) and
loss (TW3) have lower confidence.

## How it is judged

The reader met damage in a file and reports its position. Or the snapshot length cut at least `segments` TCP headers.
Truncated payload does not matter.

## When it is wrong

A capture that is still being written ends in the middle of a packet.

## What to do

Copy or capture the file again. Use a snapshot length of at least 128 bytes, or 256 with tunnels.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text

DAMAGES = ("truncated", "damaged", "compression_damaged", "read_failed")
"""Kinds of warnings after which packets may be missing."""


def judge(case: Case) -> Iterator[Finding]:
    capture = case.analysis.capture
    for file in capture.files:
        damages = [warning for warning in file.warnings if warning.kind in DAMAGES]
        if damages:
            first = damages[0]
            yield case.finding(
                f"The file {file.file} is damaged at byte {first.byte_offset:,}: {first.message}. "
                f"{count_text(file.packets, 'packet')} could be read; the rest was not analysed",
                owner="nobody",
                confidence="certain",
                evidence=Evidence(
                    frames=(capture.packets,) if capture.packets and len(capture.files) == 1 else (),
                    values={
                        "byte_offset": first.byte_offset,
                        "packets": file.packets,
                        "damages": len(damages),
                        "weakens": "TW5",
                    },
                ),
                remedy=Remedy("Copy the file again, or stop the capture with Ctrl-C before copying."),
            )
    cut = capture.options_cut + capture.header_cut
    if cut and cut >= case.settings["segments"]:
        yield case.finding(
            f"The snapshot length cut the TCP headers of {count_text(cut, 'segment')}: window scale, SACK or "
            "timestamps are missing there",
            owner="nobody",
            confidence="certain",
            evidence=Evidence(
                values={
                    "options_cut": capture.options_cut,
                    "header_cut": capture.header_cut,
                    "segments": capture.segments,
                    "weakens": "TW1, TW2, TW3",
                },
                ruled_out="Not options that were never sent: the headers are longer than the captured part.",
            ),
            remedy=Remedy(
                "Capture with a longer snapshot length.",
                settings=("tcpdump -s 128 -w FILE",),
                side_effects="Ethernet, IPv6 and TCP headers with all options take 114 bytes; tunnels add more.",
            ),
        )


RULE = Rule(
    code="TW605",
    name="capture-cut-short",
    title="a damaged file, or headers cut by the snapshot length",
    severity=Severity.WARNING,
    scope="capture",
    counts=("warnings", "options_cut", "header_cut"),
    judge=judge,
    page=__doc__,
    thresholds={
        "segments": Threshold(1, "count", "One cut SYN hides the window scale of a whole connection."),
    },
)
