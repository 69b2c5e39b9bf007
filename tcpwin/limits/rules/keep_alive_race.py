"""## What it finds

A request and the FIN of the other side crossed: the server closed an idle connection just as the client used it again.
Or the client used the connection after it had been closed.

## Why it matters

Neither host did anything wrong, but the request is lost: the server answers it with a RST, and the client sees
"connection reset" or "socket hang up". With HTTP keep-alive time-outs of a few seconds, this happens regularly under
light load.

## How it is judged

Nothing was sent for a second or more; then one side sent data and the other a FIN that does not acknowledge it, within
50 ms or one round trip of each other, and a RST followed. Or the FIN came after such a silence, and data from the other
side, which a RST answered, came later.

## When it is wrong

A server that closes for another reason at that moment looks the same; a silence close to a whole number of seconds
indicates a keep-alive time-out.

## What to do

Make the side that sends requests give up idle connections first: its pool's idle time-out must be shorter than the
server's keep-alive time-out, by at least a second. Let it retry requests that fail before any answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.races import IDLE_NS, keep_alive_race
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule
from tcpwin.units import bytes_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    race = keep_alive_race(case)
    if race is None:
        return
    closer, asker = case.the(race.closer), case.the(race.asker)
    idle, request = time_text(race.idle_ns), bytes_text(race.request_bytes)
    how = (
        f"just as {asker} sent its next request: {request} crossed the FIN and were refused"
        if race.is_crossed
        else f"and {asker} sent its next request {time_text(race.apart_ns)} later all the same: {request} were refused"
    )
    yield case.finding(
        f"{closer} closed the connection after {idle} of silence, {how}",
        owner="application",
        side=race.closer,
        confidence="likely",
        evidence=Evidence(
            frames=race.frames,
            start_ns=race.start_ns,
            values={"idle_ns": race.idle_ns, "apart_ns": race.apart_ns},
            ruled_out="No error of either side: the FIN does not acknowledge the request, so neither saw the other."
            if race.is_crossed
            else f"Not a close by a device: {closer}'s FIN came long before the RST.",
        ),
        remedy=Remedy(
            f"Let {asker} give up idle connections before {closer} does, after less than {idle}, or "
            f"raise the idle time-out of {closer}'s application (HTTP: its keep-alive time-out) above that of "
            f"{asker}'s connection pool. Let the client retry idempotent requests to which no answer came."
        ),
    )


RULE = Rule(
    code="TW509",
    name="keep-alive-race",
    title="a request crossed or followed the FIN of an idle connection",
    severity=Severity.WARNING,
    scope="connection",
    limits=("idle",),
    judge=judge,
    page=__doc__,
    when=(("close", "==", "reset"), ("duration_ns", ">=", float(IDLE_NS))),
)
