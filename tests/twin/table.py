"""Segments → the rows of `tcpwin packets`, column for column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twin.connections import Taken, Tracker
from twin.frames import Tool, read_frames
from twin.segments import Segment, read_segments

Row = dict[str, int | str | None]

EVENTS = (
    "zero_window",
    "window_full",
    "window_update",
    "zero_window_probe",
    "zero_window_probe_ack",
    "keep_alive",
    "keep_alive_ack",
    "duplicate_ack",
    "out_of_order",
    "previous_segment_missing",
    "acked_unseen",
    "retransmission",
    "fast_retransmission",
    "rto_retransmission",
    "tail_loss_probe",
    "spurious_retransmission",
    "syn_retransmission",
    "capture_duplicate",
    "window_shrink",
    "sub_mss_window",
    "idle_restart",
    "dsack",
    "partial_ack",
    "delayed_ack",
    "capture_reordered",
    "recovery_retransmission",
    "go_back_n",
    "lost_retransmission",
    "congestion_experienced",
    "congestion_echo",
    "window_reduced",
)
"""In the order in which the column joins them."""


def read_table(path: Path, tool: Tool) -> Iterator[Row]:
    """Return the rows of a capture in order."""
    tracker = Tracker()
    for segment in read_segments(read_frames(path, tool)):
        yield row_of(segment, tracker.track(segment))


def row_of(segment: Segment, taken: Taken) -> Row:
    """Return the row of a segment, from the state just after it."""
    sent = taken.connection.directions[taken.side]
    shift = 0 if segment.is_syn else sent.shift
    return {
        "frame": segment.frame,
        "time_ns": segment.time_ns,
        "connection": taken.connection.number,
        "direction": "a" if taken.side == taken.connection.initiator else "b",
        "src": segment.src,
        "sport": segment.sport,
        "dst": segment.dst,
        "dport": segment.dport,
        "seq": segment.seq,
        "ack": segment.ack,
        "length": segment.length,
        "flags": segment.flags,
        "window_raw": segment.window,
        "window": None if shift is None else segment.window << shift,
        "shift": shift,
        "bytes_in_flight": sent.flight.bytes,
        "pipe": sent.flight.pipe,
        "rtt_ns": taken.rtt_ns,
        "events": "|".join(name for name in EVENTS if name in taken.events),
    }
