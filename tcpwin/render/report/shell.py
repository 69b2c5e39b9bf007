"""The frame of a standalone page: styles, script, plotly.js and the policy on scripts.

In: a template and its words. Out: HTML. Text is escaped by jinja2; the page's policy allows only the scripts whose hash
it names.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from tcpwin.errors import need
from tcpwin.figures.assets import read_asset, read_plotly
from tcpwin.render.markup import line_markup
from tcpwin.render.report.table import pack_bytes
from tcpwin.units import begin, date_text


def require(*packages: str) -> None:
    """Check that the packages a page needs are installed.

    Raises:
        OutputError: a package is not installed.
    """
    need("an HTML report", "jinja2", *packages, extra="report")


def fill(
    template: str, *, theme: str, has_figures: bool, is_printed: bool = False, made_at: datetime | None, **words: Any
) -> str:
    """Render a page.

    Args:
        theme: ``auto`` follows the system; readers can switch.
        has_figures: whether the page needs plotly.js.
        is_printed: whether to draw everything at once.
        made_at: time of creation; now if None.
    """
    from tcpwin.render.report.figures import colours
    from tcpwin.version import __version__

    script = _page_file("report.js")
    page: str = _template(template).render(
        theme=theme,
        is_printed=is_printed,
        policy=_policy(script, _plotly()),
        css=_page_file("report.css") + colours().css,
        js=script,
        colours=colours().document,
        plotly=_packed_plotly() if has_figures else "",
        plotly_version=_plotly_version(),
        version=__version__,
        made_at=f"{made_at or datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **words,
    )
    return page


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["begin"] = begin
    environment.filters["inline"] = line_markup
    environment.filters["moment"] = date_text
    return environment.get_template(name)


@cache
def _page_file(name: str) -> str:
    return files("tcpwin.render.report").joinpath("page", name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    return read_plotly().decode()


@cache
def _packed_plotly() -> str:
    return pack_bytes(read_plotly())


@cache
def _plotly_version() -> str:
    import tomllib

    return str(tomllib.loads(read_asset("plotly-basic.toml").decode())["version"])


def _policy(*scripts: str) -> str:
    """Return the content security policy: only these scripts, no network; plotly.js writes styles and makes pictures of
    figures.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
