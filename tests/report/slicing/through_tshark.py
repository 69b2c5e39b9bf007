"""Read a capture through tshark: one row per frame, and its comments."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from live import HANG_S

TIMED = ("frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "frame.encap_type")
ANALYSIS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "duplicate_ack_num",
    "window_full",
    "window_update",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "keep_alive",
    "keep_alive_ack",
    "bytes_in_flight",
    "push_bytes_sent",
    "ack_rtt",
    "initial_rtt",
)
FLAGS = tuple(f"tcp.analysis.{name}" for name in ANALYSIS)
SEGMENTS = ("tcp.srcport", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size", "tcp.time_relative")


def rows(tshark: str, capture: Path, fields: Sequence[str], display: str = "") -> list[list[str]]:
    """Return these fields of each frame that passes a display filter."""
    chosen = [part for name in fields for part in ("-e", name)]
    command = [tshark, "-n", "-r", str(capture), "-T", "fields", "-E", "separator=/t", *chosen]
    done = subprocess.run(
        [*command, "-Y", display] if display else command, capture_output=True, check=True, timeout=HANG_S
    )
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def comments(tshark: str, capture: Path) -> dict[int, str]:
    """Return the joined comments of each frame that has any."""
    return {
        int(number): text for number, text in rows(tshark, capture, ("frame.number", "frame.comment"), "frame.comment")
    }
