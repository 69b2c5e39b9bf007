"""Rooms of an analysis that later stages furnish: hosts, limits, report.

A room names its stage and a function there, which is imported when the room is first opened: so one `Analysis` and one
`Connection` offer everything, and no stage imports a later one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


class Room:
    """An attribute that a later stage's function finds for an instance, once."""

    def __init__(self, stage: str, function: str, about: str) -> None:
        self._stage = stage
        self._function = function
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = later(self._stage, self._function)(instance)
        return value


def room(stage: str, function: str, about: str) -> Any:
    """A `Room` of a class whose annotation says what is in it."""
    return Room(stage, function, about)


@cache
def later(stage: str, name: str) -> Any:
    """What a later stage offers by this name."""
    return getattr(import_module(stage), name)
