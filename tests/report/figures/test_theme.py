"""Colours are distinguishable for everybody in both themes; labels fit a phone."""

from __future__ import annotations

import pytest
from cases import all_cases
from report.figures.drawn import BUNDLE, NAMES, drawn

from tcpwin.figures import THEMES
from tcpwin.figures.drawing.theme import BUDGET_COLOURS, BUDGET_SYMBOLS, CAUSE_MARKS, COLOURS, SERIES_COLOURS
from tcpwin.limits import GROUPS

EVERY = {
    *COLOURS.values(),
    *SERIES_COLOURS,
    *BUDGET_COLOURS.values(),
    *(colour for _, colour, _ in CAUSE_MARKS.values()),
}


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_of_black_and_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@all_cases("theme", THEMES)
@all_cases("colour", sorted(EVERY))
def test_every_colour_stands_out_from_both_backgrounds(theme: str, colour: str) -> None:
    """WCAG 2.2, 1.4.11: 3:1 for parts of graphics."""
    assert contrast(colour, THEMES[theme].background) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5:1 for text."""
    found = THEMES[theme]
    assert contrast(found.text, found.background) >= 4.5
    assert contrast(found.faint_text, found.background) >= 4.5
    assert contrast(found.text, found.hover) >= 4.5


def test_every_group_of_the_budget_has_its_colour_and_symbol() -> None:
    assert set(BUDGET_COLOURS) == set(BUDGET_SYMBOLS) == set(GROUPS)


@all_cases("name", NAMES)
def test_themes_differ_in_colours_only(name: str) -> None:
    light, dark = (drawn(name, BUNDLE, theme=theme) for theme in THEMES)
    assert [each.name for each in light.data] == [each.name for each in dark.data]
    assert light.layout.paper_bgcolor == THEMES["light"].background
    assert dark.layout.paper_bgcolor == THEMES["dark"].background
    assert THEMES["light"].background not in {each.font.color for each in dark.layout.annotations}


@all_cases("name", NAMES)
def test_names_fit_two_columns_of_a_phone(name: str) -> None:
    for each in drawn(name, BUNDLE).data:
        assert len(each.name) <= 18 or not each.showlegend, each.name


@all_cases("name", NAMES)
def test_no_button_uploads_the_figure(name: str) -> None:
    """Since plotly.js 4 a button sends a figure with its data to another host, unless it is removed."""
    assert "sendChartToCloud" in drawn(name, BUNDLE).layout.modebar.remove


@all_cases("name", NAMES)
def test_lines_of_the_title_fit_a_phone(name: str) -> None:
    first, *lines = drawn(name, BUNDLE).layout.title.text.split("<br>")
    # There is space for 28 bold letters next to the buttons.
    assert len(first.removeprefix("<b>").removesuffix("</b>")) <= 28
    for line in lines:
        assert len(line.partition(">")[2].removesuffix("</span>")) <= 60
