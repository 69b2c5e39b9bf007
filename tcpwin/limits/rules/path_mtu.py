"""## What it finds

Segments above a certain size never arrived, while smaller ones did: the path carries no larger packets.

## Why it matters

The handshake and small messages pass, and then the transfer stops as soon as a full segment is sent. The sender repeats
it, waits twice as long each time, and often gives up. Tunnels, VPNs and PPPoE lower the path's MTU; path MTU discovery
(RFC 1191, RFC 8201) needs the router's ICMP error, which firewalls often drop (RFC 2923).

## How it is judged

The largest payload that arrived is compared with the smallest that never did, counting acknowledgments and SACK. At
least three larger segments must have been lost, at three different times, and nothing as large may have arrived from
then on, while smaller segments did and hardly any was lost; often the same bytes arrive at once when they are sent in
smaller pieces. If only large segments were sent, other connections of the same hosts show it: they were set up
meanwhile, and stuck in the same way. Super-segments (TSO, GRO) must have been lost five times, and none may ever have
arrived. An ICMP error "fragmentation needed" or "packet too big" that quotes one of the sender's segments proves it,
with the MTU. The cost is the time from the first copy of a lost segment to its acknowledgment; below `cost_ns`, path
MTU discovery worked, and the finding only explains.

## When it is wrong

Without an ICMP error, a sender that happened to lose exactly its large segments looks the same; with three losses at
three times this is unlikely. A policer with a bucket smaller than a packet also drops by size.

## What to do

Clamp the MSS to the path's MTU at the tunnel or router (`--clamp-mss-to-pmtu`), in both directions; let ICMP
"fragmentation needed" and "packet too big" through to the sender; or lower the sender's MTU. On Linux,
`net.ipv4.tcp_mtu_probing=1` finds the size without ICMP. If segments larger than the MSS are lost, a device merges
segments (GRO or LRO) that it cannot forward: switch that off there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.sizes import SizeLimit, find_size_limit
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text, time_text

WIDE_BYTES = 100
"""Bounds further apart leave the MTU to be measured."""


def judge(case: Case) -> Iterator[Finding]:
    found = find_size_limit(case)
    if found is None or (not found.errors and found.waited_ns < case.settings["cost_ns"]):
        return
    is_costly = found.waited_ns >= case.settings["cost_ns"]
    yield case.finding(
        _text(case, found),
        owner="network",
        side=case.sender,
        confidence="certain" if found.mtu is not None else "likely",
        cost_ns=found.cost_ns,
        severity=None if is_costly else Severity.INFO,
        evidence=Evidence(
            frames=found.frames,
            start_ns=found.spans[0][0] if found.spans else None,
            end_ns=found.spans[-1][1] if found.spans else None,
            values={
                "largest_arrived_bytes": found.arrived_bytes,
                "smallest_lost_bytes": found.lost_bytes,
                "lost": found.lost,
                "arrived": found.arrived,
                "icmp_errors": len(found.errors),
                **({"path_mtu_bytes": found.mtu} if found.mtu is not None else {}),
            },
            ruled_out="Not loss by chance, which takes segments of any size.",
        ),
        remedy=_remedy(case, found) if is_costly else None,
    )


def _text(case: Case, found: SizeLimit) -> str:
    waited = f"the data in them waited {time_text(found.waited_ns)}"
    if found.mtu is not None:
        by = found.errors[0].reporter
        refused = count_text(len(found.errors), "segment")
        size = f" of {found.lost_bytes:,} bytes or more" if found.lost_bytes else ""
        return (
            f"The path from {case.the_sender} carries packets of {found.mtu:,} bytes at most: {by} refused {refused}"
            f"{size} (ICMP {found.errors[0].text}); {waited}"
        )
    least, most = found.mtu_bounds
    if not found.arrived:
        return (
            f"Segments of {found.lost_bytes:,} bytes or more from {case.the_sender} never arrived ({found.lost:,} of "
            f"{found.lost:,} lost), on this connection and on others of the same hosts, while new connections were set "
            f"up: the path carries packets of less than {most + 1:,} bytes; {waited}{_uneven(case, found)}"
        )
    by_merging = " No device on the path forwards segments that were merged" if found.is_super else ""
    return (
        f"Segments of {found.lost_bytes:,} bytes from {case.the_sender} never arrived ({found.lost:,} of "
        f"{found.lost:,} lost), while those of up to {found.arrived_bytes:,} bytes did ({found.arrived:,}): the path "
        f"carries packets of at most {least:,} to {most:,} bytes; {waited}{_uneven(case, found)}.{by_merging}"
    ).rstrip(".")


def _uneven(case: Case, found: SizeLimit) -> str:
    """Describe MSS options that differ by direction: a device clamps only one of the SYNs."""
    own, other = found.mss
    if own < 0 or other < 0 or own == other:
        return ""
    return f". The SYNs name different MSS values ({case.the_sender} {own:,}, {case.the_receiver} {other:,})"


def _remedy(case: Case, found: SizeLimit) -> Remedy:
    if found.is_super:
        return Remedy(
            "Switch off GRO and LRO on the routers, bridges and virtual switches of the path: one of them merges "
            f"segments into packets larger than its next link's MTU. Until then, switch off TSO at {case.the_sender}.",
            settings=("ethtool -K <interface> gro off lro off", "ethtool -K <interface> tso off gso off"),
            side_effects="More packets per second: forwarding costs more CPU.",
        )
    size = found.mtu if found.mtu is not None else found.mtu_bounds[0]
    clamp = size - (60 if case.connection.ip_version == 6 else 40)
    icmp = "packet too big" if case.connection.ip_version == 6 else "fragmentation needed"
    least, most = found.mtu_bounds
    if found.mtu is not None:
        advice = f"Clamp the MSS to {clamp:,} bytes in both directions where the path's MTU falls"
    elif found.arrived and most - least > WIDE_BYTES:
        advice = (
            f"Find the path's MTU, between {least:,} and {most:,} bytes (`ping -M do -s SIZE`), and clamp the MSS in "
            f"both directions where it falls (an MSS of {clamp:,} bytes is known to pass)"
        )
    else:
        to = f" to {clamp:,} bytes" if found.arrived else ""
        advice = f"Clamp the MSS{to} in both directions where the path's MTU falls"
    if found.mtu is not None and case.data.view == "sender":
        others = (
            f"Or lower the MTU of {case.the_sender}'s interface. The ICMP errors do arrive there, but finding the size "
            "again costs time whenever the path is new."
        )
    else:
        others = (
            f'Alternatively, let ICMP "{icmp}" through to {case.the_sender}, switch on tcp_mtu_probing there (it needs '
            "no ICMP), or lower the MTU of its interface."
        )
    return Remedy(
        f"{advice}. {others}",
        settings=(
            "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "sysctl -w net.ipv4.tcp_mtu_probing=1",
        ),
        side_effects="Smaller segments carry slightly more header bytes.",
    )


RULE = Rule(
    code="TW312",
    name="path-mtu",
    title="the path carries no packets of this size",
    severity=Severity.ERROR,
    scope="direction",
    limits=("path_mtu",),
    judge=judge,
    page=__doc__,
    when=(("retransmissions", ">=", 1),),
    thresholds={
        "cost_ns": Threshold(200_000_000, "ns", "Path MTU discovery that works costs one round trip."),
    },
)
