"""A verdict's machine names in the words of pages."""

from collections.abc import Mapping
from typing import Any

LIMIT_WORDS = {
    "receiver_window": "receive window",
    "receiver_application": "slow reader",
    "sender_application": "nothing to send",
    "send_buffer": "send buffer",
    "path_rate": "path rate",
    "path_loss": "path loss",
    "path_policer": "policer",
    "congestion_control": "congestion window",
    "idle_restart": "slow start after idle",
    "retransmission_timer": "retransmission timer",
    "delayed_ack": "delayed ACKs",
    "handshake": "handshake",
    "peer_silent": "silent peer",
    "capture": "not known",
    "none": "nothing",
}
"""Each limit in a word or two."""
OWNER_WORDS = {
    "client_application": "the client's application",
    "server_application": "the server's application",
    "client_host": "the client's host",
    "server_host": "the server's host",
    "application": "the application",
    "host": "the host",
    "network": "the network path",
    "nobody": "nobody",
}


def limit_words(verdict: Mapping[str, Any]) -> str:
    """What limited a connection, with the second limit where there is one."""
    named = [verdict["limit"], *([verdict["second_limit"]] if verdict["second_limit"] else [])]
    return " and ".join(LIMIT_WORDS[each] for each in named)


def problem_words(verdict: Mapping[str, Any]) -> str:
    """What lost the time of a connection with a problem."""
    return LIMIT_WORDS[verdict["also"] or verdict["limit"]]
