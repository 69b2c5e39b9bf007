"""Where packets come from: files, streams, scapy packets, dpkt readers. Each becomes something the engine can read."""

from tcpwin.sources.headers import Headers, HeadersSource, write_headers
from tcpwin.sources.libpcap import compile_filter
from tcpwin.sources.moments import Moment, read_moment, resolve_moment
from tcpwin.sources.recognition import resolve
from tcpwin.sources.selection import SelectedSource, Selection
from tcpwin.sources.source import FileSource, Packets, PathSource, Source

__all__ = [
    "FileSource",
    "Headers",
    "HeadersSource",
    "Moment",
    "Packets",
    "PathSource",
    "SelectedSource",
    "Selection",
    "Source",
    "compile_filter",
    "read_moment",
    "resolve",
    "resolve_moment",
    "write_headers",
]
