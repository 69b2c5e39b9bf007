"""The model that every surface shares, generated from the engine's tables by `just model`; it imports nothing."""

from __future__ import annotations

from typing import Literal

from tcpwin.model.columns import MARKED, TEXTS
from tcpwin.model.connection import ConnectionFields
from tcpwin.model.direction import DirectionFields
from tcpwin.model.event import Event
from tcpwin.model.names import ConfidenceName, DirectionName, EndName, LimitName, OwnerName, SeriesName

__all__ = [
    "ConfidenceName",
    "ConnectionFields",
    "DirectionFields",
    "DirectionName",
    "EndName",
    "Event",
    "LimitName",
    "OwnerName",
    "SeriesName",
    "marked_fields",
    "text_fields",
]

Group = Literal["connection", "direction"]


def marked_fields(group: Group, mark: Literal["list", "brief"]) -> tuple[str, ...]:
    """Return the fields that the dashboard lists (``list``), or that short answers to agents give (``brief``)."""
    return MARKED[group, mark]


def text_fields(group: Group) -> frozenset[str]:
    """Return the fields of a group that hold text."""
    return TEXTS[group]
