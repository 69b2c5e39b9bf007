"""What hosts said of their sockets, counters, memory and settings, as typed samples, and the join with connections.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin._lazy import loader

if TYPE_CHECKING:
    from tcpwin.snapshots._analysis import Analysis, Connection, analyze
    from tcpwin.snapshots._bundle import Bundle, Member
    from tcpwin.snapshots._clock import ClockOffset
    from tcpwin.snapshots._counters import MEANINGS, CounterDelta, Meaning, deltas
    from tcpwin.snapshots._distribution import Distribution, distribution, distributions, last_samples
    from tcpwin.snapshots._file import SnapshotFile
    from tcpwin.snapshots._histogram import Bucket, HistogramSample
    from tcpwin.snapshots._host import CounterSample, KernelSample, MemorySample, SettingsSample
    from tcpwin.snapshots._join import Disagreement, JoinedSample, Limits, count_disagreements
    from tcpwin.snapshots._lines import Unknown, UnknownLine
    from tcpwin.snapshots._load import Host, SnapshotFacts
    from tcpwin.snapshots._match import Translated
    from tcpwin.snapshots._scale import ScaleClaim
    from tcpwin.snapshots._socket import SocketSample, SocketTimer, SocketUser, UlpInfo
    from tcpwin.snapshots._steps import Seen
    from tcpwin.snapshots._table import socket_table
    from tcpwin.snapshots._throughput import ThroughputSample
    from tcpwin.snapshots._windows import Autotuning, WindowsSample, autotuning

_HOMES = {
    "_analysis": ("Analysis", "Connection", "analyze"),
    "_bundle": ("Bundle", "Member"),
    "_clock": ("ClockOffset",),
    "_counters": ("CounterDelta", "MEANINGS", "Meaning", "deltas"),
    "_distribution": ("Distribution", "distribution", "distributions", "last_samples"),
    "_file": ("SnapshotFile",),
    "_histogram": ("Bucket", "HistogramSample"),
    "_host": ("CounterSample", "KernelSample", "MemorySample", "SettingsSample"),
    "_join": ("Disagreement", "JoinedSample", "Limits", "count_disagreements"),
    "_lines": ("Unknown", "UnknownLine"),
    "_load": ("Host", "SnapshotFacts"),
    "_match": ("Translated",),
    "_scale": ("ScaleClaim",),
    "_socket": ("SocketSample", "SocketTimer", "SocketUser", "UlpInfo"),
    "_steps": ("Seen",),
    "_table": ("socket_table",),
    "_throughput": ("ThroughputSample",),
    "_windows": ("Autotuning", "WindowsSample", "autotuning"),
}

__all__ = [
    "MEANINGS",
    "Analysis",
    "Autotuning",
    "Bucket",
    "Bundle",
    "ClockOffset",
    "Connection",
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
