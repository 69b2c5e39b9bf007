"""## What it finds

The receiver closed its window, or left it smaller than a segment, and did not open it again before the connection was
reset or the capture ended.

## Why it matters

The sender had more data and could send only probes (RFC 9293 §3.8.6.1). The transfer did not finish: this is what a
hung application looks like from outside.

## How it is judged

When the capture ended or a RST arrived, the window had been closed (or smaller than the next segment, with nothing in
flight) for at least `stall_ns`, and the sender was waiting for it: it probed, had data in flight, or its first probe
was not due yet. After `dead_ns` it is an error, before that a warning. The cost is that time. If the capture continues
after the connection's last packet, at most two minutes are added, the longest retransmission timer.

## When it is wrong

A capture that was stopped may have missed the opening. In Linux 6.6 to 6.8 a window closed by memory pressure could
stay closed on both sides although the application was reading (commit e2142825c120 and its fixes): compare Recv-Q in
`ss`, which is then small.

## What to do

On the receiver, find why the application stopped reading: `ss -tmi` shows Recv-Q near the buffer size. Let applications
limit how long they wait for their peer (TCP_USER_TIMEOUT on Linux).
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

KINDS = ("zero_window", "small_window")


def judge(case: Case) -> Iterator[Finding]:
    data, by = case.data, case.connection.reset_by
    kind, start_ns, cost_ns = data.stall_at_end, data.stall_at_end_start_ns, data.stall_at_end_ns
    if kind not in KINDS or start_ns is None:
        return
    last = data.zero_window_episodes[-1] if kind == "zero_window" and data.zero_window_episodes else None
    probes = last.probes if last else 0
    frames = (last.start_frame, last.end_frame) if last else ()
    did = "closed" if last else "smaller than a segment"
    end = f"until {case.the(by)} reset the connection" if by else "still so when the capture ended"
    waits = (
        f"{case.the_sender} had more to send ({count_text(probes, 'probe')})" if probes else f"{case.the_sender} waits"
    )
    yield case.finding(
        f"{case.the_receiver}'s application stopped reading: its receive window was {did} for {time_text(cost_ns)}, "
        f"{end}, and {waits}",
        owner="application",
        side=case.receiver,
        confidence="certain" if by else "likely",
        cost_ns=cost_ns,
        severity=Severity.ERROR if cost_ns >= case.settings["dead_ns"] else None,
        evidence=Evidence(
            frames=tuple(frame for frame in frames if frame),
            start_ns=start_ns,
            end_ns=start_ns + cost_ns,
            values={"closed_ns": cost_ns, "probes": probes, "ended_by": "reset" if by else "open"},
            ruled_out="Not a broken path: the receiver itself announced the window.",
        ),
        remedy=Remedy(
            f"Find why {case.the_receiver}'s application stopped reading. Limit how long {case.the_sender} waits: "
            "socket option TCP_USER_TIMEOUT, in milliseconds.",
            side_effects="A sender that gives up closes the connection; unread data is lost.",
        ),
    )


RULE = Rule(
    code="TW203",
    name="zero-window-dead",
    title="the receiver's window closed for good",
    severity=Severity.WARNING,
    scope="direction",
    limits=("receiver_application",),
    judge=judge,
    page=__doc__,
    when=(("stall_at_end_ns", ">=", "{stall_ns}"),),
    thresholds={
        "stall_ns": Threshold(200_000_000, "ns", "Linux's shortest retransmission timeout; less is barely noticeable."),
        "dead_ns": Threshold(
            10e9, "ns", "Readers pause for seconds; by then Linux has probed five times (0.2 s, doubling each time)."
        ),
    },
)
