"""Colours, fonts and number formats of all figures: a quantity has the same colour everywhere, in both themes.

Colours are those of Okabe and Ito (2008) if their contrast with both backgrounds is 3:1 (WCAG 2.2, 1.4.11),
otherwise similar ones that reach it. No figure relies on colour alone: dashes, symbols or patterns differ too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import Any

from tcpwin.errors import ArgumentError

RECEIVER = "#0a7ec2"
FLIGHT = "#d55e00"
CONGESTION = "#009e73"
LOSS = "#d0342c"
PINK = "#c7588e"
GOLD = "#b07d0b"
VIOLET = "#8c6bc8"
INDIGO = "#6048f0"
BROWN = "#a0643c"
SLATE = "#6a7b8c"
GREY = "#7d7d7d"

COLOURS = {
    "receive window": RECEIVER,
    "right edge": VIOLET,
    "flight": FLIGHT,
    "pipe": PINK,
    "congestion window": CONGESTION,
    "sent": FLIGHT,
    "acknowledged": CONGESTION,
    "sack": VIOLET,
    "throughput": FLIGHT,
    "goodput": CONGESTION,
    "round trip": BROWN,
    "smoothed": VIOLET,
    "timeout": LOSS,
    "loss": LOSS,
    "probe": GOLD,
    "restart": PINK,
    "zero window": RECEIVER,
    "stall": SLATE,
    "pause": GREY,
    "memory": FLIGHT,
    "buffer": RECEIVER,
    "queue": CONGESTION,
    "overhead": VIOLET,
    "ceiling": SLATE,
    "path's rate": SLATE,
    "fills the path": VIOLET,
}
"""Colours by the quantity drawn."""

SERIES_COLOURS = (RECEIVER, FLIGHT, CONGESTION, VIOLET, GOLD, PINK, LOSS, BROWN, SLATE, GREY)
"""Colours for series without a fixed one, such as counters, in this order."""

BUDGET_COLOURS = {
    "handshake": VIOLET,
    "receiver": RECEIVER,
    "congestion window": CONGESTION,
    "loss": LOSS,
    "silent peer": FLIGHT,
    "idle restart": PINK,
    "application": GOLD,
    "turns": INDIGO,
    "send buffer": BROWN,
    "path": SLATE,
    "closed": GREY,
    "unknown": GREY,
}
"""Colour of each group of the time budget; items of one group differ by pattern."""

BUDGET_SYMBOLS = {
    "handshake": "star",
    "receiver": "circle",
    "congestion window": "square",
    "loss": "x",
    "silent peer": "bowtie",
    "idle restart": "star-triangle-up",
    "application": "diamond",
    "turns": "hourglass",
    "send buffer": "hexagon",
    "path": "triangle-up",
    "closed": "circle-open",
    "unknown": "circle-open",
}
"""Symbol of each group, if it is drawn as a point."""


FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


BUTTONS_LEFT_OUT = ("sendChartToCloud", "select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d")
"""plotly's buttons that are removed: the one that uploads a figure, and those for which a phone's title has no room."""


@dataclass(frozen=True, slots=True)
class Theme:
    """The differences between light and dark."""

    background: str
    text: str
    faint_text: str
    grid: str
    axis: str
    hover: str


THEMES = {
    "light": Theme("#ffffff", "#1b1f24", "#57606a", "#e4e7eb", "#8c959f", "#ffffff"),
    "dark": Theme("#12161b", "#e6edf3", "#9aa5b1", "#2a3038", "#6e7681", "#1c2229"),
}


def find_theme(name: str) -> Theme:
    """Return the theme with this name.

    Raises:
        ArgumentError: it is unknown.
    """
    if name not in THEMES:
        raise ArgumentError(f"unknown theme {name}: choose one of {', '.join(THEMES)}")
    return THEMES[name]


def base_layout(theme: Theme) -> dict[str, Any]:
    """Return the layout properties that all figures share."""
    return {
        "paper_bgcolor": theme.background,
        "plot_bgcolor": theme.background,
        "font": {"family": FONT, "size": 12, "color": theme.text},
        "hoverlabel": {
            "bgcolor": theme.hover,
            "bordercolor": theme.axis,
            "font": {"family": FONT, "size": 12, "color": theme.text},
            "align": "left",
            "namelength": -1,
        },
        "colorway": list(SERIES_COLOURS),
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": theme.faint_text,
            "activecolor": theme.text,
            "remove": list(BUTTONS_LEFT_OUT),
        },
        "margin": {"l": 12, "r": 12, "t": 12, "b": 12},
    }


def axis(theme: Theme, **more: Any) -> dict[str, Any]:
    """Return an axis with its lines, its grid, and margins that follow its labels."""
    return {
        "automargin": True,
        "gridcolor": theme.grid,
        "linecolor": theme.axis,
        "zerolinecolor": theme.axis,
        "zeroline": False,
        "showline": True,
        # An overlaid axis takes the other's ticks by default.
        "tickmode": "auto",
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.axis,
        "tickfont": {"size": 11, "color": theme.text},
        **more,
    }


BELOW_ONE = ",.3~r"
"""Tenths as 0.2: 200m would be read as millions."""
_PREFIXES = {"tickformat": "~s", "tickformatstops": [{"dtickrange": [None, 0.99], "value": BELOW_ONE}]}
BYTES_AXIS = {**_PREFIXES, "ticksuffix": "B", "hoverformat": ".4s"}
"""An axis of bytes: decimal prefixes, as 1.5 MB."""
RATE_AXIS = {**_PREFIXES, "ticksuffix": "bit/s"}
"""An axis of bits per second."""
SECONDS_AXIS = {"tickformat": "~s", "ticksuffix": "s", "hoverformat": ".4s"}
"""An axis of times of any length: 5.5 µs, 226 ms, 40 s."""
MS_AXIS = {"ticksuffix": " ms", "separatethousands": True}
"""An axis of milliseconds."""

CAUSE_MARKS = {
    "fast": ("fast", LOSS, "x"),
    "recovery": ("in recovery", LOSS, "cross"),
    "lost_retransmission": ("lost again", BROWN, "x"),
    "rto": ("timeout", PINK, "square"),
    "go_back_n": ("after timeout", PINK, "square-open"),
    "tail_loss_probe": ("tail loss probe", GOLD, "triangle-up"),
    "spurious": ("spurious", VIOLET, "diamond"),
    "zero_window": ("into no window", RECEIVER, "triangle-down"),
    "syn": ("SYN again", SLATE, "star"),
    "syn_ack": ("SYN/ACK again", SLATE, "star-open"),
    "fin": ("FIN again", SLATE, "hexagon"),
    "fast_open": ("left out by SYN/ACK", SLATE, "hexagon-open"),
    "unknown": ("cause unknown", GREY, "x-open"),
    "out_of_order": ("out of order", CONGESTION, "triangle-right"),
    "capture_reordered": ("capture's order", GREY, "triangle-left"),
}
"""Legend, colour and symbol of each cause of a retransmitted or late segment."""


def log_axis(least: float, most: float, *, below: float = 1.6, above: float = 2) -> dict[str, Any]:
    """Return a logarithmic axis with padding on both sides: labelled at powers of ten, or between them if these are
    few.
    """
    span = {"type": "log", "tickmode": "linear", "range": [log10(least / below), log10(most * above)]}
    if most > 30 * least:
        return {**span, "dtick": 1}
    # Within a factor of four, all but one of 1, 2 and 5 may be outside.
    dtick = "D1" if most * above < 4 * least / below else "D2"
    return {**span, "dtick": dtick, "minorloglabels": "complete"}


def pattern_fill(shape: str, colour: str, background: str) -> dict[str, Any]:
    """Return the fill of a bar: a colour, with a pattern if another bar has the same colour."""
    if not shape:
        return {"color": colour, "line": {"width": 0}}
    pattern = {"shape": shape, "size": 6, "solidity": 0.25, "fillmode": "overlay", "fgcolor": background}
    return {"color": colour, "line": {"width": 0}, "pattern": {**pattern, "bgcolor": colour, "fgopacity": 0.9}}
