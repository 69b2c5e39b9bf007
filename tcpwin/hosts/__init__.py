"""What hosts said of their sockets, counters, memory and settings, as typed samples, and the join with connections.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.hosts.bundle import Bundle, Member
    from tcpwin.hosts.clock import ClockOffset
    from tcpwin.hosts.counters import MEANINGS, CounterDelta, Meaning, deltas
    from tcpwin.hosts.field_distribution import Distribution, distribution, distributions, last_samples
    from tcpwin.hosts.file import SnapshotFile
    from tcpwin.hosts.histogram import Bucket, HistogramSample
    from tcpwin.hosts.join import Disagreement, JoinedSample, Limits, count_disagreements
    from tcpwin.hosts.lines import Unknown, UnknownLine
    from tcpwin.hosts.load import Host, SnapshotFacts
    from tcpwin.hosts.match import Translated
    from tcpwin.hosts.measure import analyze
    from tcpwin.hosts.samples import CounterSample, KernelSample, MemorySample, SettingsSample
    from tcpwin.hosts.scale import ScaleClaim
    from tcpwin.hosts.socket import SocketSample, SocketTimer, SocketUser, UlpInfo
    from tcpwin.hosts.steps import Seen
    from tcpwin.hosts.table import socket_table
    from tcpwin.hosts.throughput import ThroughputSample
    from tcpwin.hosts.windows_host import Autotuning, WindowsSample, autotuning

_HOMES = {
    "measure": ("analyze",),
    "bundle": ("Bundle", "Member"),
    "clock": ("ClockOffset",),
    "counters": ("CounterDelta", "MEANINGS", "Meaning", "deltas"),
    "field_distribution": ("Distribution", "distribution", "distributions", "last_samples"),
    "file": ("SnapshotFile",),
    "histogram": ("Bucket", "HistogramSample"),
    "samples": ("CounterSample", "KernelSample", "MemorySample", "SettingsSample"),
    "join": ("Disagreement", "JoinedSample", "Limits", "count_disagreements"),
    "lines": ("Unknown", "UnknownLine"),
    "load": ("Host", "SnapshotFacts"),
    "match": ("Translated",),
    "scale": ("ScaleClaim",),
    "socket": ("SocketSample", "SocketTimer", "SocketUser", "UlpInfo"),
    "steps": ("Seen",),
    "table": ("socket_table",),
    "throughput": ("ThroughputSample",),
    "windows_host": ("Autotuning", "WindowsSample", "autotuning"),
}

__all__ = [
    "MEANINGS",
    "Autotuning",
    "Bucket",
    "Bundle",
    "ClockOffset",
    "CounterDelta",
    "CounterSample",
    "Disagreement",
    "Distribution",
    "HistogramSample",
    "Host",
    "JoinedSample",
    "KernelSample",
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
    "autotuning",
    "count_disagreements",
    "deltas",
    "distribution",
    "distributions",
    "last_samples",
    "socket_table",
]

__getattr__ = loader(__name__, _HOMES)
