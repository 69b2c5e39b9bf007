"""The model that every surface shares: types and column sets generated from the engine's tables (`just model`)."""

from __future__ import annotations

from functools import cache
from typing import Literal

from tcpwin import _engine
from tcpwin.model.connection import ConnectionFields
from tcpwin.model.direction import DirectionFields
from tcpwin.model.event import Event

__all__ = ["ConnectionFields", "DirectionFields", "Event", "marked_fields", "text_fields"]

Group = Literal["connection", "direction"]


@cache
def marked_fields(group: Group, mark: str) -> tuple[str, ...]:
    """Return the names of a group's fields that the engine's table marks, in its order.

    Args:
        mark: one of `_engine.FIELD_MARKS`: ``list`` for the dashboard's lists, ``brief`` for agents' answers.
    """
    return tuple(name for name, _, marks, _, _ in _engine.field_table(group) if mark in marks)


@cache
def text_fields(group: Group) -> frozenset[str]:
    """Return the names of a group's fields that hold text."""
    return frozenset(name for name, kind, _, _, _ in _engine.field_table(group) if kind == "str")
