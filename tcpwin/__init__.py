"""Receive windows, bytes in flight and zero windows of every TCP connection in a capture.

>>> import tcpwin
>>> analysis = tcpwin.analyze("capture.pcapng")
>>> for connection in analysis.worst(3):
...     print(connection)

Names are loaded when they are first used, so that importing tcpwin costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpwin.analysis import (
        Analysis,
        Capture,
        Connection,
        Connections,
        Direction,
        Endpoint,
        Event,
        Series,
        Table,
        WindowScale,
        ZeroWindowEpisode,
        analyze,
    )
    from tcpwin.errors import CaptureError, OutputError, SourceError, TcpwinError

_HOMES = {
    "tcpwin.analysis": (
        "Analysis",
        "Capture",
        "Connection",
        "Connections",
        "Direction",
        "Endpoint",
        "Event",
        "Series",
        "Table",
        "WindowScale",
        "ZeroWindowEpisode",
        "analyze",
    ),
    "tcpwin.errors": ("CaptureError", "OutputError", "SourceError", "TcpwinError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Analysis",
    "Capture",
    "CaptureError",
    "Connection",
    "Connections",
    "Direction",
    "Endpoint",
    "Event",
    "OutputError",
    "Series",
    "SourceError",
    "Table",
    "TcpwinError",
    "WindowScale",
    "ZeroWindowEpisode",
    "analyze",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tcpwin")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tcpwin' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
