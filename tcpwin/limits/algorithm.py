"""Which congestion control a direction's sender has: by a snapshot of its socket, else by how its flight moved.

In: a connection, or rows of many. Out: `Algorithm`: name, confidence, and what shows it. None where neither tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.limits.analysis import Analysis
from tcpwin.limits.connection import Connection
from tcpwin.units import count_text, share_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpwin.hosts import SocketSample

FIELDS = ("sender_algorithm", "sender_algorithm_confidence", "window_cuts", "window_cut_mean", "rate_probes")
"""Of a direction: what its packets show."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A sender's congestion control.

    Attributes:
        name: as Linux names it: ``cubic``, ``reno``, ``bbr``, ``dctcp``, and whatever else a snapshot says.
        confidence: ``certain`` from a snapshot; ``likely`` or ``possible`` from the packets.
        source: ``ss`` or ``packets``.
        evidence: what shows it, in words.
    """

    name: str
    confidence: str
    source: str
    evidence: str

    @property
    def is_bbr(self) -> bool:
        """Whether it is BBR, of whatever version."""
        return self.name.startswith("bbr")


def algorithms_of(connection: Connection) -> dict[str, Algorithm | None]:
    """By direction, ``a_to_b`` and ``b_to_a``."""
    sockets = connection.socket_samples
    both = (connection.a_to_b, connection.b_to_a)
    return {
        side: by_samples(sockets.get(side[0], ())) or _by_packets(*(getattr(data, name) for name in FIELDS))
        for side, data in zip(DIRECTIONS, both, strict=True)
    }


def by_samples(samples: Sequence[SocketSample]) -> Algorithm | None:
    """What the last sample of a socket that names one says."""
    named = [name for sample in samples if (name := sample.congestion_control)]
    return Algorithm(named[-1], "certain", "ss", "a snapshot of its socket names it") if named else None


def algorithm_rows(analysis: Analysis, start: int, stop: int) -> Iterator[dict[str, Algorithm | None]]:
    """By packets alone, of the connections from `start` to before `stop`."""
    names = [f"{side}.{field}" for side in DIRECTIONS for field in FIELDS]
    table = analysis.connections.table(names, start=start, stop=stop)
    columns = [table[name].tolist() for name in names]
    for row in zip(*columns, strict=True):
        values = (row[: len(FIELDS)], row[len(FIELDS) :])
        yield {side: _by_packets(*own) for side, own in zip(DIRECTIONS, values, strict=True)}


def _by_packets(name: str | None, confidence: str | None, cuts: int, left: Any, probes: int) -> Algorithm | None:
    if name is None or confidence is None:
        return None
    if name == "bbr" and probes:
        evidence = f"its flight rose and fell back {count_text(probes, 'time')} without a loss"
    elif name == "bbr":
        evidence = f"its flight stayed the same through {count_text(cuts, 'loss', 'losses')}"
    elif name == "dctcp":
        evidence = "marks of congestion cut its flight by little"
    elif cuts:
        evidence = f"{count_text(cuts, 'cut')} of its flight, to {share_text(left)} on average"
    else:
        evidence = "before any loss its flight grew by a twentieth a round trip"
    return Algorithm(name, confidence, "packets", evidence)
