"""Samples of a live Linux host, written as `tcpwin/snap/1` files."""

from tcpwin.hosts.collect.filter import Filter, FilterError
from tcpwin.hosts.collect.message import STATES
from tcpwin.hosts.collect.run import Recording, record
from tcpwin.hosts.collect.sockets import SocketDump

__all__ = [
    "STATES",
    "Filter",
    "FilterError",
    "Recording",
    "SocketDump",
    "record",
]
