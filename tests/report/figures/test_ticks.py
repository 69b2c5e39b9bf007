"""Ticks are round in the unit shown and written as text writes values, in pictures and in browsers alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from live import HANG_S

from tcpwin.figures.assets import read_plotly
from tcpwin.figures.svg.scale import Scale

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MOST = 5
WIDTH = 400
"""Plot width in which a browser has as many ticks."""
CASES: list[tuple[dict[str, Any], tuple[float, float], list[str]]] = [
    ({"ticksuffix": " s"}, (0, 300), ["0 s", "1 min", "2 min", "3 min", "4 min", "5 min"]),
    ({"ticksuffix": " s"}, (100, 170), ["1 min 45 s", "2 min", "2 min 15 s", "2 min 30 s", "2 min 45 s"]),
    (
        {"ticksuffix": " s"},
        (200, 201),
        ["3 min 20 s", "3 min 20.2 s", "3 min 20.4 s", "3 min 20.6 s", "3 min 20.8 s", "3 min 21 s"],
    ),
    ({"ticksuffix": " s"}, (7000, 11_000), ["2 h", "2 h 15 min", "2 h 30 min", "2 h 45 min", "3 h"]),
    ({"ticksuffix": " ms"}, (0, 2500), ["0 s", "500 ms", "1 s", "1.5 s", "2 s", "2.5 s"]),
    ({"ticksuffix": " ms"}, (0, 300_000), ["0 s", "1 min", "2 min", "3 min", "4 min", "5 min"]),
    ({"ticksuffix": "s"}, (0, 0.01), ["0 s", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]),
    ({"ticksuffix": "B"}, (0, 62_800), ["0 B", "20 kB", "40 kB", "60 kB"]),
    ({"ticksuffix": "B"}, (0, 1.9), ["0 B", "0.5 B", "1 B", "1.5 B"]),
    ({"ticksuffix": "bit/s"}, (0, 1_900_000), ["0 bit/s", "500 kbit/s", "1 Mbit/s", "1.5 Mbit/s"]),
    ({"ticksuffix": "s", "type": "log"}, (-4, 0), ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]),
    ({"ticksuffix": "s", "type": "log"}, (0.5, 1.5), ["5 s", "10 s", "20 s"]),
    ({"ticksuffix": "s", "type": "log"}, (1, 3), ["10 s", "100 s", "16 min 40 s"]),
]
"""An axis, its ends, and its labels."""


@pytest.mark.parametrize(("axis", "ends", "labels"), CASES)
def test_pictures(axis: dict[str, Any], ends: tuple[float, float], labels: list[str]) -> None:
    assert [text for _, text in Scale(axis, *ends, 0, WIDTH).ticks(MOST)] == labels


def shown(page: Page) -> list[str]:
    return page.locator(".xtick text").all_text_contents()


@pytest.mark.nightly
def test_browsers(browser: Browser) -> None:
    page = browser.new_page()
    page.set_default_timeout(HANG_S * 1000)
    page.set_content("<div id='figure'></div>")
    page.add_script_tag(content=read_plotly().decode())
    for axis, ends, labels in CASES:
        layout = {
            "width": WIDTH,
            "height": 200,
            "margin": {"l": 0, "r": 0, "t": 0, "b": 40},
            "xaxis": {"type": "linear", **axis, "range": ends},
        }
        page.evaluate(
            "async (layout) => { const figure = document.getElementById('figure');"
            "await Plotly.react(figure, [{ x: [1], y: [1] }], layout); await followTicks(figure); }",
            layout,
        )
        assert shown(page) == labels
    # After zooming as well.
    page.evaluate(
        "Plotly.relayout('figure', { 'xaxis.type': 'linear', 'xaxis.ticksuffix': 'B', 'xaxis.range': [0, 62800] })"
    )
    page.wait_for_function("document.querySelector('.xtick text:last-of-type').textContent === '0 B'")
    assert shown(page) == ["0 B", "20 kB", "40 kB", "60 kB"]
    page.close()
