"""Where packets come from: files, streams, scapy packets, dpkt readers. Each becomes something the engine can read."""

from tcpwin.sources._headers import Headers, HeadersSource, write_headers
from tcpwin.sources._resolve import resolve
from tcpwin.sources._source import FileSource, Packets, PathSource, Source

__all__ = [
    "FileSource",
    "Headers",
    "HeadersSource",
    "Packets",
    "PathSource",
    "Source",
    "resolve",
    "write_headers",
]
