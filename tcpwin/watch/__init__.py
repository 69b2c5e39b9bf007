"""A recorder that waits for a stall: it judges the newest packets repeatedly and saves what raises an alert."""

from tcpwin.watch.alerts import Alert
from tcpwin.watch.bundles import Bundles
from tcpwin.watch.drops import recording_drops
from tcpwin.watch.growing import GrowingFile
from tcpwin.watch.interface import BLOCK_BYTES, Interface
from tcpwin.watch.live import Live
from tcpwin.watch.metrics import Metrics, serve
from tcpwin.watch.run import Notice, Round, Settings, Watch
from tcpwin.watch.samples import sampling

__all__ = [
    "BLOCK_BYTES",
    "Alert",
    "Bundles",
    "GrowingFile",
    "Interface",
    "Live",
    "Metrics",
    "Notice",
    "Round",
    "Settings",
    "Watch",
    "recording_drops",
    "sampling",
    "serve",
]
