"""Limits in the words that people read, the same everywhere."""

from __future__ import annotations

from tcpwin.units import time_text

LIMIT_NAMES = {
    "receiver_window": "receive window",
    "receiver_application": "slow reader",
    "sender_application": "nothing to send",
    "send_buffer": "send buffer",
    "path_rate": "path rate",
    "path_loss": "loss on the path",
    "path_policer": "policer",
    "congestion_control": "congestion window",
    "idle_restart": "idle restart",
    "retransmission_timer": "timeout",
    "delayed_ack": "delayed ACKs",
    "handshake": "handshake",
    "peer_silent": "silent peer",
    "capture": "not known",
    "none": "nothing",
}
"""Limits by machine name: at most 18 characters, so that two columns of a legend fit a phone."""

FIND_LOSS = "Find where the path loses packets: capture at both ends and run `tcpwin pair A B` on the two captures."
"""What to do first about loss: one capture shows that packets are lost, two show between which points."""
LOSS_ON_THE_PATH = "Find what drops packets {way}: look at interface counters, full queues and policers there."
"""The same where two captures have shown it."""


def read_faster(receiver: str, stop_ns: int = 0) -> str:
    """What to do about a slow reader: the same wherever it is found. The role has its article.

    Args:
        stop_ns: how long it did not read, where it stopped once and is no slow reader otherwise.
    """
    shows = f"`ss -tmi` on {receiver} shows whether unread data (Recv-Q) fills the buffer."
    if stop_ns:
        return f"Find out why {receiver}'s application stopped reading for at least {time_text(stop_ns)}. {shows}"
    return f"Make {receiver}'s application read faster. {shows}"


def find_loss(sender: str) -> str:
    """What to do about loss on the path where the sender's congestion control is not known to be BBR."""
    return f"{FIND_LOSS} Until then, consider BBR on {sender}: it does not treat every loss as congestion."
