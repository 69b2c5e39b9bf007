"""Whether the capture holds the packets of a direction twice: at its one end, and later at the other.

In: a case. Out: how much later the copy comes, or None. It reads events only where the handshake was sent twice.
"""

from __future__ import annotations

from pathlib import Path

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.events import events_of

SOONEST_NS = 500_000_000
"""A SYN is sent again after a second (RFC 6298 §2.1; Linux's TCP_TIMEOUT_INIT): sooner it is a copy."""
FEWEST_SEGMENTS = 10
"""Of fewer segments a few that were really lost may be two in five."""
DOUBLED_SHARE = 0.4
"""Of the data, sent again: half of what is captured are copies."""


def copied_after_ns(case: Case) -> int | None:
    """How long after its SYN each side's SYN is in the capture again; the longer of both. None where it is no copy."""
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
    """The command that splits the case's capture into those of both ends, and pairs them."""
    import shlex

    name = case.analysis.name
    return f"tcpwin pair {shlex.quote(name) if Path(name).is_file() else 'FILE'}"
