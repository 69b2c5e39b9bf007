"""Two connections above each other on the same axes."""

from pathlib import Path

import pytest

import tcpwin
from tcpwin import figures

LAB = Path(__file__).resolve().parents[3] / "captures" / "lab"


def test_both_begin_at_zero_and_share_their_axes() -> None:
    pair = [
        (f"{name} <b>", tcpwin.analyze(LAB / f"{name}.pcap.gz").connections[0])
        for name in ("no-window-scaling", "window-scaling")
    ]
    found = figures.plain_pair("window", pair, direction="b_to_a", points=200, theme="light")
    layout = found["layout"]
    assert layout["yaxis4"]["matches"] == "y2"
    # The longer one lasts 13.3 s.
    longest = max(connection.duration_ns for _, connection in pair) / 1e9
    assert layout["xaxis"]["range"] == pytest.approx([-0.01 * longest, 1.01 * longest])
    windows = {each["yaxis"]: max(each["y"]) for each in found["data"] if each["name"] == "receive window"}
    assert windows == {
        "y2": pair[0][1].b_to_a.receive_window_max_bytes,
        "y4": pair[1][1].b_to_a.receive_window_max_bytes,
    }
    texts = [each["text"] for each in layout["annotations"]]
    assert texts == ["<b>no-window-scaling &lt;b&gt;</b>", "<b>window-scaling &lt;b&gt;</b>"]


def test_only_figures_over_time_share_an_axis() -> None:
    with pytest.raises(ValueError, match="messages has no time axis"):
        figures.plain_pair("messages", [], direction="a_to_b", points=200, theme="light")
