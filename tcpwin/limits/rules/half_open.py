"""## What it finds

One side closed its direction (FIN), but the other never did; it stayed silent to the end of the capture.

## Why it matters

The application on the silent side holds a socket that nobody uses (CLOSE-WAIT), or its host is gone. Such sockets
accumulate until the process runs out of file descriptors.

## How it is judged

Nothing followed the FIN for at least `silent_ns`, while the capture continued. If the FIN was retransmitted at least
`fins` times without an answer, the other host did not even acknowledge it.

## When it is wrong

A side may close its direction on purpose and wait for a slow answer (RFC 9293 §3.6). Linux drops a socket that only
waits for the peer's FIN after `tcp_fin_timeout`, 60 s, so a longer wait is pointless unless the application keeps the
socket open.

## What to do

On the silent side, look for sockets in CLOSE-WAIT and the program that holds them; it must close the socket after it
has read the end of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import FIN, rows_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text


def judge(case: Case) -> Iterator[Finding]:
    connection, end_ns = case.connection, case.analysis.capture.last_time_ns
    closer = connection.closed_first
    if closer is None or end_ns is None or end_ns - connection.end_ns < case.settings["silent_ns"]:
        return
    if connection.a_to_b.stall_at_end or connection.b_to_a.stall_at_end:
        # One side still waits for an answer or a window: other rules report that.
        return
    silent_ns = end_ns - connection.end_ns
    silent = "b" if closer == "a" else "a"
    the_closer, the_silent = case.the(closer), case.the(silent)
    data = connection.a_to_b if closer == "a" else connection.b_to_a
    is_gone = data.fin_retransmissions >= case.settings["fins"]
    states = {sample.state for sample in case.sockets(silent)[-1:]}
    is_held = "CLOSE-WAIT" in states and not is_gone
    fins = [row["frame"] for row in rows_of(case) if row["direction"] == closer and row["flags"] & FIN]
    yield case.finding(
        f"{the_silent} is gone: {the_closer} closed the connection and sent its FIN "
        f"{count_text(data.fin_retransmissions + 1, 'time')} without an answer"
        if is_gone
        else f"{the_closer} closed the connection, {the_silent} has not for {time_text(silent_ns)}: "
        + ("its socket is in CLOSE-WAIT" if is_held else "its application seems to keep the socket open"),
        owner="network" if is_gone else "application",
        side=silent,
        confidence="certain" if is_held else "likely",
        evidence=Evidence(
            frames=tuple(fins[:3]),
            start_ns=connection.end_ns,
            end_ns=end_ns,
            values={"silent_ns": silent_ns, "fin_retransmissions": data.fin_retransmissions, "closed_first": closer},
            ruled_out=(
                None
                if is_gone
                else f"Not a lost FIN: {the_closer} would have retransmitted it until it was acknowledged."
            ),
        ),
        remedy=Remedy(
            f"Check that {the_silent} is up and reachable."
            if is_gone
            else f"Make {the_silent}'s application close its socket after reading to the end.",
            settings=("ss -tnp state close-wait",),
        ),
    )


RULE = Rule(
    code="TW504",
    name="half-open",
    title="one side closed, the other never",
    severity=Severity.WARNING,
    scope="connection",
    judge=judge,
    page=__doc__,
    when=(("close", "==", "half_closed"),),
    thresholds={
        "silent_ns": Threshold(
            60_000_000_000, "ns", "Linux's tcp_fin_timeout: by then its closed socket no longer waits for the peer."
        ),
        "fins": Threshold(3, "count", "Three unanswered FINs: one or two may be lost."),
    },
)
