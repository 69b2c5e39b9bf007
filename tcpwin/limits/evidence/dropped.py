"""Findings from a host's counters for overrun receive buffers, and the connection they refer to.

In: a Host and a case of the capture. Out: the connection, if only one is possible; the finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpwin.analysis import DirectionName
from tcpwin.limits.case import Case
from tcpwin.limits.evidence.receive_buffer import more_overhead
from tcpwin.limits.finding import Evidence, Finding

if TYPE_CHECKING:
    from tcpwin.hosts import Host

COLLAPSED = ("TcpExtPruneCalled", "TcpExtTCPRcvCollapsed")
DROPPED = ("TcpExtTCPRcvQDrop", "TcpExtTCPOFODrop", "TcpExtRcvPruned", "TcpExtOfoPruned")
"""Packets dropped for lack of receive memory: in order, out of order, and already queued (`tcp_data_queue`,
`tcp_data_queue_ofo` and `tcp_prune_queue`, net/ipv4/tcp_input.c). OfoPruned counts events."""
LOSS_ITEMS = ("fast_recovery", "tail", "timeout", "after_loss")
LOST_SHARE = 0.01
"""Share of the retransmitted segments: a card merges up to 45 segments into a packet, which is dropped as one."""
BULK_BYTES = 100_000
"""Less fits any default receive buffer, so it cannot have filled one."""
PUBLISHED = "a minute of Cloudflare's oscillating reader at 300 ms with tcp_rmem of 170 MiB and tcp_adv_win_scale 2"
"""Optimizing TCP for high WAN throughput while preserving low latency, 2022: the run behind the published numbers."""


def only_receiver(case: Case, host: Host) -> Case:
    """Return the case of the only connection that brought the host much data, or the capture's case.

    Counters belong to a host: with one such connection in the capture they are likely, not certainly, its counts.
    """
    found = []
    for match in host.found:
        connection = case.analysis.connections[match.connection]
        way: DirectionName = "a_to_b" if match.side == "b" else "b_to_a"
        if (connection.a_to_b if way == "a_to_b" else connection.b_to_a).acked_bytes >= BULK_BYTES:
            found.append((connection, way))
    if len(found) != 1:
        return case
    return replace(case, subject=found[0][0], direction=found[0][1])


def short_of_memory(case: Case, host: Host, did: str, grown: Mapping[str, int], *, is_loss: bool = False) -> Finding:
    """Return the finding that a host ran out of receive memory.

    Args:
        did: what its kernel did, as the rest of the sentence.
        grown: the counters that show it.
        is_loss: whether they count lost data, and the time lost to losses is theirs.
    """
    judged = only_receiver(case, host)
    cost_ns = 0
    if is_loss and judged.subject is not None and sum(grown.values()) >= LOST_SHARE * judged.data.resent_segments:
        cost_ns = sum(getattr(judged.data, f"budget_{item}_ns") for item in LOSS_ITEMS)
    side = judged.receiver if judged.subject is not None else None
    name = host.label or "a host"
    whose = name if side is None else judged.the(side)
    return judged.finding(
        f"{whose}'s kernel {did}",
        owner="host",
        side=side,
        confidence="certain" if side is None else "likely",
        limits=("receiver_memory",) if cost_ns else (),
        cost_ns=cost_ns,
        evidence=Evidence(
            values={"host": name, **grown}, ruled_out="Not loss on the network: these counters do not count it."
        ),
        remedy=more_overhead(host, whose),
    )
