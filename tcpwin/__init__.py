"""Receive windows, bytes in flight and zero windows of every TCP connection in a capture.

>>> import tcpwin
>>> analysis = tcpwin.analyze("capture.pcapng")
>>> for connection in analysis.worst(3):
...     print(connection)

Names are loaded when they are first used, so that importing tcpwin costs next to nothing.
"""

from __future__ import annotations

# Importing typing would cost as much as the interpreter's own start; type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tcpwin.analysis import (
        Analysis,
        BudgetSeries,
        Capture,
        Connection,
        Connections,
        Direction,
        Endpoint,
        Event,
        Series,
        Stall,
        Table,
        View,
        WindowScale,
        ZeroWindowEpisode,
    )
    from tcpwin.errors import (
        ArgumentError,
        CaptureError,
        FilterError,
        OutputError,
        SnapshotError,
        SourceError,
        TcpwinError,
    )
    from tcpwin.hosts import Bundle, SnapshotFile, analyze
    from tcpwin.limits import Finding
    from tcpwin.pairing import Pairing, pair
    from tcpwin.paths import WhatIf, whatif

_HOMES = {
    "tcpwin.analysis": (
        "Analysis",
        "BudgetSeries",
        "Capture",
        "Connection",
        "Connections",
        "Direction",
        "Endpoint",
        "Event",
        "Series",
        "Stall",
        "Table",
        "View",
        "WindowScale",
        "ZeroWindowEpisode",
    ),
    "tcpwin.errors": (
        "ArgumentError",
        "CaptureError",
        "FilterError",
        "OutputError",
        "SnapshotError",
        "SourceError",
        "TcpwinError",
    ),
    "tcpwin.limits": ("Finding",),
    "tcpwin.pairing": ("Pairing", "pair"),
    "tcpwin.paths": ("WhatIf", "whatif"),
    "tcpwin.hosts": ("Bundle", "SnapshotFile", "analyze"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Analysis",
    "ArgumentError",
    "BudgetSeries",
    "Bundle",
    "Capture",
    "CaptureError",
    "Connection",
    "Connections",
    "Direction",
    "Endpoint",
    "Event",
    "FilterError",
    "Finding",
    "OutputError",
    "Pairing",
    "Series",
    "SnapshotError",
    "SnapshotFile",
    "SourceError",
    "Stall",
    "Table",
    "TcpwinError",
    "View",
    "WhatIf",
    "WindowScale",
    "ZeroWindowEpisode",
    "analyze",
    "pair",
    "whatif",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tcpwin")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tcpwin' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
