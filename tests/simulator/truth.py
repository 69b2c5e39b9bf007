"""The true label of each captured packet, from the model alone, in tcpwin's terms."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.run import Run
from simulator.segment import Cause, Segment

NEW = "new"
OUT_OF_ORDER = "out_of_order"
NETWORK_DUPLICATE = "network_duplicate"
SPURIOUS = "spurious"
PURE_ACK = "pure_ack"
CAUSES = (*Cause, SPURIOUS)


@dataclass(frozen=True, slots=True)
class Truth:
    """One captured packet.

    Attributes:
        label: a cause if it is a retransmission (spurious if the capture had seen it acknowledged by then),
            out_of_order for an original that arrives after later ones, network_duplicate if the same packet was
            captured before, new for another original, pure_ack for a packet without content.
        cause: the sender's reason, whatever the capture shows.
        is_visible: some of its bytes, or later ones, were captured before; otherwise nothing distinguishes it from an
            original.
    """

    segment: Segment
    label: str
    cause: Cause | None
    is_visible: bool


def truths(run: Run, side: str) -> list[Truth]:
    """Return the truth about each packet of one side's capture."""
    seen: set[int] = set()
    # One past the last byte captured, and the highest byte acknowledged, of each side's data.
    end = {"a": -1, "b": -1}
    acked = {"a": 0, "b": 0}
    found = []
    for captured in run.captures[side]:
        segment = captured.segment
        other = "b" if segment.side == "a" else "a"
        is_visible = segment.seq < end[segment.side]
        found.append(Truth(segment, _label(segment, is_visible, seen, acked), segment.cause, is_visible))
        seen.add(id(segment))
        if not segment.is_pure_ack:
            end[segment.side] = max(end[segment.side], segment.end)
        if segment.ack is not None:
            acked[other] = max(acked[other], segment.ack)
    return found


def _label(segment: Segment, is_visible: bool, seen: set[int], acked: dict[str, int]) -> str:
    if segment.is_pure_ack:
        return PURE_ACK
    if id(segment) in seen:
        return NETWORK_DUPLICATE
    if segment.cause is None:
        return OUT_OF_ORDER if is_visible else NEW
    if not segment.syn and segment.end <= acked[segment.side]:
        return SPURIOUS
    return segment.cause
