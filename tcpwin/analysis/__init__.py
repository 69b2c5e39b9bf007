"""What was measured, typed: captures, connections, directions, events and series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin._engine import EVENT_FIELDS, SERIES_NAMES
from tcpwin.analysis.analysis import FIRST_NS, LAST_NS, SCHEMA, Analysis, Shifts, measure, reopen
from tcpwin.analysis.cached import cached
from tcpwin.analysis.capture import Capture, CaptureFile, CaptureWarning, Interface
from tcpwin.analysis.connection import Connection
from tcpwin.analysis.connections import Connections
from tcpwin.analysis.direction import Direction, Percentiles, RoundTrips, WindowScale, ZeroWindowEpisode
from tcpwin.analysis.endpoint import Endpoint
from tcpwin.analysis.names import DIRECTIONS, CaptureFigureName, DirectionName, FigureName, PercentilesName, SeriesName
from tcpwin.analysis.series import BudgetSeries, Series, Stall
from tcpwin.analysis.threads import cores
from tcpwin.analysis.view import View
from tcpwin.lazy import loader
from tcpwin.model.event import Event

if TYPE_CHECKING:
    from tcpwin.analysis.event_columns import EventColumns, StallColumns
    from tcpwin.analysis.segments import write_segments
    from tcpwin.analysis.table import Coded, Table, masked, texts

__all__ = [
    "DIRECTIONS",
    "EVENT_FIELDS",
    "FIRST_NS",
    "LAST_NS",
    "SCHEMA",
    "SERIES_NAMES",
    "Analysis",
    "BudgetSeries",
    "Capture",
    "CaptureFigureName",
    "CaptureFile",
    "CaptureWarning",
    "Coded",
    "Connection",
    "Connections",
    "Direction",
    "DirectionName",
    "Endpoint",
    "Event",
    "EventColumns",
    "FigureName",
    "Interface",
    "Percentiles",
    "PercentilesName",
    "RoundTrips",
    "Series",
    "SeriesName",
    "Shifts",
    "Stall",
    "StallColumns",
    "Table",
    "View",
    "WindowScale",
    "ZeroWindowEpisode",
    "cached",
    "cores",
    "masked",
    "measure",
    "reopen",
    "texts",
    "write_segments",
]

# Columns need numpy, whose import costs more than reading a million packets.
__getattr__ = loader(
    __name__,
    {
        "event_columns": ("EventColumns", "StallColumns"),
        "segments": ("write_segments",),
        "table": ("Coded", "Table", "masked", "texts"),
    },
)
