"""Impossible statements about a connection, whatever the capture: checks of an analysis against itself.

The engine compares its own numbers with the packets (`tcpwin/engine/src/output/invariants`); these checks compare a
connection's verdict, findings and rates with its time and data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from tcpwin import Analysis
from tcpwin.analysis import Direction
from tcpwin.limits import LIMITS, Connection, Finding, Verdict

NS = 1e-9
MOST_CONNECTIONS = 50
"""Limit for one analysis: an error in one connection usually occurs in others too."""
WAYS = ("a_to_b", "b_to_a")
SETTING = re.compile(r'sysctl -w ([\w.]+)="?([^"]*)"?')
RECEIVE_MEMORY = "net.ipv4.tcp_rmem"


def violations(analysis: Analysis, most: int = MOST_CONNECTIONS, *, findings: bool = True) -> list[str]:
    """Return the impossible statements of an analysis; with `findings`, also those of its rules."""
    found = []
    for connection in islice(analysis.connections, most):
        found += [f"connection {connection.id}: {each}" for each in of_connection(connection, findings)]
    return found


def of_connection(connection: Connection, findings: bool) -> Iterator[str]:
    life_ns = connection.duration_ns
    for way in WAYS:
        data: Direction = getattr(connection, way)
        for each in of_direction(data, life_ns):
            yield f"{way}: {each}"
        items = connection.budget[way].items_ns
        if min(items.values()) < 0 or sum(items.values()) != life_ns:
            yield f"{way}: the budget {sum(items.values())} is not the life {life_ns}"
    if not findings:
        return
    for way, verdict in connection.verdicts.items():
        for each in of_verdict(verdict, life_ns):
            yield f"{way}: {each}"
    spent: dict[tuple[str | None, str], int] = {}
    for finding in connection.findings:
        if not 0 <= finding.cost_ns <= life_ns:
            yield f"{finding.code} costs {finding.cost_ns} of {life_ns}"
        for each in of_remedy(connection, finding):
            yield f"{finding.code}: {each}"
        for item, ns in finding.items_ns.items():
            # No other finding counts the same time.
            spent[finding.direction, item] = spent.get((finding.direction, item), 0) + ns
    for direction in {direction for direction, _ in spent} - {None}:
        together = sum(ns for (other, _), ns in spent.items() if other == direction)
        if together > life_ns:
            yield f"findings of {direction} cost {together} of {life_ns}"
    for (side, item), ns in spent.items():
        if side is not None and ns > connection.budget[side].items_ns[item]:
            yield f"findings of {side} cost {ns} of {item}, which has {connection.budget[side].items_ns[item]}"
    if connection.verdict not in connection.verdicts.values():
        yield "the verdict is that of no direction"


def of_remedy(connection: Connection, finding: Finding) -> Iterator[str]:
    """Reject remedies that name a current setting, or a window that would not raise the rate."""
    if finding.remedy is None:
        return
    host = connection.hosts.get({"client": "a", "server": "b"}.get(finding.side or "", ""))
    settings = {} if host is None or host.settings is None else host.settings.values
    sender = (finding.direction or "a_to_b")[0]
    algorithms = {each.congestion_control for each in connection.socket_samples.get(sender, ())}
    for line in finding.remedy.settings:
        named = SETTING.fullmatch(line)
        if named is None:
            continue
        name, value = named.groups()
        if settings.get(name, "").split() == value.split():
            yield f"{line} is set"
        if name == "net.ipv4.tcp_congestion_control" and algorithms == {value}:
            yield f"{line} is in use"
        if name == RECEIVE_MEMORY and finding.direction is not None:
            verdict = connection.verdicts[finding.direction]
            if verdict.limit == "path_rate" and verdict.second_limit != "receive_window":
                yield f"{line} gives a window to a path that is full"


def of_direction(data: Direction, life_ns: int) -> Iterator[str]:
    if not 0 <= data.recovery_ns <= life_ns:
        yield f"recovery {data.recovery_ns} of {life_ns}"
    if data.stall_at_end_ns > life_ns:
        yield f"a stall of {data.stall_at_end_ns} of {life_ns}"
    lacking = data.missed_bytes
    if data.segments and data.acked_bytes > data.unique_bytes + lacking + 2:
        yield f"{data.acked_bytes} B acknowledged, {data.unique_bytes} B captured, {lacking} B missing"
    if data.goodput_bps is not None and data.throughput_bps is not None and data.unique_bytes and data.segments:
        # Data carried by the capture and missing from it.
        most = data.throughput_bps * (data.unique_bytes + lacking + 2) / max(data.payload_bytes, 1)
        if data.goodput_bps > max(most, data.throughput_bps) * (1 + NS) + 1:
            yield f"goodput {data.goodput_bps} above {most}"


def of_verdict(verdict: Verdict, life_ns: int) -> Iterator[str]:
    if verdict.limit not in LIMITS or verdict.second_limit == verdict.limit:
        yield f"limit {verdict.limit}, second {verdict.second_limit}"
    if not 0 <= verdict.share <= 1:
        yield f"a share of {verdict.share}"
    if not 0 <= verdict.cost_low_ns <= verdict.cost_high_ns <= life_ns:
        yield f"a cost from {verdict.cost_low_ns} to {verdict.cost_high_ns} of {life_ns}"
    if not 0 <= verdict.cost_ns <= life_ns or not 0 <= verdict.lost_ns <= life_ns:
        yield f"a cost of {verdict.cost_ns}, {verdict.lost_ns} lost, of {life_ns}"
    if life_ns and verdict.cost_ns / life_ns - verdict.share > NS:
        yield f"a share of {verdict.share}, a cost of {verdict.cost_ns} of {life_ns}"
    if verdict.is_problem and verdict.limit == "none" and verdict.also is None:
        yield "a problem of no limit"
    if verdict.limit == "none" and verdict.owner != "nobody" and not verdict.is_problem:
        yield f"{verdict.owner} owns no limit"
