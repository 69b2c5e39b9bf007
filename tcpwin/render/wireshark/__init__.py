"""What Wireshark shows of an analysis: an index of packets beside the capture, and the plugin that reads it.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.lazy import loader

if TYPE_CHECKING:
    from tcpwin.render.wireshark.packet_index import IndexedCapture, read_indexed, write_index
    from tcpwin.render.wireshark.plugin import ENDING, default_folder, make_known, plugin_text

_HOMES = {
    "packet_index": ("IndexedCapture", "read_indexed", "write_index"),
    "plugin": ("ENDING", "default_folder", "make_known", "plugin_text"),
}

__all__ = ["ENDING", "IndexedCapture", "default_folder", "make_known", "plugin_text", "read_indexed", "write_index"]

__getattr__ = loader(__name__, _HOMES)
