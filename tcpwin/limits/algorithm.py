"""Identify a sender's congestion control from a snapshot of its socket, else from the behaviour of its flight.

In: a connection, or rows of many. Out: `Algorithm` with name, confidence and evidence, or None if neither shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.limits.connection import Connection
from tcpwin.units import count_text, share_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpwin.hosts import SocketSample

FIELDS = ("sender_algorithm", "sender_algorithm_confidence", "window_cuts", "window_cut_mean", "rate_probes")
"""Fields of a direction that its packets determine."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A sender's congestion control.

    Attributes:
        name: Linux's name: ``cubic``, ``reno``, ``bbr``, ``dctcp``, or any other in a snapshot.
        confidence: ``certain`` from a snapshot; ``likely`` or ``possible`` from the packets.
        source: ``ss`` or ``packets``.
        evidence: the evidence, as a clause.
    """

    name: str
    confidence: str
    source: str
    evidence: str

    @property
    def is_bbr(self) -> bool:
        """Whether it is any version of BBR."""
        return self.name.startswith("bbr")


def algorithms_of(connection: Connection) -> dict[str, Algorithm | None]:
    """Identify both senders' algorithms, by direction ``a_to_b`` and ``b_to_a``."""
    sockets = connection.socket_samples
    both = (connection.a_to_b, connection.b_to_a)
    return {
        side: by_samples(sockets.get(side[0], ())) or by_packets(*(getattr(data, name) for name in FIELDS))
        for side, data in zip(DIRECTIONS, both, strict=True)
    }


def by_samples(samples: Sequence[SocketSample]) -> Algorithm | None:
    """Return the algorithm named by the last sample that names one."""
    named = [name for sample in samples if (name := sample.congestion_control)]
    return Algorithm(named[-1], "certain", "ss", "a snapshot of its socket names it") if named else None


def by_packets(name: str | None, confidence: str | None, cuts: int, left: Any, probes: int) -> Algorithm | None:
    """Infer a congestion control from the values of `FIELDS`; None if the packets show none."""
    if name is None or confidence is None:
        return None
    if name == "bbr" and probes:
        evidence = f"its flight rose and fell back {count_text(probes, 'time')} without a loss"
    elif name == "bbr":
        evidence = f"its flight stayed the same through {count_text(cuts, 'loss', 'losses')}"
    elif name == "dctcp":
        evidence = "congestion marks cut its flight only slightly"
    elif cuts:
        evidence = f"its flight was cut {count_text(cuts, 'time')}, to {share_text(left)} on average"
    else:
        evidence = "before any loss its flight grew by a twentieth per round trip"
    return Algorithm(name, confidence, "packets", evidence)
