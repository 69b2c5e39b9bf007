"""Words for the items of the time budget and their groups, as every table, legend and column has them.

At most 18 characters each: two columns of a legend fit a phone.
"""

from __future__ import annotations

ITEM_WORDS = {
    "handshake": "handshake",
    "zero_window": "window closed",
    "small_window": "window too small",
    "window_full": "window full",
    "reader": "slow reader",
    "slow_start": "slow start",
    "congestion": "congestion window",
    "after_loss": "cwnd after loss",
    "fast_recovery": "fast recovery",
    "timeout": "timeout",
    "tail": "tail loss",
    "peer_silent": "silent peer",
    "idle_restart": "idle restart",
    "application": "nothing to send",
    "send_buffer": "send buffer",
    "path": "path",
    "policer": "policer",
    "closed": "connection closed",
    "unknown": "not known",
}
GROUP_WORDS = {
    "handshake": "handshake",
    "receiver": "receiver",
    "congestion window": "congestion window",
    "loss": "loss",
    "silent peer": "silent peer",
    "idle restart": "idle restart",
    "application": "nothing to send",
    "send buffer": "send buffer",
    "path": "path",
    "closed": "connection closed",
    "unknown": "not known",
}
