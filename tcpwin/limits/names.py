"""Advice that several places give in the same words."""

from __future__ import annotations

from tcpwin.units import time_text

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
