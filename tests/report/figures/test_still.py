"""Figures as pictures show values where the axes say, and any page may show them."""

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import report.figures.drawn as of
from cases import all_cases
from report.figures.drawn import LOSS, MANY_SHORT, NAMES, SLOW_READER, analyzed, connection

import tcpwin
from tcpwin import figures
from tcpwin.errors import ArgumentError
from tcpwin.figures.drawing.theme import COLOURS
from tcpwin.figures.svg.scale import number_text, span_of
from tcpwin.render.report import typed

SVG = "{http://www.w3.org/2000/svg}"
OPTIONS: dict[str, Any] = {"direction": None, "start_ns": None, "end_ns": None, "points": 1000, "theme": "light"}
FACTORS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}


def subject(name: str, path: Any) -> Any:
    return analyzed(path) if figures.get(name).scope == "analysis" else connection(path)


def elements(picture: str, name: str) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(picture).iter(SVG + name)


def texts(picture: str) -> list[str]:
    return ["".join(each.itertext()) for each in elements(picture, "text")]


def value_axis(picture: str, unit: str) -> np.poly1d:
    """Map pixels to values, by the labels of the vertical axis."""
    read = []
    for each in elements(picture, "text"):
        found = re.fullmatch(rf"([\d.]+) ([kMG]?){unit}", "".join(each.itertext()))
        if found and each.get("text-anchor") == "end":
            read.append((float(str(each.get("y"))) - 0.35 * 11, float(found[1]) * FACTORS[found[2]]))
    assert len(read) > 2
    return np.poly1d(np.polyfit(*zip(*read, strict=True), 1))


def curve_of(picture: str, colour: str) -> str:
    """Return the longest line of a colour."""
    return max((str(each.get("d")) for each in elements(picture, "path") if each.get("stroke") == colour), key=len)


def heights(path: str) -> list[float]:
    return [float(each) for each in re.findall(r"(?:M[-\d.]+ |V|L[-\d.]+ )([-\d.]+)", path)]


@all_cases("path", [SLOW_READER, LOSS, MANY_SHORT], ids=lambda path: path.name)
@all_cases("name", NAMES)
def test_every_figure_is_a_picture_that_any_page_may_show(name: str, path: Any) -> None:
    figure = figures.plain(name, subject(name, path), **OPTIONS)
    for width in (360, 1000):
        picture = figures.still(figure, width=width)
        # It is well-formed; a strict policy refuses styles, and an image loads nothing.
        for each in ElementTree.fromstring(picture).iter():
            assert each.tag.removeprefix(SVG) not in ("style", "script", "image", "foreignObject")
            assert "style" not in each.attrib
            assert each.get("href", "#").startswith("#")
        shown = texts(picture)
        assert all(any(title in text for text in shown) for title in [figures.get(name).title])
        if reason := figure["layout"]["meta"].get("nothing"):
            assert "Nothing to show" in "".join(shown), reason
        # A figure drawn from JSON is the same.
        assert figures.still(json.loads(json.dumps(typed(figure))), width=width) == picture


def test_the_flight_is_as_high_as_the_axis_says() -> None:
    picture = figures.still(figures.plain("window", connection(SLOW_READER), **OPTIONS), width=1000)
    value = value_axis(picture, "B")
    most = connection(SLOW_READER).b_to_a.flight_max_bytes
    drawn = value(min(heights(curve_of(picture, COLOURS["flight"]))))
    assert drawn == pytest.approx(most, rel=0.01)
    assert {"receive window", "in flight", "window closed"} <= set(texts(picture))


def test_a_curve_holds_its_value_until_the_next() -> None:
    figure = figures.plain("window", connection(SLOW_READER), **OPTIONS)
    picture = figures.still(figure, width=1000)
    # After the first point each step is one horizontal and one vertical stroke.
    assert re.fullmatch(r"M[-\d.]+ [-\d.]+(H[-\d.]+V[-\d.]+)+", curve_of(picture, COLOURS["flight"]))


def test_points_of_all_connections_lie_at_their_round_trip_and_rate() -> None:
    figure = figures.plain("overview", analyzed(MANY_SHORT), **OPTIONS)
    picture = figures.still(figure, width=1000)
    placed = sorted((float(str(each.get("x"))), float(str(each.get("y")))) for each in elements(picture, "use"))
    marks = [each for each in figure["data"] if each["mode"] == "markers"]
    layout = figure["layout"]
    points = np.array([(x, y) for each in marks for x, y in zip(each["x"], each["y"], strict=True)])
    # The legend's marks are below.
    inside = [each for each in placed if each[1] < layout["height"] - 60]
    assert len(inside) == len(points) > 50
    across = np.sort(np.array([x for x, _ in inside]))
    down = np.sort(np.array([-y for _, y in inside]))
    for drawn, values in ((across, points[:, 0]), (down, points[:, 1])):
        # On logarithmic axes equal except for a factor and a shift.
        assert np.corrcoef(drawn, np.sort(np.log10(values)))[0, 1] > 0.9999


def test_two_connections_share_their_axes() -> None:
    pair = [
        (f"{name} & <b>", of.connection(of.CAPTURES / "lab" / f"{name}.pcap.gz"))
        for name in ("no-window-scaling", "window-scaling")
    ]
    figure = figures.plain_pair("window", pair, direction="b_to_a", points=1000, theme="light")
    picture = figures.still(figure, width=1000)
    assert [text for text in texts(picture) if "scaling" in text] == ["no-window-scaling & <b>", "window-scaling & <b>"]
    labels = [text for text in texts(picture) if re.fullmatch(r"[\d.]+ MB", text)]
    # Each label occurs twice, with one range for both.
    assert labels
    assert all(labels.count(each) == 2 for each in labels)


def test_names_of_captures_stay_text(tmp_path: Any) -> None:
    path = tmp_path / "<script>alert('1')&\x01.pcap.gz"
    path.write_bytes(MANY_SHORT.read_bytes())
    picture = figures.still(figures.plain("overview", tcpwin.analyze(path), **OPTIONS), width=1000)
    assert not list(elements(picture, "script"))
    assert any("<script>" in text for text in texts(picture))


def test_hours_have_dates() -> None:
    figure = figures.plain("window", connection(SLOW_READER), **OPTIONS)
    first_ms = 1_700_000_000_000
    axis = {**figure["layout"]["xaxis"], "type": "date", "range": [first_ms, first_ms + 6 * 3_600_000]}
    for each in figure["data"]:
        each["x"] = first_ms + 1e6 * np.asarray(each["x"], dtype=np.float64)
    shown = texts(figures.still({**figure, "layout": {**figure["layout"], "xaxis": axis}}, width=1000))
    # 1,700,000,000 s is 22:13:20 on 14 November 2023.
    hours = [each for each in shown if re.search(r"\d\d:00$", each)]
    assert hours == ["Nov 14, 23:00", "Nov 15, 00:00", "01:00", "02:00", "03:00", "04:00"]


@all_cases(
    ("value", "step", "least", "most", "unit", "text"),
    [
        (0, 1, 0, 12, "", "0"),
        (0, 1, 0, 12, "B", "0 B"),
        (1_500_000, 500_000, 0, 12, "B", "1.5 MB"),
        (50_000, 50_000, 0, 12, "bit/s", "50 kbit/s"),
        (50_000, 50_000, 0, 12, "", "50k"),
        (0.2, 0.1, 0, 12, "B", "0.2 B"),
        (0.2, 0.1, -9, 0, "s", "200 ms"),
        (1200, 100, 0, 0, "", "1,200"),
        (0.000005, 0.000005, -9, 0, "s", "5 µs"),
        (-3000, 1000, 0, 12, "B", "-3 kB"),
    ],
)
def test_numbers_of_axes(value: float, step: float, least: int, most: int, unit: str, text: str) -> None:
    assert number_text(value, step, least=least, most=most, unit=unit) == text


def test_an_axis_of_one_value_has_room() -> None:
    for axis in ({}, {"type": "log"}, {"rangemode": "tozero"}, {"range": [3, 3]}):
        least, most = span_of(axis, [np.array([5.0, np.nan])])
        assert least < most
    assert span_of({}, []) == (0.0, 1.0)


def test_a_width_too_small_is_refused() -> None:
    with pytest.raises(ArgumentError, match="at least 240"):
        figures.still(figures.plain("window", connection(SLOW_READER), **OPTIONS), width=100)
