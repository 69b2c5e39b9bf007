"""ECN: what two SYNs negotiate, and which segments carry marks (RFC 3168, RFC 9768)."""

from __future__ import annotations

from twin.scale import Syn
from twin.segments import Segment

ECE, CWR, AE = 0x40, 0x80, 0x100
MARKED = 3
"""Congestion experienced, in the two ECN bits of the IP header (RFC 3168 §5)."""
ACCURATE_ANSWERS = (CWR, CWR | ECE, AE, AE | CWR)
"""RFC 9768 §3.1.1, table 2: answers of a server that counts."""


def is_classic(one: Syn, other: Syn, segment: Segment) -> bool:
    """Return whether ECE and CWR have their meaning of RFC 3168 §6.1; without both SYNs, unless the counter's third
    bit is set.
    """
    asked, answered = (other, one) if one.is_answer else (one, other)
    if asked.is_answer or not answered.is_answer:
        return not segment.flags & AE
    if asked.ecn not in (ECE | CWR, AE | CWR | ECE):
        return False
    is_accurate = asked.ecn & AE and answered.ecn in ACCURATE_ANSWERS
    return not is_accurate and answered.ecn in (ECE, *((AE | ECE,) if asked.ecn & AE else ()))


def marks(sent: Syn, acked: Syn, segment: Segment) -> set[str]:
    """Return the events of a segment after the handshake."""
    found = {"congestion_experienced"} if segment.traffic_class & 3 == MARKED else set()
    if segment.flags & (ECE | CWR) and is_classic(sent, acked, segment):
        if segment.flags & ECE and segment.is_ack:
            found.add("congestion_echo")
        if segment.flags & CWR:
            found.add("window_reduced")
    return found
