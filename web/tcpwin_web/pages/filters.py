"""The templates' ways to write a number, with its unit, short, and the same everywhere; and to read their values.

The event loop draws pages, and whoever waits for another page waits for it too: a table of connections writes a
thousand numbers, mostly the same ones each time, and reads as many values of dictionaries.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from markupsafe import Markup

from tcpwin.figures import bar_svg, sketch_svg
from tcpwin.render import BAR_WIDTH, frames_filter, line_markup, page_markup, threshold_text, verdict_row
from tcpwin.units import begin, bytes_text, date_text, rate_text, share_text, time_text
from tcpwin_web.assets import asset_url
from tcpwin_web.security.scopes import Scope

NUMBERS_KEPT = 8192


def environment(folder: Path) -> jinja2.Environment:
    """That of the templates in a folder."""
    made = _Environment(loader=jinja2.FileSystemLoader(folder), autoescape=jinja2.select_autoescape())
    made.filters.update(
        bytes=_written(bytes_text),
        duration=_written(time_text),
        rate=_written(rate_text),
        count=lambda value: "–" if value is None else f"{value:,.0f}",
        moment=date_text,
        begin=begin,
        prose=page_markup,
        inline=line_markup,
        verdict_row=verdict_row,
        sketch_svg=lambda paths, *columns: Markup(sketch_svg(paths, *columns)),
        bar_svg=lambda parts: Markup(bar_svg(parts, BAR_WIDTH)),
        percent=share_text,
        threshold=threshold_text,
        display_filter=frames_filter,
        sum_values=lambda counts: sum(counts.values()),
        iso=lambda value: datetime.fromtimestamp(value / 1e9, UTC).isoformat(timespec="seconds"),
    )
    made.globals["asset"] = asset_url
    made.globals["may"] = may
    return made


class _Environment(jinja2.Environment):
    """Where ``row.name`` of a dictionary is its value at once: Jinja first looks for an attribute, and fails."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What `attribute` of a value is; methods of dictionaries go before their keys, as everywhere in Jinja."""
        if type(obj) is dict and attribute not in _METHODS and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


_METHODS = frozenset(dir(dict))


def may(request: Request, scope: str) -> bool:
    """Whether who looks at the page may do what needs a scope."""
    of_caller = request.scope.get("state", {}).get("scope")
    return of_caller is not None and Scope(of_caller).includes(Scope(scope))


def _written(text: Callable[[float], str]) -> Callable[[float | None], str]:
    @lru_cache(NUMBERS_KEPT, typed=True)
    def write(value: float | None) -> str:
        return "–" if value is None else text(value)

    return write
