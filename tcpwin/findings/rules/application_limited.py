"""## What it finds

For most of the time the sender had nothing to send: neither the path nor the receiver held it back.

## Why it matters

The rate of such a connection says nothing about the network, and no setting of TCP raises it. It is what most
connections are like, and often what a "slow network" is.

## How it is judged

Of the direction with more data, of at least `bytes` over at least `duration_ns`. By packets: `idle_ns`, silence
longer than the retransmission timeout with nothing in flight, less the time in which the receive window was closed or
full, is at least `share` of the connection. By the kernel: `app_limited` in at least `flagged` of five or more
samples of `ss` (commit d7722e8570fc: at the last ACK there was less than a segment left to send).

## When it is wrong

An application that writes a little more often than the timeout leaves no silence: without `ss` it is not found. A
sender that waits for a lock, a disk or the answer of a third host is limited by that, not by TCP.

## What to do

Nothing on the network. If it is too slow, look at what the application waits for: the other side's next request, a
disk, a database, a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.findings._case import Case
from tcpwin.findings._finding import Evidence, Finding, Remedy, Severity
from tcpwin.findings._rule import Rule, Threshold
from tcpwin.findings.rules._events import stalls_of
from tcpwin.findings.rules._words import time_words

FEWEST_SAMPLES = 5
PAUSES = ("application", "idle")
"""Causes of stalls in which the sender had nothing to send."""
SHOWN = 3


def judge(case: Case) -> Iterator[Finding]:
    data, connection = case.data, case.connection
    if data.unique_bytes < case.back.unique_bytes:
        return
    silent_ns = data.idle_ns - data.zero_window_ns - data.window_limited_ns
    share = silent_ns / connection.duration_ns
    flagged, samples = _flags(case)
    is_flagged = samples >= FEWEST_SAMPLES and flagged >= case.settings["flagged"] * samples
    if share < case.settings["share"] and not is_flagged:
        return
    values: dict[str, float | int | str] = {
        "idle_ns": data.idle_ns,
        "window_closed_or_full_ns": data.zero_window_ns + data.window_limited_ns,
        "duration_ns": connection.duration_ns,
        "idle_gaps": data.idle_gaps,
    }
    if samples:
        values |= {"app_limited_samples": flagged, "samples": samples}
    what = (
        f"{case.sender} had nothing to send for {time_words(silent_ns)} of {time_words(connection.duration_ns)}"
        if share >= case.settings["share"]
        else f"{case.sender} had no full segment left to send in {flagged} of {samples} samples of its kernel"
    )
    pauses = sorted(
        (each for each in stalls_of(case) if each.sender == case.sender and each.cause in PAUSES),
        key=lambda pause: -pause.duration_ns,
    )[:SHOWN]
    waits = f": {case.sender} answers requests of {case.receiver}" if data.turns > 1 else ""
    yield case.finding(
        f"The applications set the pace, not TCP: {what}{waits}",
        blame="application",
        side=None if waits else case.sender,
        confidence="high",
        evidence=Evidence(
            frames=tuple(frame for pause in pauses for frame in (pause.before_frame, pause.after_frame)),
            start_ns=pauses[0].start_ns if pauses else None,
            end_ns=pauses[0].end_ns if pauses else None,
            values=values,
            ruled_out="The network and the receiver: nothing was in flight that could have been waited for, and the "
            "receive window had room."
            if share >= case.settings["share"]
            else "The network and the receiver: the sender's kernel had sent all that the application gave it.",
        ),
        remedy=Remedy("Nothing to change in TCP. If it is too slow, look at what the applications wait for."),
    )


def _flags(case: Case) -> tuple[int, int]:
    """Samples whose kernel says application-limited, and all that say anything of the sender's rate."""
    samples = [each for each in case.sockets(case.sender) if each.delivery_rate_bps is not None]
    return sum(1 for each in samples if each.app_limited), len(samples)


RULE = Rule(
    code="TW402",
    name="application-limited",
    title="the applications set the pace",
    severity=Severity.INFO,
    scope="direction",
    judge=judge,
    page=__doc__,
    when=(("unique_bytes", ">=", "{bytes}"), ("connection.duration_ns", ">=", "{duration_ns}")),
    thresholds={
        "share": Threshold(0.5, "share", "Most of the time."),
        "flagged": Threshold(0.8, "share", "The flag is of the last ACK only; now and then any sender runs dry."),
        "bytes": Threshold(100_000, "bytes", "Of a smaller transfer nobody asks for the rate."),
        "duration_ns": Threshold(1_000_000_000, "ns", "A second: shorter ones are over before their rate matters."),
    },
)
