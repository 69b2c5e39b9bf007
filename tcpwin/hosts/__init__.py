"""What hosts said of their sockets, counters, memory and settings, as typed samples, and the join with connections.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.hosts.bundle import Bundle, Member
    from tcpwin.hosts.bundle_capture import ARCHIVES, captures_of, is_bundle, open_capture, opened, rings_of
    from tcpwin.hosts.clock import ClockOffset
    from tcpwin.hosts.counter_sources import names_in_order
    from tcpwin.hosts.counters import GAUGES, MEANINGS, CounterDelta, Meaning, deltas, falls
    from tcpwin.hosts.document import describe_host, describe_joined
    from tcpwin.hosts.field_distribution import (
        AMOUNTS,
        FIELDS,
        KEPT_SOCKETS,
        Distribution,
        LastSamples,
        distribution,
        distributions,
        last_samples,
        number_of,
    )
    from tcpwin.hosts.file import SnapshotFile
    from tcpwin.hosts.format import formats_of
    from tcpwin.hosts.given_scales import read_scales
    from tcpwin.hosts.histogram import Bucket, HistogramSample
    from tcpwin.hosts.join import Disagreement, JoinedSample, Limits, count_disagreements
    from tcpwin.hosts.joined import Joined
    from tcpwin.hosts.lines import Unknown, UnknownLine
    from tcpwin.hosts.load import Host, SnapshotFacts, not_read
    from tcpwin.hosts.match import Translated
    from tcpwin.hosts.measure import analyze, analyze_again
    from tcpwin.hosts.rows import check_extra, write_rows
    from tcpwin.hosts.samples import CounterSample, KernelSample, MemorySample, SettingsSample
    from tcpwin.hosts.scale import ScaleClaim
    from tcpwin.hosts.socket import SocketSample, SocketTimer, SocketUser, UlpInfo
    from tcpwin.hosts.steps import Seen
    from tcpwin.hosts.table import (
        COUNTER_KINDS,
        SOCKET_KINDS,
        CounterRow,
        CounterSteps,
        counter_rows,
        plain_rows,
        sample_rows,
        socket_object,
        socket_table,
        socket_values,
    )
    from tcpwin.hosts.throughput import ThroughputSample
    from tcpwin.hosts.windows_host import Autotuning, WindowsSample, autotuning

_HOMES = {
    "bundle": (
        "Bundle",
        "Member",
    ),
    "bundle_capture": (
        "ARCHIVES",
        "captures_of",
        "is_bundle",
        "rings_of",
        "open_capture",
        "opened",
    ),
    "clock": ("ClockOffset",),
    "counter_sources": ("names_in_order",),
    "counters": (
        "CounterDelta",
        "GAUGES",
        "MEANINGS",
        "Meaning",
        "deltas",
        "falls",
    ),
    "document": (
        "describe_host",
        "describe_joined",
    ),
    "field_distribution": (
        "AMOUNTS",
        "Distribution",
        "FIELDS",
        "KEPT_SOCKETS",
        "LastSamples",
        "distribution",
        "distributions",
        "last_samples",
        "number_of",
    ),
    "file": ("SnapshotFile",),
    "given_scales": ("read_scales",),
    "histogram": (
        "Bucket",
        "HistogramSample",
    ),
    "join": (
        "Disagreement",
        "JoinedSample",
        "Limits",
        "count_disagreements",
    ),
    "joined": ("Joined",),
    "lines": (
        "Unknown",
        "UnknownLine",
    ),
    "load": (
        "Host",
        "SnapshotFacts",
        "not_read",
    ),
    "match": ("Translated",),
    "measure": ("analyze", "analyze_again"),
    "rows": (
        "check_extra",
        "write_rows",
    ),
    "samples": (
        "CounterSample",
        "KernelSample",
        "MemorySample",
        "SettingsSample",
    ),
    "scale": ("ScaleClaim",),
    "socket": (
        "SocketSample",
        "SocketTimer",
        "SocketUser",
        "UlpInfo",
    ),
    "steps": ("Seen",),
    "table": (
        "COUNTER_KINDS",
        "CounterRow",
        "CounterSteps",
        "SOCKET_KINDS",
        "counter_rows",
        "plain_rows",
        "sample_rows",
        "socket_object",
        "socket_table",
        "socket_values",
    ),
    "format": ("formats_of",),
    "throughput": ("ThroughputSample",),
    "windows_host": (
        "Autotuning",
        "WindowsSample",
        "autotuning",
    ),
}

__all__ = [
    "AMOUNTS",
    "ARCHIVES",
    "COUNTER_KINDS",
    "FIELDS",
    "GAUGES",
    "KEPT_SOCKETS",
    "MEANINGS",
    "SOCKET_KINDS",
    "Autotuning",
    "Bucket",
    "Bundle",
    "ClockOffset",
    "CounterDelta",
    "CounterRow",
    "CounterSample",
    "CounterSteps",
    "Disagreement",
    "Distribution",
    "HistogramSample",
    "Host",
    "Joined",
    "JoinedSample",
    "KernelSample",
    "LastSamples",
    "Limits",
    "Meaning",
    "Member",
    "MemorySample",
    "ScaleClaim",
    "Seen",
    "SettingsSample",
    "SnapshotFacts",
    "SnapshotFile",
    "SocketSample",
    "SocketTimer",
    "SocketUser",
    "ThroughputSample",
    "Translated",
    "UlpInfo",
    "Unknown",
    "UnknownLine",
    "WindowsSample",
    "analyze",
    "analyze_again",
    "autotuning",
    "captures_of",
    "check_extra",
    "count_disagreements",
    "counter_rows",
    "deltas",
    "describe_host",
    "describe_joined",
    "distribution",
    "distributions",
    "falls",
    "formats_of",
    "is_bundle",
    "last_samples",
    "names_in_order",
    "not_read",
    "number_of",
    "open_capture",
    "opened",
    "plain_rows",
    "read_scales",
    "rings_of",
    "sample_rows",
    "socket_object",
    "socket_table",
    "socket_values",
    "write_rows",
]

__getattr__ = loader(__name__, _HOMES)
