"""## What it finds

One side reset the connection (RST) while data was in transit.

## Why it matters

Unread data is discarded at once, and the other application gets an error ("connection reset by peer").

## How it is judged

The connection ended with a RST before both sides had closed, and one of these holds:

At least `lost_bytes` of the direction's data were never acknowledged. The ACK number in the RST does not count as an
acknowledgment (RFC 9293 §3.10.7.4), although it may cover data that arrived and was discarded.

Or the receiver itself sent the RST without having read everything: its window was closed; or, within `fresh_ns` of the
last data (or two round trips), that data had filled the window or the window was below half of its maximum; or its
kernel's Recv-Q (`ss`) held data that recently. Linux sends a RST instead of a FIN when an application closes a socket
with unread data (RFC 1122 §4.2.2.13) or with a linger time of 0.

## When it is wrong

Clients that have all they need reset on purpose, for example browsers when the user leaves a page. A middlebox can send
a RST in a host's name; it often has a different TTL than the host's other packets.

## What to do

Read the log of the resetting side's application for that time: look for a timeout, a limit, a crash, or a close with
unread data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import GOODBYE_BYTES, RST, rows_of
from tcpwin.limits.evidence.hosts import growth
from tcpwin.limits.evidence.legs import half_resets
from tcpwin.limits.evidence.races import keep_alive_race
from tcpwin.limits.evidence.resets import reset_origin
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.reading import reset_frame
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, time_text

ABORTS = ("TcpExtTCPAbortOnClose", "TcpExtTCPAbortOnData", "TcpExtTCPAbortOnMemory", "TcpExtTCPAbortOnTimeout")
LAST_DATA = 3
"""Number of data frames to show before the reset."""


def judge(case: Case) -> Iterator[Finding]:
    data, by = case.data, case.connection.reset_by
    # Without the other side's segments it is unknown what was acknowledged.
    if by is None or not case.back.segments:
        return
    origin = reset_origin(case)
    if origin is not None and (origin.is_foreign or origin.is_after_idle or keep_alive_race(case) is not None):
        # TW507 to TW509 and TW512 say who ended it.
        return
    if any(case.connection.id == half.reset for half in half_resets(case)):
        return
    lost = max(data.unique_bytes - data.acked_bytes, 0)
    is_lost = lost >= case.settings["lost_bytes"]
    if not is_lost and by == case.sender:
        return
    who = case.the(by)
    before, reset = _around(rows_of(case), case.sender, by)
    unread = _unread(case, before, reset) if by == case.receiver else None
    if not is_lost and unread is None:
        return
    counted = growth(case.host(by), *ABORTS)
    yield case.finding(
        _text(case, by, lost if is_lost else 0, unread),
        owner="application",
        side=by,
        confidence="certain" if counted else "possible" if by == case.sender and data.rto_retransmissions else "likely",
        evidence=Evidence(
            frames=_frames(case, reset, before),
            start_ns=before[-1]["time_ns"] if before else None,
            end_ns=reset["time_ns"] if reset is not None else case.connection.end_ns,
            values={
                "reset_by": by,
                "unacknowledged_bytes": lost,
                "acked_bytes": data.acked_bytes,
                "timeouts": data.rto_retransmissions,
                **counted,
            },
            ruled_out=(
                f"Not a box on the path: {who}'s kernel counted aborts at that time."
                if counted
                else (
                    f"Not ruled out: a box on the path that sent the RST. Compare its TTL with that of {who}'s other "
                    "packets."
                )
            ),
        ),
        remedy=Remedy(
            f"Look in the log of {who}'s application for why it gave up: a timeout, a limit, a close with unread data."
        ),
    )


def _frames(case: Case, reset: Mapping[str, Any] | None, before: list[dict[str, Any]]) -> tuple[int, ...]:
    """Return the RST and the last data before it, or only the RST if the capture may not be read again."""
    if reset is None and not before:
        frame = reset_frame(case.analysis, case.connection.id)
        return () if frame is None else (frame,)
    return tuple(row["frame"] for row in [reset, *before[-LAST_DATA:]] if row is not None)


def _text(case: Case, by: str, lost: int, unread: str | None) -> str:
    sender, receiver = case.the_sender, case.the_receiver
    if by == case.sender:
        return (
            f"{sender} reset the connection with {bytes_text(lost)} of its data unacknowledged: {receiver} may "
            "never have received it"
        )
    closed = " after its FIN" if case.back.fin else ""
    never = f"{bytes_text(lost)} were never acknowledged"
    if unread is None:
        return f"{receiver} reset the connection{closed} while {sender} was sending: {never}"
    clause = f"{receiver} reset the connection{closed}, apparently with {sender}'s data unread: {unread}"
    return f"{clause}; {never}" if lost else clause


def _around(rows: list[dict[str, Any]], sender: str, by: str) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None]:
    """Return the sender's data before the first RST, and that RST."""
    before: list[dict[str, Any]] = []
    for row in rows:
        if row["direction"] == by and row["flags"] & RST:
            return before, row
        if row["direction"] == sender and row["length"]:
            before.append(row)
    return before, None


def _unread(case: Case, before: list[dict[str, Any]], reset: Mapping[str, Any] | None) -> str | None:
    """Describe what shows that the receiver had not read everything, or return None."""
    episodes = case.data.zero_window_episodes
    if episodes and episodes[-1].ended_by == "reset":
        return f"its window had been closed for {time_text(episodes[-1].duration_ns)}"
    fresh_ns = max(case.settings["fresh_ns"], 2 * (case.connection.path_rtt_ns or 0))
    reset_ns = reset["time_ns"] if reset is not None else case.connection.end_ns
    if (waiting := _waiting(case, reset_ns, fresh_ns)) is not None:
        return waiting
    if reset is None or not before:
        return None
    gap_ns = reset_ns - before[-1]["time_ns"]
    if gap_ns > fresh_ns:
        return None
    if "window_full" in str(before[-1]["events"]).split("|"):
        return f"the RST came {time_text(gap_ns)} after data that filled the window"
    last, most = case.data.receive_window_last_bytes, case.data.receive_window_max_bytes
    if last is not None and most is not None and 2 * last < most:
        return f"its window had fallen from {bytes_text(most)} to {bytes_text(last)}"
    return None


def _waiting(case: Case, reset_ns: int, fresh_ns: float) -> str | None:
    """Describe the unread data in the receiver's kernel, from its last sample before the reset."""
    host = case.host(case.receiver)
    offset_ns = host.clock.offset_ns if host is not None and host.clock is not None else 0
    for sample in reversed(case.sockets(case.receiver)):
        if sample.time_ns is None or sample.time_ns + offset_ns > reset_ns:
            continue
        age_ns = reset_ns - sample.time_ns - offset_ns
        # A FIN that was received counts as one byte.
        if (sample.recv_q_bytes or 0) > 1 and age_ns <= fresh_ns:
            return f"its kernel held {bytes_text(sample.recv_q_bytes or 0)} unread {time_text(age_ns)} before"
        return None
    return None


RULE = Rule(
    code="TW501",
    name="connection-aborted",
    title="reset while data was in flight",
    severity=Severity.WARNING,
    scope="direction",
    judge=judge,
    page=__doc__,
    when=(("connection.close", "==", "reset"), ("data_segments", ">=", 1)),
    thresholds={
        "lost_bytes": Threshold(
            GOODBYE_BYTES, "bytes", "Larger than a TLS close_notify, which is often refused and carries no data."
        ),
        "fresh_ns": Threshold(
            200_000_000,
            "ns",
            "An application that still reads has already read data this old; also Linux's shortest timeout.",
        ),
    },
)
