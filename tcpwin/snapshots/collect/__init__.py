"""Samples of a live Linux host, written as `tcpwin/snap/1` files."""

from tcpwin.snapshots.collect._filter import Filter, FilterError
from tcpwin.snapshots.collect._run import Recording, record

__all__ = ["Filter", "FilterError", "Recording", "record"]
