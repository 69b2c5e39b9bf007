"""The true label of each captured packet, from the model alone, in tcpwin's words."""

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
        label: a cause where it was sent again (spurious where the capture had seen it acknowledged by then),
            out_of_order where it is an original that comes after later ones, network_duplicate where the same packet
            was captured before, new for another original, pure_ack for what carries nothing.
        cause: why its sender sent it again, whatever the capture shows.
        is_visible: some of its bytes, or later ones, were captured before: without that, nothing in the capture
            tells it from an original.
    """

    segment: Segment
    label: str
    cause: Cause | None
    is_visible: bool


def truths(run: Run, side: str) -> list[Truth]:
    """Say what each packet of one side's capture is."""
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
