"""Advice that appears in several places."""

from __future__ import annotations

from tcpwin.units import time_text

FIND_LOSS = "Find where the path loses packets: capture at both ends and run `tcpwin pair A B` on the two captures."
"""First step against loss: one capture shows that packets are lost, two show between which points."""
LOSS_ON_THE_PATH = "Find what drops packets {where}: look at interface counters, full queues and policers there."
"""Next step against loss, once two captures have located it."""


def read_faster(receiver: str, stop_ns: int = 0) -> str:
    """Return the advice for a slow reader. The role includes its article.

    Args:
        stop_ns: duration of the only stop, if it reads well otherwise.
    """
    shows = f"`ss -tmi` on {receiver} shows whether unread data (Recv-Q) fills the buffer."
    if stop_ns:
        return f"Find out why {receiver}'s application stopped reading for at least {time_text(stop_ns)}. {shows}"
    return f"Make {receiver}'s application read faster. {shows}"


def find_loss(sender: str) -> str:
    """Return the advice for loss on the path, if the sender's congestion control is not known to be BBR."""
    return f"{FIND_LOSS} Until then, consider BBR on {sender}: it does not treat every loss as congestion."
