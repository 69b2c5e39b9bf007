"""## What it finds

The two ends take turns, and most of the connection was spent waiting for the path: each small request waited a round
trip for its answer before the next one was sent.

## Why it matters

Such a conversation takes its number of round trips times the round trip, however fast the path and the server are: 500
rows fetched one at a time over 20 ms take 10 s. It is fast in the test laboratory and slow in another city.

## How it is judged

`exchanges` counts answers that began when the responder had the whole request. From the time between a request and its
answer, and between an answer and the next request, the rule takes the round trip between the capture point and the end
that acts (`round_trip_turns_ns`); the rest is that end's own time. So the result does not depend on where the capture
was made. There are at least `exchanges`, and the cost is at least `cost_ns` and `share` of the connection without the
requester's own time. The cost is the time that the same exchanges would save if one round trip carried them all. Where
answers cannot be assigned to their requests (`turns_state` is overlapping), the rule does not apply.

## When it is wrong

Where requests depend on earlier answers, fewer round trips need another protocol, not another setting.

## What to do

Ask for more at a time: a larger fetch size, a batch, a join instead of a query per row; pipeline requests (HTTP/2,
PostgreSQL's pipeline mode); keep connections open; or move the client closer to the server.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.exchanges import asked_ns, exchange_frames
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.limits.tables import CHATTY_EXCHANGES
from tcpwin.units import count_text, share_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    connection = case.connection
    if connection.turns_state == "overlapping":
        # No exchange can be shown, as no answer can be assigned to its request.
        return
    exchanges, waited_ns = connection.exchanges, connection.round_trip_turns_ns
    busy_ns = asked_ns(connection)
    cost_ns = waited_ns // exchanges * (exchanges - 1)
    if cost_ns < case.settings["cost_ns"] or cost_ns < case.settings["share"] * busy_ns:
        return
    round_trip = time_text(connection.path_rtt_ns or 0)
    frames, frames_of = exchange_frames(case)
    yield case.finding(
        f"{count_text(exchanges, 'exchange')} waited for a round trip of {round_trip} each: {time_text(waited_ns)} "
        f"({share_text(waited_ns / busy_ns)} of the time in which something was asked)",
        owner="application",
        side="a",
        confidence="likely",
        cost_ns=cost_ns,
        evidence=Evidence(
            frames=frames,
            frames_of=frames_of,
            values={
                "exchanges": exchanges,
                "round_trip_turns_ns": waited_ns,
                "path_rtt_ns": connection.path_rtt_ns or 0,
                "responder_turn_ns": connection.responder_turn_ns,
            },
            ruled_out=(
                f"Not the server: all its answers together took {time_text(connection.responder_turn_ns)}. Not a "
                "window or loss: nothing else was in flight."
            ),
        ),
        remedy=Remedy(
            "Let the client's application ask for more at a time (larger fetches, pipelining, fewer and larger "
            "requests), or run it closer to the server."
        ),
    )


RULE = Rule(
    code="TW411",
    name="round-trips",
    title="a conversation of many round trips",
    severity=Severity.WARNING,
    scope="connection",
    limits=("round_trips",),
    judge=judge,
    page=__doc__,
    when=(("exchanges", ">=", "{exchanges}"),),
    thresholds={
        "exchanges": Threshold(CHATTY_EXCHANGES, "count", "A page over TLS needs fewer."),
        "cost_ns": Threshold(200_000_000, "ns", "Less is barely noticeable."),
        "share": Threshold(0.1, "share", "Less than a tenth of the time is not worth another protocol."),
    },
)
