"""The ladder: a line per packet, from the time line where it left to the one where it arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import LAB_RUNS, ROOT

import tcpwin
from tcpwin.figures import draw_ladder
from tcpwin.figures.ladder import MOST_DRAWN, MOST_FOCUSED
from tcpwin.figures.ladder_packets import COLUMNS, Delays

WILD = ROOT / "captures" / "wild"


@pytest.fixture(scope="module")
def pairing() -> tcpwin.Pairing:
    """Two namespaces, 15 ms each way, 12 packets dropped."""
    return tcpwin.pair(WILD / "lossy-path.pcapng.gz", WILD / "lossy-path-receiver.pcap.gz")


def lines(figure: Any, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return start and end of each line of a kind, as (x, y)."""
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
    for name, start in (("data", 1), ("retransmitted", 1)):
        begin, end = lines(figure, name)
        assert (begin[:, 1] == start).all()
        assert (end[:, 1] == 1 - start).all()
        took = end[:, 0] - begin[:, 0]
        assert took.min() >= 0.0145
        assert took.max() <= 0.0165
    begin, end = lines(figure, "ACKs")
    assert {0.0, 1.0} == set(begin[:, 1])


KINDS = {"data", "ACKs", "retransmitted", "late", "duplicated", "unknown", "lost"}


def count_drawn(figure: Any) -> int:
    return sum(len(each.x) // 3 for each in figure.data if each.name in KINDS)


def span_ns(pairing: tcpwin.Pairing, from_s: float, until_s: float) -> dict[str, int]:
    origin_ns = int(draw_ladder(pairing).layout.meta["origin_ns"])
    return {"start_ns": origin_ns + round(from_s * 1e9), "end_ns": origin_ns + round(until_s * 1e9)}


def test_every_packet_of_a_short_span_is_drawn_once(pairing: tcpwin.Pairing) -> None:
    span = span_ns(pairing, 0.24, 0.26)
    table = pairing.packets()
    left_ns = np.where(table["direction"] == 0, table["time_a_ns"], table["time_b_ns"])
    lasts_ns = np.where(table["delay_ns"] > 0, table["delay_ns"], 15_100_000)
    passing = (left_ns <= span["end_ns"]) & (left_ns + lasts_ns >= span["start_ns"])
    figure = draw_ladder(pairing, **span)
    assert 50 < count_drawn(figure) <= 2 * MOST_FOCUSED
    # The clocks differ by microseconds, which matters for packets at either end of the span.
    assert abs(count_drawn(figure) - passing.sum()) <= 4
    assert figure.layout.title.text.endswith("7000")


def test_a_span_has_its_packets_only(pairing: tcpwin.Pairing) -> None:
    figure = draw_ladder(pairing, **span_ns(pairing, 0.25, 0.35))
    begin, end = lines(draw_ladder(pairing), "lost")
    assert len(lines(figure, "lost")[0]) == ((begin[:, 0] <= 0.35) & (end[:, 0] >= 0.25)).sum()
    begin, end = lines(figure, "data")
    assert (begin[:, 0] <= 0.35).all()
    assert (end[:, 0] >= 0.25).all()
    assert figure.layout.xaxis.range[0] < 0.25 < 0.35 < figure.layout.xaxis.range[1]


@pytest.fixture(scope="module")
def long() -> tcpwin.Pairing:
    """24 seconds, 8,552 packets, 59 lost."""
    folder = LAB_RUNS / "loss1_cubic_sack1"
    return tcpwin.pair(folder / "snd.pcap.gz", folder / "rcv.pcap.gz")


def test_of_many_packets_those_are_drawn_that_something_happened_to(long: tcpwin.Pairing) -> None:
    figure = draw_ladder(long, theme="dark")
    assert MOST_DRAWN / 2 <= count_drawn(figure) <= MOST_DRAWN + MOST_FOCUSED + 1
    assert len(lines(figure, "lost")[0]) == 59
    assert "of 8,552 packets drawn" in figure.layout.title.text
    assert len(figure.layout.meta["losses_s"]) == 59


def test_a_long_ladder_opens_at_its_first_loss_with_all_packets_there(long: tcpwin.Pairing) -> None:
    figure = draw_ladder(long)
    first, last = figure.layout.xaxis.range
    begin, _ = lines(figure, "lost")
    assert first < begin[:, 0].min() < last
    table = long.packets()
    in_a = table["frame_a"] > 0
    origin_ns = int(figure.layout.meta["origin_ns"])
    sent = in_a & (table["direction"] == 1) & (table["length"] > 0) & ~table["is_resend"] & (table["fate"] != "lost")
    left_s = (table["time_a_ns"][sent] - origin_ns) / 1e9
    drawn = lines(figure, "data")[0][:, 0]
    inside = (left_s > max(first, 0)) & (left_s < last - 0.01)
    assert inside.sum() > 50
    assert np.isin(np.round(left_s[inside], 6), np.round(drawn, 6)).all()


def test_a_span_of_many_packets_is_bounded_too(long: tcpwin.Pairing) -> None:
    assert count_drawn(draw_ladder(long, **span_ns(long, 0, 12))) <= MOST_DRAWN


def test_delays_are_a_band_with_every_extreme(long: tcpwin.Pairing) -> None:
    """The first packet waited for ARP: 50 ms instead of 25."""
    figure = draw_ladder(long)
    bands = [each for each in figure.data if each.name == "delay b → a"]
    least, most = (np.asarray(each.y) for each in bands)
    assert (least <= most).all()
    assert most.max() == pytest.approx(50, abs=0.1)
    assert least.min() == pytest.approx(25, abs=0.1)


def test_flight_and_windows_are_those_of_both_ends(long: tcpwin.Pairing) -> None:
    """A window arrives half a round trip after it was sent."""
    figure = draw_ladder(long)
    by_name = {each.name: each for each in figure.data}
    judged = long.judge(0)
    flight = by_name["in flight"]
    assert max(flight.y) <= (judged.directions[1].sender_view.flight_max_bytes or 0)
    sent, came = by_name["window, sent"], by_name["window, came"]
    for share in (0.25, 0.5, 0.75):
        height = share * max(sent.y)
        moments = [each.x[np.argmax(np.asarray(each.y) >= height)] for each in (sent, came)]
        assert 0.015 <= moments[1] - moments[0] <= 0.09


@pytest.mark.parametrize("is_reversed", [False, True])
def test_columns_of_delays_widen_to_whatever_comes(is_reversed: bool) -> None:
    chance = np.random.default_rng(3)
    time_ns = np.sort(chance.integers(0, 10**10, 5_000))[:: -1 if is_reversed else 1]
    delay_ns = chance.integers(10**6, 10**8, 5_000)
    delays = Delays()
    for part in np.array_split(np.arange(5_000), 50):
        delays.add(time_ns[part], delay_ns[part])
    starts, least, most = delays.columns()
    assert COLUMNS / 2 <= len(starts) <= 2 * COLUMNS
    assert (least.min(), most.max()) == (delay_ns.min(), delay_ns.max())
    at = np.searchsorted(starts, time_ns, side="right") - 1
    assert ((least[at] <= delay_ns) & (delay_ns <= most[at])).all()


def test_an_empty_span_is_not_an_error(pairing: tcpwin.Pairing) -> None:
    assert not count_drawn(draw_ladder(pairing, start_ns=0, end_ns=1))


def test_wrong_arguments(pairing: tcpwin.Pairing) -> None:
    with pytest.raises(IndexError):
        draw_ladder(pairing, 1)
    with pytest.raises(ValueError, match="theme"):
        draw_ladder(pairing, theme="neon")
