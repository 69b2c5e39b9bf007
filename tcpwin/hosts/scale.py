"""Window scales by what the kernel says of its sockets.

In: samples of one side's socket. Out: ScaleClaim for either side: the shift exactly (`wscale:`), and its samples.
A connected socket of which TCP information is shown without `wscale:` does not scale (misc/ss.c, tcp_stats_print: it is
printed when the option was agreed on).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tcpwin.hosts.socket import SocketSample

MAX_SHIFT = 14
"""RFC 7323 2.3: a greater one is no shift."""
SETTLED = frozenset(("ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING"))


@dataclass(frozen=True, slots=True)
class ScaleClaim:
    """A window scale shift that samples of a socket tell.

    Attributes:
        side: whose windows: ``a`` or ``b``.
        shift: 0 where scaling was not agreed on.
        by: the side whose socket said so.
        samples: how many did; `against` said otherwise.
        line: of the first, in its file.
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
    """The shifts that one side's socket tells: of its peer's windows and of its own."""
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
