"""Tell what kind of source something is."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.sources import dpkt_reader, scapy_packets
from tcpwin.sources.pcapng import write_packets
from tcpwin.sources.source import FileSource, PathSource, Source


def resolve(source: Any) -> Source:
    """Make a source of a path, several paths, an open file, a file's bytes, scapy packets or a dpkt reader.

    Raises:
        SourceError: it is none of these.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, str | os.PathLike):
        return PathSource([source])
    if dpkt_reader.is_dpkt_reader(source):
        return FileSource(write_packets(dpkt_reader.raw_packets(source)), name="dpkt reader", owned=True)
    if isinstance(source, bytes | bytearray | memoryview):
        return FileSource(io.BytesIO(source), name="bytes", owned=True)
    if hasattr(source, "read"):
        return FileSource(source, name=str(getattr(source, "name", "stream")))
    if scapy_packets.is_packet(source):
        source = [source]
    if isinstance(source, Iterable):
        items = list(source)
        if items and all(isinstance(item, str | os.PathLike) for item in items):
            return PathSource(items)
        return FileSource(write_packets(scapy_packets.raw_packets(items)), name="scapy packets", owned=True)
    raise SourceError(f"cannot read packets from a {type(source).__name__}")
