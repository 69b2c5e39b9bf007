"""What a format of snapshots is: a name, how to tell it from its first lines, how to read it.

Each module of `tcpwin.hosts.formats` has one `FORMAT`; a new one is found without being named anywhere.
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
"""Lines that a format is recognised by."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of snapshots.

    Attributes:
        name: short, in lower case: ``ss``, ``nstat``.
        title: what it is, in a few words.
        recognise: how sure it is, 0 to 100, that these lines (the first `HEAD_LINES`, stamps taken away) are its own.
        read: samples of the lines, one after the other, in constant memory.
        holds: what commands ask for that it may tell of: ``sockets``, ``counters``.
    """

    name: str
    title: str
    recognise: Callable[[list[str]], int]
    read: Callable[[Lines], Iterator[Any]]
    holds: tuple[str, ...] = ()


@cache
def formats() -> dict[str, Format]:
    """All formats by name."""
    from tcpwin.hosts import formats as package

    found = {}
    for module in iter_modules(package.__path__):
        if not module.name.startswith("_"):
            each: Format = import_module(f"{package.__name__}.{module.name}").FORMAT
            found[each.name] = each
    return found


def formats_of(what: str) -> tuple[str, ...]:
    """Names of the formats that may tell of ``sockets`` or ``counters``."""
    return tuple(name for name, each in formats().items() if what in each.holds)


def recognise(head: list[str]) -> Format | None:
    """The format that is surest of these lines; None where none is."""
    ranked = sorted(((each.recognise(head), each.name) for each in formats().values()), reverse=True)
    return formats()[ranked[0][1]] if ranked and ranked[0][0] > 0 else None
