"""A recorder that waits for the stall: packets come in, the newest are judged again and again, what strikes is kept."""

from tcpwin.watch.bundles import Bundles
from tcpwin.watch.drops import recording_drops
from tcpwin.watch.growing import GrowingFile
from tcpwin.watch.interface import BLOCK_BYTES, Interface
from tcpwin.watch.live import Live
from tcpwin.watch.metrics import Metrics, serve
from tcpwin.watch.run import Round, Settings, Told, Watch
from tcpwin.watch.samples import sampling
from tcpwin.watch.strikes import Strike

__all__ = [
    "BLOCK_BYTES",
    "Bundles",
    "GrowingFile",
    "Interface",
    "Live",
    "Metrics",
    "Round",
    "Settings",
    "Strike",
    "Told",
    "Watch",
    "recording_drops",
    "sampling",
    "serve",
]
