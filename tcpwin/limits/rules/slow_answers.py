"""## What it finds

The responder's application took most of the time between requests and answers.

## Why it matters

No TCP setting and no faster path helps: the time is spent in a query, a lock, a disk or another service.

## How it is judged

An answer's own time runs from when the responder had the whole request to when it sent the first byte of the answer:
the time at the capture point less the round trip between there and the responder. The sum (`responder_turn_ns`) is at
least `cost_ns` and at least `share` of the connection without the requester's own time.

## When it is wrong

A device that answers for the server, and a server that waits for the rest of a request whose last segment was not
captured, look the same. A long poll waits on purpose.

## What to do

Look at the answers that took longest, in the server's own log.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.exchanges import asked_ns, exchange_frames
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.reasons import work_spread
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    connection, answers = case.connection, case.connection.b_to_a
    busy_ns = asked_ns(connection)
    share = connection.responder_turn_ns / busy_ns
    if share < case.settings["share"]:
        return
    frames, frames_of = exchange_frames(case, slowest=True)
    yield case.finding(
        f"The server's application took {time_text(connection.responder_turn_ns)} ({share_text(share)} of the time in "
        f"which something was asked) to prepare {count_text(connection.exchanges, 'answer')}{work_spread(connection)}",
        owner="application",
        side="b",
        confidence="possible" if connection.turns_state == "overlapping" else "likely",
        evidence=Evidence(
            frames=frames,
            frames_of=frames_of,
            values={
                "exchanges": connection.exchanges,
                "responder_turn_ns": connection.responder_turn_ns,
                "round_trip_turns_ns": connection.round_trip_turns_ns,
                "work_p50_ns": answers.work_p50_ns or 0,
                "work_max_ns": answers.work_max_ns or 0,
            },
            ruled_out=(
                f"Not the path: its round trips took {time_text(connection.round_trip_turns_ns)} and are not counted. "
                "Not the client: it had asked."
            ),
        ),
        remedy=Remedy("Nothing to change in TCP. Find out what the server's application waits for."),
    )


RULE = Rule(
    code="TW412",
    name="slow-answers",
    title="the responder's application took most of the time",
    severity=Severity.INFO,
    scope="connection",
    limits=("sender_application",),
    judge=judge,
    page=__doc__,
    when=(("exchanges", ">=", 1), ("responder_turn_ns", ">=", "{cost_ns}")),
    thresholds={
        "cost_ns": Threshold(200_000_000, "ns", "Less is barely noticeable."),
        "share": Threshold(0.5, "share", "Most of the time in which something was asked."),
    },
)
