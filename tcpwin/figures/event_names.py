"""What happened at a segment, in words: hover texts and comments of packets say the same."""

from __future__ import annotations

CAUSE_WORDS = {
    "fast": "fast retransmission",
    "recovery": "sent again in recovery",
    "lost_retransmission": "sent again, lost again",
    "rto": "sent again after a timeout",
    "go_back_n": "sent again in the wake of a timeout",
    "tail_loss_probe": "tail loss probe",
    "spurious": "sent again needlessly",
    "syn": "SYN again",
    "syn_ack": "SYN/ACK again",
    "fin": "FIN again",
    "fast_open": "the SYN's data again, left out by the SYN/ACK",
    "zero_window": "sent again into a closed window",
    "unknown": "sent again, cause unknown",
    "out_of_order": "out of order",
    "capture_reordered": "reordered by the capture",
}
"""Why a segment came again or late."""
EVENT_WORDS = {
    "duplicate_ack": "duplicate ACK",
    "zero_window_probe": "zero-window probe",
    "zero_window_probe_ack": "ACK of a zero-window probe",
    "keep_alive": "keep-alive",
    "keep_alive_ack": "ACK of a keep-alive",
    "previous_segment_missing": "the segment before is missing",
    "acked_unseen": "ACK of data that the capture does not hold",
    "capture_duplicate": "duplicate made by the capture",
    "window_shrink": "window shrunk",
    "sub_mss_window": "window below one segment",
    "idle_restart": "restart after an idle gap",
    "dsack": "DSACK",
    "partial_ack": "partial ACK",
    "delayed_ack": "delayed ACK",
    "congestion_experienced": "congestion experienced (ECN)",
    "congestion_echo": "congestion echo (ECE)",
    "window_reduced": "congestion window reduced (CWR)",
}
"""Events whose name is not what they are called."""


def event_words(name: str) -> str:
    """What an event is called."""
    return EVENT_WORDS.get(name, name.replace("_", " "))
