"""A figure of transfers' bytes over time, on the same axes."""

import json

import pytest

from tcpwin import figures
from tcpwin.errors import ArgumentError
from tcpwin.figures import Progress, plain_progress

SECOND_NS = 1_000_000_000
SLOW = Progress("captured", (0, SECOND_NS, 4 * SECOND_NS), (0, 1_000_000, 4_000_000))
FAST = Progress("with <the> change", (0, 2 * SECOND_NS), (0, 4_000_000))


def test_each_transfer_is_a_curve_from_the_same_start() -> None:
    drawn = plain_progress([SLOW, FAST], title="Bytes over time")
    first, second = drawn["data"]
    assert (first["x"], first["y"]) == ([0, 1, 4], [0, 1_000_000, 4_000_000])
    assert (second["x"], second["y"]) == ([0, 2], [0, 4_000_000])
    # Not distinguished by colour alone.
    assert first["line"]["dash"] != second["line"]["dash"]
    assert first["line"]["color"] != second["line"]["color"]
    assert drawn["layout"]["xaxis"]["range"][1] > 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_a_picture_too(theme: str) -> None:
    drawn = json.loads(json.dumps(plain_progress([SLOW, FAST], title="Bytes over time", theme=theme)))
    picture = figures.still(drawn, width=700)
    assert picture.count("<path") >= 2
    for words in ("Bytes over time", "captured", "with &lt;the&gt; change", "since the first packet"):
        assert words in picture


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ArgumentError):
        plain_progress([SLOW], title="", theme="blue")
