"""What was measured, typed: captures, connections, directions, events and series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin._lazy import loader
from tcpwin.analysis._analysis import Analysis, analyze
from tcpwin.analysis._capture import Capture, CaptureFile, CaptureWarning, Interface
from tcpwin.analysis._connection import Connection
from tcpwin.analysis._connections import Connections
from tcpwin.analysis._direction import Direction, Percentiles, RoundTrips, WindowScale, ZeroWindowEpisode
from tcpwin.analysis._endpoint import Endpoint
from tcpwin.analysis._series import BudgetSeries, Event, Series, Stall
from tcpwin.analysis._view import View

if TYPE_CHECKING:
    from tcpwin.analysis._table import Table

__all__ = [
    "Analysis",
    "BudgetSeries",
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
    "RoundTrips",
    "Series",
    "Stall",
    "Table",
    "View",
    "WindowScale",
    "ZeroWindowEpisode",
    "analyze",
]

# Columns need numpy, whose import costs more than reading a million packets.
__getattr__ = loader(__name__, {"_table": ("Table",)})
