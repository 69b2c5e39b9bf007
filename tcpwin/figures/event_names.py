"""Names of segment events, for hover texts and packet comments."""

from __future__ import annotations

CAUSE_WORDS = {
    "fast": "fast retransmission",
    "recovery": "retransmitted in recovery",
    "lost_retransmission": "retransmission of a lost retransmission",
    "rto": "retransmitted after a timeout",
    "go_back_n": "retransmitted following a timeout",
    "tail_loss_probe": "tail loss probe",
    "spurious": "retransmitted needlessly",
    "syn": "SYN again",
    "syn_ack": "SYN/ACK again",
    "fin": "FIN again",
    "fast_open": "retransmitted SYN data, not covered by the SYN/ACK",
    "zero_window": "retransmitted into a closed window",
    "unknown": "retransmitted, cause unknown",
    "out_of_order": "out of order",
    "capture_reordered": "reordered by the capture",
}
"""Names of the causes of retransmitted or late segments."""
EVENT_WORDS = {
    "duplicate_ack": "duplicate ACK",
    "zero_window_probe": "zero-window probe",
    "zero_window_probe_ack": "ACK of a zero-window probe",
    "keep_alive": "keep-alive",
    "keep_alive_ack": "ACK of a keep-alive",
    "acked_unseen": "ACK of data missing from the capture",
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
"""Names of events that differ from their identifiers."""


def event_words(name: str) -> str:
    """Return the name of an event."""
    return EVENT_WORDS.get(name, name.replace("_", " "))
