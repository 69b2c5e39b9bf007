"""Packet sources: files, streams, scapy packets, dpkt readers. Each becomes input that the engine can read."""

from tcpwin.sources.addresses import CHUNK_BYTES, is_address, is_of_store, open_store, public_name, store_reason
from tcpwin.sources.headers import Headers, HeadersSource, write_headers
from tcpwin.sources.libpcap import compile_filter
from tcpwin.sources.moments import Moment, read_moment, resolve_moment
from tcpwin.sources.recognition import of_paths, resolve
from tcpwin.sources.selection import SelectedSource, Selection
from tcpwin.sources.source import FileSource, Packets, PathSource, Source

__all__ = [
    "CHUNK_BYTES",
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
    "is_address",
    "is_of_store",
    "of_paths",
    "open_store",
    "public_name",
    "read_moment",
    "resolve",
    "resolve_moment",
    "store_reason",
    "write_headers",
]
