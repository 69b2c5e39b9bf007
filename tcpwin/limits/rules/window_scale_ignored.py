"""## What it finds

The sender does not scale the receiver's windows as negotiated: it stops at the raw value of the window field, or sends
far beyond what was offered.

## Why it matters

Both ends must shift the field by the value from the SYNs (RFC 7323 §2.3). A sender that reads 502 as 502 bytes instead
of 64,256 sends a small piece per round trip. One that scales an unscaled window overruns the receiver.

## How it is judged

Ignored: the shift is above 0, and at least `times` segments ended with exactly as many bytes in flight as the raw field
says, in more than half of the cases in which the sender stopped for an ACK; never was more in flight. A stop before
data of the receiver does not count: it ends a message. Away from the sender: at least `times` segments shorter than
the MSS, and half of all such, end exactly at the right edge that a smaller shift gives, and none beyond it; between the
ends, only if the send buffer seems to have cost at least 200 ms. Reverse: scaling is off or the shift is known, and at
least `times` segments ended beyond every right edge that had been advertised, while the capture lacks no ACK.

## When it is wrong

A middlebox that rewrites windows or options between the capture point and the sender has the same effect. A capture
made on a host with offload hooks may show windows that were not yet in force. In a capture of more than half a million
packets, the rule checks nothing if more than eight connections may ignore the scale.

## What to do

Compare the options of the SYNs at both ends. Update the stack, proxy or firewall that misreads the windows; switching
window scaling off (`net.ipv4.tcp_window_scaling` = 0) makes them agree, but slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.smaller_scale import may_be_smaller, smaller_scale
from tcpwin.limits.evidence.window import MAX_FIELD, MOST_ROWS, spread
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.limits.tables import MIN_COST_NS, WINDOW_ITEMS
from tcpwin.units import count_text

_ROW = ("frame", "length", "bytes_in_flight", "window_raw")
MOST_OF_MANY = 8
"""Maximum number of connections for which a large capture is read again: more candidates are chance matches."""
_SCALED = (("window_scale_shift", ">", 0), ("window_utilisation", "<", 0.5))
AWAY = (
    (*_SCALED, ("view", "==", "receiver")),
    *(
        (*_SCALED, ("view", "==", view), ("budget_send_buffer_ns", ">=", MIN_COST_NS))
        for view in ("between", "unknown")
    ),
)
"""Captures away from the sender. In between, what the sender waits for looks like its buffer."""
BOUNDED = (("window_scale_shift", ">", 0), ("flight_max_bytes", ">", 0), ("flight_max_bytes", "<=", MAX_FIELD))
"""A sender that does not shift the 16-bit field never has more than its maximum in flight."""
REMEDY = Remedy(
    "Compare the options of both SYNs at both ends. Update the stack, proxy or firewall that misreads the windows.",
)


def judge(case: Case) -> Iterator[Finding]:
    reverse, wide, *smaller = case.asked
    for id, way in reverse:
        yield from _judge_reverse(replace(case, subject=case.analysis.connections[id], direction=way))
    if any(smaller) and case.may_read:
        fewest = ("data_segments", ">=", case.settings["times"])
        asked = [each for seen in AWAY for each in case.analysis.select("direction", [*seen, fewest])]
        cases = (replace(case, subject=case.analysis.connections[id], direction=way) for id, way in asked)
        for each in islice((each for each in cases if may_be_smaller(each)), MOST_OF_MANY):
            yield from _judge_smaller(each)
    if wide and case.may_read:
        bounded = case.analysis.select("direction", [*BOUNDED, ("data_segments", ">=", case.settings["times"])])
        cases = (replace(case, subject=case.analysis.connections[id], direction=way) for id, way in bounded)
        possible = [each for each in cases if _is_possible(each)]
        if len(possible) > MOST_OF_MANY and not case.are_few:
            return
        for number, each in enumerate(possible):
            yield from _judge_ignored(each, (other.connection.id for other in islice(possible, number + 1, None)))


def _judge_smaller(case: Case) -> Iterator[Finding]:
    found = smaller_scale(case, case.settings["times"])
    if found is None:
        return
    data = case.data
    flight, window, shift = (
        data.sender_flight_max_bytes or 0,
        data.receive_window_max_bytes or 0,
        data.window_scale.shift or 0,
    )
    reads = f"by {found.shift}" if found.shift else "not at all"
    why = "a device on the path changed the option" if found.shift else "it ignores the option, or never got it"
    yield case.finding(
        f"{case.the_sender} scales {case.the_receiver}'s window {reads} instead of by {shift}: {len(found.frames)} "
        f"segments end exactly where that ends the window, with {flight:,} bytes in flight at most where {window:,} "
        f"were offered; {why}",
        owner="host" if found.shift == 0 else "network",
        side=None if found.shift else case.sender,
        confidence="likely",
        cost_ns=(data.last_data_ns or 0) - (data.first_data_ns or 0),
        evidence=Evidence(
            frames=spread(found.frames),
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "stops_at_edge": len(found.frames),
                "short_segments": found.short,
                "shift": shift,
                "shift_used": found.shift,
                "flight_max_bytes": flight,
                "window_max_bytes": window,
            },
            ruled_out="Neither a congestion window nor a send buffer: neither ends at exactly that byte.",
        ),
        remedy=REMEDY,
    )


def _is_possible(case: Case) -> bool:
    shift = case.data.window_scale.shift or 0
    if (case.data.flight_max_bytes or 0) > (case.data.receive_window_max_bytes or 0) >> shift:
        # More was in flight than the largest unscaled window.
        return False
    return case.data.view != "receiver" and case.data.segments + case.back.segments <= MOST_ROWS


def _judge_ignored(case: Case, following: Iterable[int]) -> Iterator[Finding]:
    shift = case.data.window_scale.shift or 0
    frames, stops = _stops_at_raw_window(case, following)
    if len(frames) < case.settings["times"] or len(frames) * 2 <= stops:
        return
    data = case.data
    yield case.finding(
        f"{case.the_sender} reads {case.the_receiver}'s window as unscaled: {len(frames)} times it stopped with "
        f"exactly as many bytes in flight as the raw field says, {data.flight_max_bytes or 0:,} at most, where a shift "
        f"of {shift} allowed {data.receive_window_max_bytes or 0:,}",
        owner="host",
        side=case.sender,
        confidence="likely",
        # Each stop waits for an ACK that the true window would not have needed.
        cost_ns=(data.last_data_ns or 0) - (data.first_data_ns or 0),
        evidence=Evidence(
            frames=spread(frames),
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "stops_at_raw_window": len(frames),
                "stops": stops,
                "shift": shift,
                "flight_max_bytes": data.flight_max_bytes or 0,
                "window_max_bytes": data.receive_window_max_bytes or 0,
            },
            ruled_out="Not a congestion window: it counts segments, and would not end at exactly that byte.",
        ),
        remedy=REMEDY,
    )


def _judge_reverse(case: Case) -> Iterator[Finding]:
    data = case.data
    if data.view == "receiver" or data.acks_missing or data.acked_unseen or data.missed_bytes or data.capture_reordered:
        return
    yield case.finding(
        f"{case.the_sender} sent beyond {case.the_receiver}'s window {count_text(data.window_overrun, 'time')}: up to "
        f"{data.flight_max_bytes or 0:,} bytes in flight where at most {data.receive_window_max_bytes or 0:,} were "
        "offered. It seems to scale the window by a different shift than negotiated",
        owner="host",
        side=case.sender,
        confidence="likely" if data.acks_missing == 0 else "possible",
        # Waits for a window that this capture shows smaller than it was are not to be trusted.
        cost_ns=sum(getattr(data, f"budget_{item}_ns") for item in WINDOW_ITEMS),
        evidence=Evidence(
            frames=spread(_beyond_the_edge(case)),
            start_ns=data.first_data_ns,
            end_ns=data.last_data_ns,
            values={
                "window_overrun": data.window_overrun,
                "shift": data.window_scale.shift or 0,
                "flight_max_bytes": data.flight_max_bytes or 0,
                "window_max_bytes": data.receive_window_max_bytes or 0,
            },
            ruled_out="Not missing ACKs: everything acknowledged was captured.",
        ),
        remedy=REMEDY,
    )


def _beyond_the_edge(case: Case) -> list[int]:
    """Return the frames whose data ends beyond every advertised right edge."""
    table = case.table()
    if table is None:
        return [case.connection.first_frame]
    import numpy as np

    columns = [
        np.ma.filled(table[name].astype(np.int64), -1).tolist() for name in ("frame", "seq", "length", "ack", "window")
    ]
    edge, found = -1, []
    for from_sender, frame, seq, length, ack, window in zip(
        (table["direction"] == case.sender).tolist(), *columns, strict=True
    ):
        if from_sender:
            if length > 0 and edge >= 0 and _is_beyond(seq + length, edge):
                found.append(frame)
        elif ack >= 0 and window >= 0 and (edge < 0 or _is_beyond(ack + window, edge)):
            edge = ack + window
    return found


def _is_beyond(left: int, right: int) -> bool:
    # Sequence numbers wrap around: RFC 9293 §3.4.
    return 0 < (left - right) % (1 << 32) < 1 << 31


def _stops_at_raw_window(case: Case, following: Iterable[int]) -> tuple[list[int], int]:
    """Return the frames after which the sender stopped with exactly the raw window in flight, and all its stops.

    Before data of the receiver it had ended a message, whatever its size.
    """
    table = case.table(others=following)
    if table is None:
        return [], 0
    import numpy as np

    columns = [np.ma.filled(table[name].astype(np.int64), -1).tolist() for name in _ROW]
    frames: list[int] = []
    stops, raw = 0, -1
    newest: tuple[int, bool] | None = None
    stopped: tuple[int, bool] | None = None
    for from_sender, frame, length, flight, window in zip(
        (table["direction"] == case.sender).tolist(), *columns, strict=True
    ):
        if from_sender:
            if length > 0:
                if stopped:
                    stops += 1
                    frames += [stopped[0]] * stopped[1]
                newest, stopped = (frame, flight == raw > 0), None
            continue
        if length > 0:
            stopped = None
        elif newest:
            stopped = newest
        newest, raw = None, window
    if stopped:
        stops += 1
        frames += [stopped[0]] * stopped[1]
    return frames, stops


RULE = Rule(
    code="TW103",
    name="window-scale-ignored",
    title="the sender reads scaled windows as unscaled, or the reverse",
    severity=Severity.ERROR,
    scope="capture",
    asks=(
        ("direction", (("window_scale_shift", ">=", 0.0), ("window_overrun", ">=", "{times}"))),
        ("direction", (*BOUNDED, ("data_segments", ">=", "{times}"), ("window_utilisation", "<", 0.5))),
        *(("direction", (*seen, ("data_segments", ">=", "{times}"))) for seen in AWAY),
    ),
    limits=("middlebox",),
    judge=judge,
    page=__doc__,
    thresholds={
        "times": Threshold(10, "count", "A flight matches a 16-bit number by chance once or twice, not ten times.")
    },
)
