"""## What it finds

The receiver closed its window and never opened it again: the connection was reset, or the capture ended so.

## Why it matters

The sender had more to say and could send nothing but probes (RFC 9293 §3.8.6.1). The transfer did not finish: this is
how a hung application looks from outside.

## How it is judged

The last closed window ended by a reset, or was closed still when the capture ended; it had been closed for at least
`dead_ns`, and the sender had probed it at least once, so that data were waiting.

## When it is wrong

A capture that was stopped may have missed the opening. In Linux 6.6 to 6.8 a window closed by memory pressure could
stay closed on both sides though the application read (commit e2142825c120 and its mends): compare Recv-Q of `ss`,
which is then small.

## What to do

On the receiver, find why the application stopped reading: `ss -tmi` shows Recv-Q near the buffer. Let applications
bound the time that they wait for their peer (TCP_USER_TIMEOUT on Linux).
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import time_text


def judge(case: Case) -> Iterator[Finding]:
    data = case.data
    if not data.zero_window_episodes:
        return
    last = data.zero_window_episodes[-1]
    if last.ended_by not in ("open", "reset") or last.probes == 0 or last.duration_ns < case.settings["dead_ns"]:
        return
    was_reset = last.ended_by == "reset"
    by = case.connection.reset_by
    end = f"until {by} reset the connection" if was_reset else "and it was closed still when the capture ended"
    yield case.finding(
        f"{case.receiver} closed its receive window for {time_text(last.duration_ns)}, {end}; {case.sender} had more "
        f"to send and probed {last.probes} times: the application of {case.receiver} no longer reads",
        owner="application",
        side=case.receiver,
        confidence="certain" if was_reset else "likely",
        cost_ns=last.duration_ns,
        evidence=Evidence(
            frames=tuple(frame for frame in (last.start_frame, last.end_frame) if frame),
            start_ns=last.start_ns,
            end_ns=last.end_ns,
            values={"closed_ns": last.duration_ns, "probes": last.probes, "ended_by": last.ended_by},
            ruled_out="A broken path: the window was announced as zero, which the receiver alone does.",
        ),
        remedy=Remedy(
            f"Find why the application on {case.receiver} stopped reading. Bound the wait of the one on {case.sender}: "
            "the socket option TCP_USER_TIMEOUT, in milliseconds.",
            side_effects="A sender that gives up closes the connection; what it had sent and not read is lost.",
        ),
    )


RULE = Rule(
    code="TW203",
    name="zero-window-dead",
    title="the receiver's window closed for good",
    severity=Severity.ERROR,
    scope="direction",
    limits=("receiver_application",),
    judge=judge,
    page=__doc__,
    when=(("zero_window_longest_ns", ">=", "{dead_ns}"), ("zero_window_probes", ">", 0.0)),
    thresholds={
        "dead_ns": Threshold(
            10e9, "ns", "Readers pause for seconds; by then Linux has probed five times (0.2 s, doubled each time)."
        )
    },
)
