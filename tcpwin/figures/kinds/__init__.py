"""All kinds of figures: each module of this package has one `FIGURE`, and its docstring is the figure's page."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tcpwin.figures.drawing.kind import SCOPES, FigureKind


@cache
def all_figures() -> dict[str, FigureKind]:
    """Return all kinds of figures by name, in order.

    Raises:
        ValueError: two have the same name, or one has an unknown scope.
    """
    modules = [each.name for each in iter_modules(__path__) if not each.name.startswith("_")]
    kinds: list[FigureKind] = [import_module(f"{__name__}.{name}").FIGURE for name in modules]
    found: dict[str, FigureKind] = {}
    for kind in sorted(kinds, key=lambda each: (each.order, each.name)):
        if kind.name in found or kind.scope not in SCOPES:
            raise ValueError(f"figure {kind.name}: names are unique, a scope is one of {SCOPES}")
        found[kind.name] = kind
    return found
