"""What was measured, typed: captures, connections, directions, events and series."""

from tcpwin.analysis._analysis import Analysis, analyze
from tcpwin.analysis._capture import Capture, CaptureFile, CaptureWarning, Interface
from tcpwin.analysis._connection import Connection
from tcpwin.analysis._connections import Connections
from tcpwin.analysis._direction import Direction, Percentiles, WindowScale, ZeroWindowEpisode
from tcpwin.analysis._endpoint import Endpoint
from tcpwin.analysis._series import Event, Series
from tcpwin.analysis._table import Table


__all__ = [
    "Analysis",
    "Capture",
    "CaptureFile",
    "CaptureWarning",
    "Connection",
    "Connections",
    "Direction",
    "Endpoint",
    "Event",
    "Interface",
    "Percentiles",
    "Series",
    "Table",
    "WindowScale",
    "ZeroWindowEpisode",
    "analyze",
]
