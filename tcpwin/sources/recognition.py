"""Recognise the kind of a source."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tcpwin.errors import SourceError
from tcpwin.sources import dpkt_reader, pyshark_packets, scapy_packets, timed_bytes
from tcpwin.sources.addresses import is_address, public_name
from tcpwin.sources.pcapng import write_packets
from tcpwin.sources.source import FileSource, PathSource, Source


def resolve(source: Any) -> Source:
    """Create a source from any kind of `Packets`.

    Raises:
        SourceError: it is something else.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, str | os.PathLike):
        return of_paths([source])
    if dpkt_reader.is_dpkt_reader(source):
        return FileSource(write_packets(dpkt_reader.raw_packets(source)), name="dpkt reader", owned=True)
    if isinstance(source, bytes | bytearray | memoryview):
        return FileSource(io.BytesIO(source), name="bytes", owned=True)
    if hasattr(source, "read"):
        return FileSource(source, name=str(getattr(source, "name", "stream")))
    source = scapy_packets.results_of(source)
    if scapy_packets.is_packet(source) or pyshark_packets.is_packet(source):
        source = [source]
    if pyshark_packets.is_capture(source):
        return FileSource(write_packets(pyshark_packets.raw_packets(source)), name="pyshark packets", owned=True)
    if isinstance(source, Iterable):
        items = list(source)
        if items and all(isinstance(item, str | os.PathLike) for item in items):
            return of_paths(items)
        if items and pyshark_packets.is_packet(items[0]):
            return FileSource(write_packets(pyshark_packets.raw_packets(items)), name="pyshark packets", owned=True)
        if items and timed_bytes.is_timed(items[0]):
            return FileSource(write_packets(timed_bytes.raw_packets(items)), name="packets", owned=True)
        return FileSource(write_packets(scapy_packets.raw_packets(items)), name="scapy packets", owned=True)
    raise SourceError(f"cannot read packets from a {type(source).__name__}")


def of_paths(paths: Sequence[str | os.PathLike[str]]) -> Source:
    """Create a source from files or addresses; addresses are downloaded first.

    Raises:
        SourceError: no path is given, or a download fails.
    """
    if not any(isinstance(path, str) and is_address(path) for path in paths):
        return PathSource(paths)
    from tcpwin.sources.fetching import fetch

    if len(paths) == 1:
        address = str(paths[0])
        return FileSource(fetch(address), name=public_name(address), owned=True)
    import shutil
    import tempfile
    import weakref

    folder = tempfile.mkdtemp(prefix="tcpwin-")
    try:
        source = PathSource([_copied(path, folder, number) for number, path in enumerate(paths)])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def _copied(path: str | os.PathLike[str], folder: str, number: int) -> str | os.PathLike[str]:
    if not isinstance(path, str) or not is_address(path):
        return path
    import shutil
    from urllib.parse import urlsplit

    from tcpwin.sources.fetching import fetch

    copy = Path(folder) / str(number) / (PurePosixPath(urlsplit(path).path).name or "capture")
    copy.parent.mkdir()
    with fetch(path) as source, copy.open("wb") as out:
        shutil.copyfileobj(source, out)
    return copy
