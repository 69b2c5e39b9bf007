"""Detect captures that contain a direction's packets twice: at one end, and later at the other.

In: a case. Out: the delay of the copy, or None. It reads events only if the handshake was sent twice.
"""

from __future__ import annotations

from pathlib import Path

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.events import events_of

SOONEST_NS = 500_000_000
"""A SYN is retransmitted after one second (RFC 6298 §2.1; Linux's TCP_TIMEOUT_INIT): an earlier one is a copy."""
FEWEST_SEGMENTS = 10
"""With fewer segments, a few real losses may reach the share."""
DOUBLED_SHARE = 0.4
"""Share of the data that appears retransmitted: in a doubled capture half of all segments are copies."""


def copied_after_ns(case: Case) -> int | None:
    """Return how long after each side's SYN its copy was captured, the longer of both, or None if there is no copy."""
    data, back = case.data, case.back
    if not (data.syn_retransmissions and back.syn_retransmissions):
        return None
    if data.data_segments < FEWEST_SEGMENTS or data.retransmissions < DOUBLED_SHARE * data.data_segments:
        return None
    first: dict[str, int] = {}
    for event in events_of(case, "syn_retransmission"):
        if event.age_ns is not None:
            first.setdefault(event.direction, event.age_ns)
    if len(first) < 2 or max(first.values()) >= SOONEST_NS:
        return None
    return max(first.values())


def pair_command(case: Case) -> str:
    """Return the command that splits the case's capture by vantage point and pairs the parts."""
    import shlex

    name = case.analysis.name
    return f"tcpwin pair {shlex.quote(name) if Path(name).is_file() else 'FILE'}"
