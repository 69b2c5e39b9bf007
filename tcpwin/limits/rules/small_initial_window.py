"""## What it finds

The sender began with a congestion window of less than ten segments, and its first message needed more.

## Why it matters

Each missing doubling at the start costs a round trip on every new connection. Ten segments have been standard since RFC
6928 (Linux 2.6.39); older systems, a route with a smaller `initcwnd`, or a user-space stack begin with one to four.

## How it is judged

Near the sender: the first flight (`initial_flight_bytes`) consists of full segments only, fewer than `segments` and at
most `bytes`, on a path of at least `rtt_ns`; the sender then waits for at least a quarter of the round trip although
the receive window has space for another segment, and continues when the ACK arrives. The cost is the number of extra
slow-start round trips that the message needs compared with ten segments, times the path's round trip. It is at least
`cost_ns`.

## When it is wrong

An application may write exactly that much, and more just as the ACK arrives. After a lost SYN a small start is required
(RFC 6928 §2), so the rule is silent.

## What to do

`ip route` on the sender shows `initcwnd` if it is set: remove it, or set 10. Use more than ten only on a path known to
carry it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.capture import rows_of
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import bytes_text, count_text, time_text

AT_ONCE_NS = 2_000_000
"""A sender that was waiting for an ACK sends within this time after it."""

Row = Mapping[str, Any]


def judge(case: Case) -> Iterator[Finding]:
    data, rtt_ns = case.data, case.connection.path_rtt_ns or 0
    flight_bytes, room = data.initial_flight_bytes or 0, data.receive_window_initial_bytes or 0
    started = -(-flight_bytes // data.mss_bytes) if data.mss_bytes else 0
    wanted = int(case.settings["segments"])
    if not 0 < started < wanted or data.syn_retransmissions or case.back.syn_retransmissions:
        return
    if room < flight_bytes + data.mss_bytes:
        return
    rows = rows_of(case)
    flight, ack, following = _first_flight(case, rows, flight_bytes)
    if ack is None or following is None or any(row["length"] % data.mss_bytes for row in flight):
        return
    waited_ns = ack["time_ns"] - flight[-1]["time_ns"]
    if waited_ns < rtt_ns / 4 or following["time_ns"] - ack["time_ns"] > AT_ONCE_NS:
        return
    message = -(-_message_bytes(case, rows, rtt_ns) // data.mss_bytes)
    trips = _round_trips(message, started) - _round_trips(message, wanted)
    if trips < 1 or trips * rtt_ns < case.settings["cost_ns"]:
        return
    yield case.finding(
        f"{case.the_sender} began with {count_text(started, 'segment')} where {wanted} are usual: its first message "
        f"({bytes_text(message * data.mss_bytes)}) took {count_text(trips, 'round trip')} more, "
        f"{time_text(trips * rtt_ns)}",
        owner="host",
        side=case.sender,
        confidence="likely",
        cost_ns=trips * rtt_ns,
        evidence=Evidence(
            frames=(flight[0]["frame"], flight[-1]["frame"], ack["frame"], following["frame"]),
            start_ns=flight[0]["time_ns"],
            end_ns=following["time_ns"],
            values={
                "initial_flight_bytes": flight_bytes,
                "initial_segments": started,
                "message_segments": message,
                "waited_ns": waited_ns,
                "receive_window_initial_bytes": room,
                "path_rtt_ns": rtt_ns,
            },
            ruled_out=(
                "Not the receive window: it had space. Not the application: full segments left, and more with the ACK."
            ),
        ),
        remedy=Remedy(
            f"Make {case.the_sender} begin with ten segments: check initcwnd in `ip route`.",
            settings=("ip route change <route> initcwnd 10",),
            side_effects="Affects only new connections over the route. A very slow link queues a longer first burst.",
        ),
    )


def _first_flight(case: Case, rows: Sequence[Row], flight_bytes: int) -> tuple[list[Row], Row | None, Row | None]:
    """Return the first flight's segments, the ACK for them, and the next segment."""
    flight: list[Row] = []
    sent_bytes, ack = 0, None
    for row in rows:
        if row["direction"] == case.sender and row["length"]:
            if sent_bytes >= flight_bytes:
                return flight, ack, row
            flight.append(row)
            sent_bytes += row["length"]
        elif flight and sent_bytes >= flight_bytes and ack is None and row["direction"] == case.receiver:
            ack = row
    return flight, ack, None


def _message_bytes(case: Case, rows: Sequence[Row], rtt_ns: int) -> int:
    """Return the bytes of new data before the first silence of two round trips or data from the other side."""
    total, last_ns = 0, None
    for row in rows:
        if not row["length"]:
            continue
        if row["direction"] != case.sender:
            if total:
                break
            continue
        if last_ns is not None and row["time_ns"] - last_ns > 2 * rtt_ns:
            break
        total, last_ns = total + row["length"], row["time_ns"]
    return int(total)


def _round_trips(segments: int, window: int) -> int:
    """Return the number of slow-start flights, each twice the one before, needed for this many segments."""
    return (-(-segments // window)).bit_length()


RULE = Rule(
    code="TW406",
    name="small-initial-window",
    title="the sender began with a small window",
    severity=Severity.WARNING,
    scope="direction",
    limits=("congestion_control",),
    judge=judge,
    page=__doc__,
    when=(
        ("view", "==", "sender"),
        ("syn_seen", "==", True),
        ("slow_start_ns", ">", 0),
        ("initial_flight_bytes", "<", "{bytes}"),
        ("connection.path_rtt_ns", ">=", "{rtt_ns}"),
        ("retransmissions", "==", 0),
    ),
    thresholds={
        "segments": Threshold(10, "count", "The initial window of RFC 6928 and of Linux (TCP_INIT_CWND)."),
        "cost_ns": Threshold(50_000_000, "ns", "A round trip of 50 ms, for each new connection."),
        "bytes": Threshold(90_000, "bytes", "Ten jumbo frames: more is not small on any link."),
        "rtt_ns": Threshold(5_000_000, "ns", "On shorter paths nobody notices an extra round trip."),
    },
)
