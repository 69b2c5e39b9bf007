"""A figure as a file: a page, data, or an image.

In: a plotly figure and a path whose ending says the format. Out: the file. Pages hold plotly.js and need no network;
images are made by kaleido with a Chromium that the system has.
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
from tcpwin.figures.assets import PLOTLY, read_asset
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
    """The format that the ending of a file's name says; None where it says none that there is."""
    ending = Path(path).suffix.lower().removeprefix(".").replace("jpeg", "jpg")
    return ending if ending in FORMATS else None


def check(path: str) -> None:
    """Refuse at once what could not be written later.

    Raises:
        OutputError: the format is unknown, or what an image needs is not there.
    """
    form = format_of(path)
    if form is None:
        raise OutputError(f"{path}: the name of the file says the format, as one of {', '.join(FORMATS)}")
    if form not in IMAGES:
        return
    if find_spec("kaleido") is None:
        raise OutputError(f"{path}: an image needs kaleido: pip install 'tcpwin[image]'; html needs nothing more")
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
        title: of a page.
        width, height: of an image or a page, in pixels; the figure's own height where none is given.
        scale: pixels of an image to each of these; svg and pdf have none.

    Raises:
        OutputError: the format is unknown, what it needs is not there, or the file cannot be written.
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
    )
    return _PAGE.format(
        title=escape(title),
        background=figure.layout.paper_bgcolor,
        # The whole of plotly.js, which plotly itself would take, is three times as large.
        plotly=read_asset(PLOTLY).decode(),
        figure=drawn,
    )


def _write_image(figure: Any, path: str, options: dict[str, Any]) -> None:
    import kaleido

    browser = find_browser()
    for each in ("choreographer", "kaleido"):
        logging.getLogger(each).setLevel(logging.CRITICAL)
    # Opened before the seconds that the browser takes: where that fails, nobody waits for it.
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
    """Path of a Chromium: what BROWSER_PATH names, else one of the usual names."""
    named = os.environ.get("BROWSER_PATH")
    if named:
        return named if Path(named).is_file() else None
    return next(filter(None, map(shutil.which, BROWSERS)), None)
