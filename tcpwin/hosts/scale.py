"""Window scales from the kernel's socket data.

In: samples of one side's socket. Out: ScaleClaim for either side: the exact shift (`wscale:`), and its samples. A
connected socket whose TCP information lacks `wscale:` does not scale (misc/ss.c, tcp_stats_print prints it if the
option was negotiated).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tcpwin.hosts.socket import SocketSample

MAX_SHIFT = 14
"""Maximum shift (RFC 7323 2.3)."""
SETTLED = frozenset(("ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING"))


@dataclass(frozen=True, slots=True)
class ScaleClaim:
    """A window scale shift according to a socket's samples.

    Attributes:
        side: side whose windows are scaled, ``a`` or ``b``.
        shift: 0 if scaling was not negotiated.
        by: the side of the socket.
        samples: number of samples with it; `against` contradict it.
        line: line of the first one in its file.
    """

    side: str
    shift: int
    by: str
    samples: int
    against: int
    line: int

    @property
    def is_exact(self) -> bool:
        """Whether all samples agree."""
        return self.against == 0


def find_scale(side: str, samples: list[SocketSample]) -> list[ScaleClaim]:
    """Return the shifts that one side's socket reports: the peer's and its own."""
    peer = "b" if side == "a" else "a"
    told = [
        each
        for each in samples
        if each.state in SETTLED
        and each.congestion_control is not None
        and "wscale" not in each.extra
        and all(0 <= (shift or 0) <= MAX_SHIFT for shift in (each.snd_wscale, each.rcv_wscale))
    ]
    if not told:
        return []
    pairs = [(each.snd_wscale or 0, each.rcv_wscale or 0) for each in told]
    [(usual, count)] = Counter(pairs).most_common(1)
    first = told[pairs.index(usual)].line
    return [
        ScaleClaim(whose, shift, side, count, len(pairs) - count, first)
        for whose, shift in zip((peer, side), usual, strict=True)
    ]
