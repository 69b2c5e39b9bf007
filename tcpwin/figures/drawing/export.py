"""A figure as a file: a page, data, or an image.

In: a plotly figure and a path whose extension is the format. Out: the file. Pages contain plotly.js and need no
network; images are made by kaleido with the system's Chromium.
"""

from __future__ import annotations

import logging
import os
import shutil
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tcpwin.errors import OutputError
from tcpwin.figures.assets import read_plotly
from tcpwin.output import open_whole

IMAGES = ("png", "svg", "pdf", "jpg", "webp")
VECTORS = ("svg", "pdf")
FORMATS = (*IMAGES, "html", "json")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTH = 1000

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ margin: 0; background: {background}; }}</style>
</head>
<body>
<script>{plotly}</script>
{figure}
</body>
</html>
"""


def format_of(path: str) -> str | None:
    """Return the format implied by the file extension, or None if it is unsupported."""
    ending = Path(path).suffix.lower().removeprefix(".").replace("jpeg", "jpg")
    return ending if ending in FORMATS else None


def check(path: str) -> None:
    """Check early that the figure can be written.

    Raises:
        OutputError: the format is unknown, or an image's requirements are missing.
    """
    form = format_of(path)
    if form is None:
        raise OutputError(f"{path}: the file extension must name the format: {', '.join(FORMATS)}")
    if form not in IMAGES:
        return
    if find_spec("kaleido") is None:
        raise OutputError(f"{path}: an image needs kaleido: pip install 'tcpwin[image]'; html needs nothing else")
    if find_browser() is None:
        raise OutputError(
            f"{path}: an image needs Chromium or Google Chrome: install one, or name it in BROWSER_PATH; html needs "
            "neither"
        )


def write(
    figure: Any, path: str, *, title: str, width: int | None = None, height: int | None = None, scale: float = 2
) -> None:
    """Write a figure.

    Args:
        title: the page's title.
        width, height: size of an image or a page, in pixels; by default the figure's own height.
        scale: image pixels for each of these; ignored for svg and pdf.

    Raises:
        OutputError: the format is unknown, its requirements are missing, or the file cannot be written.
    """
    check(path)
    form = format_of(path)
    if form == "json":
        _write_text(path, figure.to_json())
    elif form == "html":
        _write_text(path, _page(figure, title, width, height))
    else:
        size = {"width": width or WIDTH, "height": height or int(figure.layout.height or 450)}
        _write_image(figure, path, {"format": form, "scale": 1 if form in VECTORS else scale, **size})


def _write_text(path: str, text: str) -> None:
    with open_whole(path) as file:
        file.write(text)


def _page(figure: Any, title: str, width: int | None, height: int | None) -> str:
    drawn = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        config={"responsive": True, "displaylogo": False},
        default_width=f"{width}px" if width else "100%",
        default_height=f"{height or int(figure.layout.height or 450)}px",
        post_script="followTicks(document.getElementById('{plot_id}'));",
    )
    return _PAGE.format(
        title=escape(title),
        background=figure.layout.paper_bgcolor,
        # The complete plotly.js, which plotly itself would embed, is three times as large.
        plotly=read_plotly().decode(),
        figure=drawn,
    )


def _write_image(figure: Any, path: str, options: dict[str, Any]) -> None:
    import kaleido

    browser = find_browser()
    for each in ("choreographer", "kaleido"):
        logging.getLogger(each).setLevel(logging.CRITICAL)
    # Open the file before starting the browser, which takes seconds: fail early.
    with open_whole(path, is_binary=True) as file:
        try:
            drawn = kaleido.calc_fig_sync(
                figure.to_plotly_json(), opts=options, kopts={"mathjax": False, "path": browser}
            )
        except Exception as error:  # noqa: BLE001 - the browser's failures have no common type.
            words = " ".join(map(str, error.args)).strip().partition("\n")[0]
            first = words.partition(". ")[0].rstrip(".") or type(error).__name__
            raise OutputError(f"{path}: {browser} could not draw it: {first}") from None
        file.write(drawn)


def find_browser() -> str | None:
    """Return the path of a Chromium: the one BROWSER_PATH names, or one of the usual names."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return named if Path(named).is_file() else None
    return next(filter(None, map(shutil.which, BROWSERS)), None)
