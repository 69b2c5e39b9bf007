"""Figures show the values of the packets, according to tshark 4.0, and of the raw text of ss and nstat."""

from __future__ import annotations

import pytest
from report.figures.drawn import BUNDLE, LOSS, MANY_SHORT, STALL, connection, drawn, named, places, trace

from tcpwin import figures


@pytest.mark.parametrize(
    ("path", "item", "start", "end"),
    [
        (STALL, "handshake", 0.0, 0.040000),
        (STALL, "window closed", 1.896855, 6.040096),
        (LOSS, "fast recovery", 0.203641, 0.253642),
    ],
)
def test_stretches_of_the_budget_reach_from_frame_to_frame(path: object, item: str, start: float, end: float) -> None:
    """SYN, frame 1, to the peer's ACK, 3; window 0, frame 13657, to 652,800, 13664; resent frame 127 to ACK 201."""
    bars = trace(drawn("budget", path), item)  # type: ignore[arg-type]
    assert float(bars.x[0]) == pytest.approx(start, abs=1e-6)
    assert float(bars.x[0]) + float(bars.width[0]) == pytest.approx(end, abs=2e-6)
    assert float(bars.customdata[0]) == pytest.approx((end - start) * 1e3, abs=2e-3)


@pytest.mark.parametrize(
    ("name", "grown"),
    [("TCPToZeroWindowAdv", [1, 3, 2]), ("TCPFromZeroWindowAdv", [1, 3, 2]), ("TCPWantZeroWindowAdv", [4, 2, 3])],
)
def test_counters_grow_as_nstat_says(name: str, grown: list[int]) -> None:
    """nstat_receiver.csv, rows from 1795226486.336096 on: 0, 1, 4, 6 and 0, 1, 4, 6 and 0, 4, 6, 9."""
    (lane,) = (each for each in drawn("counters", BUNDLE).data if f"<b>{name} +" in each.hovertemplate)
    first = 1795226486.336096 - 1795226485.796158
    assert [float(each) for each in lane.x[:3]] == pytest.approx([first, first + 1, first + 2], abs=2e-6)
    assert [int(each) for each in lane.customdata[:3]] == grown


@pytest.mark.parametrize(
    ("said", "memory", "buffer", "unread", "overhead"),
    [
        (1795226485.936096, 43104, 131072, 40544, 2560),
        (1795226486.136096, 163896, 358080, 139552, 24344),
        (1795226491.136097, 638576, 659464, 582184, 56392),
    ],
)
def test_socket_memory_is_that_of_ss(said: float, memory: int, buffer: int, unread: int, overhead: int) -> None:
    """ss_receiver.txt: r and rb of skmem, Recv-Q; overhead is r minus Recv-Q."""
    figure = drawn("socket-memory", BUNDLE)
    seconds = round(said - 1795226485.796158, 6)
    names = ("memory (r)", "buffer (rb)", "unread", "overhead")
    shown = [dict(places(trace(figure, name)))[seconds] for name in names]
    assert shown == [memory, buffer, unread, overhead]


def test_delays_of_messages_are_those_of_the_frames() -> None:
    """Request frame 4, 0.170 ms; answer frames 6 and 8, 3.805 and 3.930 ms; path 11 µs, half of it for one
    direction.
    """
    figure = figures.draw("messages", connection(MANY_SHORT))
    for share in ("p50", "p95", "p99"):
        shown = [float(each) for each in trace(figure, share).y]
        assert shown == pytest.approx([5.5e-6, 125e-6 + 5.5e-6, 3.635e-3], abs=1e-9)


@pytest.mark.parametrize(
    ("number", "trip_us", "seconds"),
    [(0, 6 + 5, 0.003935 - 0.003805), (1, 3 + 4, 0.012965 - 0.012889), (2, 4 + 3, 0.021455 - 0.021367)],
)
def test_connections_lie_at_their_round_trip_and_goodput(number: int, trip_us: int, seconds: float) -> None:
    """x: minimum times from data to ACK on both sides of the capture point; y: 1,422 bytes over the transfer."""
    points = trace(drawn("overview", MANY_SHORT), "nothing to send")
    place = [int(each) for each in points.customdata].index(number)
    assert float(points.x[place]) * 1e3 == pytest.approx(trip_us, rel=1e-6)
    assert float(points.y[place]) == pytest.approx(1422 * 8 / seconds, rel=1e-5)


@pytest.mark.parametrize(
    ("field", "receiver", "sender"),
    [("rmem_alloc_bytes", 56912, 0), ("rcvbuf_bytes", 659464, 131072), ("recv_q_bytes", 37105, 0)],
)
def test_sockets_are_distributed_as_their_last_samples_say(field: str, receiver: int, sender: int) -> None:
    """The last sample of each file: receiver r56912, rb659464, Recv-Q 37105; sender r0, rb131072, Recv-Q 0."""
    figure = drawn("socket-distribution", BUNDLE, field=field)
    marks = [named(figure, f"{host}: percentiles")[0] for host in ("receiver", "sender")]
    assert [[int(each) for each in mark.customdata] for mark in marks] == [[receiver], [sender]]


def test_times_of_many_groups_stand_upright_with_room_above() -> None:
    figure = figures.draw("messages", connection(MANY_SHORT))
    assert len(trace(figure, "p50").x) > 2
    assert {each.textangle for each in figure.data} == {-90}
    most = max(float(max(each.y)) for each in figure.data)
    assert 10 ** figure.layout.yaxis2.range[1] > 5 * most
