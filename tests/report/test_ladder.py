"""The ladder: a line for each packet, from the time line where it left to the one where it came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import LAB_RUNS, ROOT

import tcpwin
from tcpwin.report import draw_ladder
from tcpwin.report.ladder import MOST_DRAWN

WILD = ROOT / "captures" / "wild"


@pytest.fixture(scope="module")
def pairing() -> tcpwin.Pairing:
    """Two namespaces, 15 ms each way, 12 packets dropped."""
    return tcpwin.pair(WILD / "lossy-path.pcapng.gz", WILD / "lossy-path-receiver.pcap.gz")


def lines(figure: Any, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return begin and end of each line of a kind: (x, y) of both."""
    [trace] = [each for each in figure.data if each.name == name]
    x, y = np.asarray(trace.x), np.asarray(trace.y)
    return np.stack([x[0::3], y[0::3]], axis=1), np.stack([x[1::3], y[1::3]], axis=1)


def test_lost_packets_end_on_the_way(pairing: tcpwin.Pairing) -> None:
    begin, end = lines(draw_ladder(pairing), "lost")
    assert len(begin) == 12
    assert (begin[:, 1] == 1).all()
    assert ((end[:, 1] > 0.2) & (end[:, 1] < 0.8)).all()


def test_packets_take_their_delay_to_the_other_line(pairing: tcpwin.Pairing) -> None:
    figure = draw_ladder(pairing)
    for name, start in (("data", 1), ("sent again", 1)):
        begin, end = lines(figure, name)
        assert (begin[:, 1] == start).all()
        assert (end[:, 1] == 1 - start).all()
        took = end[:, 0] - begin[:, 0]
        assert took.min() >= 0.0145
        assert took.max() <= 0.0165
    begin, end = lines(figure, "ACKs")
    assert {0.0, 1.0} == set(begin[:, 1])


def test_every_packet_is_drawn_once(pairing: tcpwin.Pairing) -> None:
    figure = draw_ladder(pairing)
    drawn = sum(len(each.x) // 3 for each in figure.data if not each.name.startswith("delay"))
    assert drawn == sum(each.sent for each in pairing.connections[0].directions)


def test_a_span_has_its_packets_only(pairing: tcpwin.Pairing) -> None:
    table = pairing.packets()
    first_ns = int(table["time_a_ns"][table["frame_a"] > 0].min())
    figure = draw_ladder(pairing, start_ns=first_ns + 250_000_000, end_ns=first_ns + 350_000_000)
    whole = draw_ladder(pairing)
    assert len(lines(figure, "lost")[0]) == (lines(whole, "lost")[0][:, 0] >= 0.25).sum()
    assert len(lines(figure, "data")[0]) < len(lines(whole, "data")[0])


def test_of_many_packets_those_are_drawn_that_something_happened_to() -> None:
    folder = LAB_RUNS / "loss1_cubic_sack1"
    pairing = tcpwin.pair(folder / "snd.pcap.gz", folder / "rcv.pcap.gz")
    figure = draw_ladder(pairing, theme="dark")
    drawn = sum(len(each.x) // 3 for each in figure.data if not each.name.startswith("delay"))
    assert drawn <= MOST_DRAWN
    assert len(lines(figure, "lost")[0]) == 59
    assert "drawn" in figure.layout.title.text


def test_an_empty_span_is_no_error(pairing: tcpwin.Pairing) -> None:
    assert not draw_ladder(pairing, start_ns=0, end_ns=1).data


def test_wrong_arguments(pairing: tcpwin.Pairing) -> None:
    with pytest.raises(IndexError):
        draw_ladder(pairing, 1)
    with pytest.raises(ValueError, match="theme"):
        draw_ladder(pairing, theme="neon")
