"""The definition of a snapshot format: its name, how to recognise its first lines, how to read it.

Each module of `tcpwin.hosts.formats` has one `FORMAT`; new modules are discovered automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tcpwin.hosts.lines import Lines

HEAD_LINES = 200
"""Number of lines used to recognise a format."""


@dataclass(frozen=True, slots=True)
class Format:
    """A snapshot format.

    Attributes:
        name: short, in lower case: ``ss``, ``nstat``.
        title: short description.
        recognise: score, 0 to 100, for these lines (the first `HEAD_LINES`, without stamps) being in this format.
        read: yields samples of the lines in constant memory.
        holds: the kinds of data it may contain: ``sockets``, ``counters``.
    """

    name: str
    title: str
    recognise: Callable[[list[str]], int]
    read: Callable[[Lines], Iterator[Any]]
    holds: tuple[str, ...] = ()


@cache
def formats() -> dict[str, Format]:
    """Return all formats by name."""
    from tcpwin.hosts import formats as package

    found = {}
    for module in iter_modules(package.__path__):
        if not module.name.startswith("_"):
            each: Format = import_module(f"{package.__name__}.{module.name}").FORMAT
            found[each.name] = each
    return found


def formats_of(what: str) -> tuple[str, ...]:
    """Return the names of the formats that may contain ``sockets`` or ``counters``."""
    return tuple(name for name, each in formats().items() if what in each.holds)


def recognise(head: list[str]) -> Format | None:
    """Return the format with the highest score for these lines, or None."""
    ranked = sorted(((each.recognise(head), each.name) for each in formats().values()), reverse=True)
    return formats()[ranked[0][1]] if ranked and ranked[0][0] > 0 else None
