"""The environment of the templates: filters that format values, and fast access to dictionaries.

Pages are rendered in the event loop, which delays all other requests. A table of connections formats a thousand
numbers, mostly the same ones each time, and looks up as many dictionary values.
"""

import re
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

CACHED_NUMBERS = 8192


def environment(folder: Path) -> jinja2.Environment:
    """Return the environment of the templates in a folder."""
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
        commands=commands_in,
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
    """Looks up ``row.name`` in a dictionary directly: Jinja tries an attribute first, and fails."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute or item; methods of dictionaries take precedence over keys, as elsewhere in Jinja."""
        if type(obj) is dict and attribute not in _METHODS and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


_METHODS = frozenset(dir(dict))


def may(request: Request, scope: str) -> bool:
    """Whether the page's viewer has a scope."""
    of_caller = request.scope.get("state", {}).get("scope")
    return of_caller is not None and Scope(of_caller).includes(Scope(scope))


def commands_in(text: str) -> list[str]:
    """Return the quoted parts of a text that run as they are."""
    return [each for each in re.findall(r"`([^`]+ [^`]+)`", text) if is_runnable(each)]


def is_runnable(command: str) -> bool:
    """Whether a command runs when pasted: it has no place to fill in, such as ``<interface>``, ``FILE`` or ``...``."""
    return not re.search(r"<|\.\.\.|(?<!\w)[A-Z]+(?!\w)", command)


def _written(text: Callable[[float], str]) -> Callable[[float | None], str]:
    @lru_cache(CACHED_NUMBERS, typed=True)
    def write(value: float | None) -> str:
        return "–" if value is None else text(value)

    return write
