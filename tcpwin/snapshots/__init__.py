"""What hosts said of their sockets, counters, memory and settings, as typed samples."""

from tcpwin.snapshots._file import SnapshotFile
from tcpwin.snapshots._host import CounterSample, KernelSample, MemorySample, SettingsSample
from tcpwin.snapshots._lines import Unknown, UnknownLine
from tcpwin.snapshots._socket import SocketSample, SocketTimer, SocketUser, UlpInfo

__all__ = [
    "CounterSample",
    "KernelSample",
    "MemorySample",
    "SettingsSample",
    "SnapshotFile",
    "SocketSample",
    "SocketTimer",
    "SocketUser",
    "UlpInfo",
    "Unknown",
    "UnknownLine",
]
