"""Markers and curves match the packets: values of tshark 4.0, each with its filter."""

from __future__ import annotations

import pytest
from reference import ABSENT, REFERENCE_CAPTURES
from report.figures.drawn import (
    IDLE_RESTART,
    LOSS,
    SLOW_READER,
    STALL,
    drawn,
    frames_told,
    named,
    places,
    trace,
    value_at,
    zoomed,
)

import tcpwin

TIMEOUTS = REFERENCE_CAPTURES / "real/jswaro+tcprs/tests__Traces__tcp__fastretransmit__fast011.trace"


def test_zero_windows_begin_at_the_frames_that_tshark_names() -> None:
    """tcp.analysis.zero_window: frames 661, 715 and 2473; each is the first of its episode."""
    closed = trace(drawn("window", SLOW_READER), "window closed")
    starts = [round(float(each), 6) for each in closed.x]
    for seconds, frame in ((1.362169, 661), (1.762169, 715), (13.372169, 2473)):
        place = starts.index(seconds)
        assert f"frames {frame:,} to " in closed.customdata[place] or f"frames {frame} to " in closed.customdata[place]


def test_probes_stand_at_the_frames_that_tshark_takes_for_keep_alives() -> None:
    """tcp.analysis.keep_alive: Linux's zero-window probes have no data."""
    probes = trace(drawn("window", STALL), "window probe")
    assert frames_told(probes) == [13658, 13660, 13662]
    assert places(probes) == [(2.176855, 0.0), (2.766855, 0.0), (3.966855, 0.0)]


def test_retransmissions_match_tsharks_times_and_sequence_numbers() -> None:
    """tcp.analysis.retransmission: numbers 1, 10 and 60; tcp.seq is relative like the axis."""
    again = trace(drawn("window", LOSS), "retransmitted")
    told = frames_told(again)
    for frame, seconds in ((1508, 2.003643), (4281, 10.020817)):
        assert round(float(again.x[told.index(frame)]), 6) == seconds
    fast = trace(drawn("time-sequence", LOSS), "fast")
    told = frames_told(fast)
    for frame, seconds, sequence in ((1508, 2.003643, 1103377), (4281, 10.020817, 3815481)):
        assert places(fast)[told.index(frame)] == (seconds, sequence)


def test_restarts_after_a_pause_stand_at_the_segment_that_waited_for_an_ack() -> None:
    """tcp.len > 0 from 10.9.1.1, at the time of the preceding ACK (frames 58, 99, 140), with bytes_in_flight."""
    restarts = trace(drawn("window", IDLE_RESTART), "idle restart")
    assert frames_told(restarts)[:3] == [59, 100, 141]
    assert places(restarts)[:3] == [(2.360052, 14480), (4.360103, 14480), (6.360154, 14480)]


def test_stalls_reach_over_tsharks_silences() -> None:
    """frame.time_delta > 0.2: frames 13656, 13658 and 13660, each minus its own length."""
    stalls = trace(drawn("window", STALL), "stall")
    told = {text.rpartition(" to ")[2].partition(":")[0]: place for place, text in enumerate(stalls.customdata)}
    for frame, end, length in ((13656, 1.856855, 0.29), (13658, 2.176855, 0.28), (13660, 2.766855, 0.55)):
        place = told[str(frame)]
        assert float(stalls.x[place]) == pytest.approx(end - length, abs=1e-6)
        assert float(stalls.width[place]) == pytest.approx(length, abs=1e-6)


@pytest.mark.skipif(not TIMEOUTS.exists(), reason=ABSENT)
def test_timeouts_stand_at_tsharks_times() -> None:
    """frame.time_relative of 86, 120 and 228; each resends 1,400 bytes after a silence of its sender."""
    timeouts = trace(drawn("rtt", TIMEOUTS, direction="b_to_a"), "timeout")
    assert frames_told(timeouts) == [86, 120, 228]
    assert [seconds for seconds, _ in places(timeouts)] == [11.068396, 15.176368, 44.860502]


def test_full_windows_stand_at_tsharks_frames() -> None:
    """tcp.analysis.window_full with tcp.analysis.bytes_in_flight."""
    full = trace(drawn("window", SLOW_READER), "window filled")
    told = frames_told(full)
    for frame, seconds in ((241, 0.364610), (335, 0.640410), (543, 0.801928)):
        assert round(float(full.x[told.index(frame)]), 6) == seconds


@pytest.mark.parametrize(("seconds", "window"), [(1.0803, 36608), (1.2804, 42112), (1.4804, 32640)])
def test_the_window_is_tsharks_after_each_update(seconds: float, window: int) -> None:
    """tcp.analysis.window_update: frames 603, 630 and 662 with tcp.window_size."""
    figure = zoomed("window", SLOW_READER, 1, 1.6)
    assert value_at(trace(figure, "receive window"), seconds) == window


@pytest.mark.parametrize(
    ("first", "frame", "seconds", "flight"), [(0.36, 241, 0.364610, 96384), (0.63, 335, 0.640410, 12160)]
)
def test_zoomed_curves_name_the_frame_of_each_segment(first: float, frame: int, seconds: float, flight: int) -> None:
    """tcp.analysis.bytes_in_flight of frames 241 and 335."""
    (dots,) = (
        each
        for each in named(zoomed("window", SLOW_READER, first, first + 0.02), "in flight")
        if each.mode == "markers"
    )
    place = [int(row[0]) for row in dots.customdata].index(frame)
    assert places(dots)[place] == (seconds, flight)


def test_segments_and_acks_stand_at_tsharks_frames() -> None:
    """frame.number, tcp.seq and tcp.len of 1489, 1490 and 1520."""
    figure = zoomed("time-sequence", LOSS, 1.98, 2.07)
    segments = trace(figure, "segments")
    rows = {
        int(row[0]): (int(row[1]), *place) for row, place in zip(segments.customdata, places(segments), strict=True)
    }
    assert rows[1489] == (1448, 2.000982, 1123649)
    assert rows[1490] == (1448, 2.000982, 1125097)
    assert rows[1520] == (1448, 2.050831, 1149713)
    assert list(segments.error_y.array[:3]) == [1448, 1448, 1448]


def test_sack_blocks_stand_at_tsharks_edges() -> None:
    """tcp.options.sack_le and sack_re of frames 117, 118 and 119, all acknowledging 56473."""
    figure = zoomed("time-sequence", LOSS, 0.2, 0.21)
    sacks = trace(figure, "SACK")
    rows = {int(row[0]): (int(row[1]), *place) for row, place in zip(sacks.customdata, places(sacks), strict=True)}
    assert rows[117] == (59369 - 57921, 0.202418, 57921)
    assert rows[118] == (60817 - 57921, 0.202418, 57921)
    assert rows[119] == (62265 - 57921, 0.202906, 57921)
    acknowledged = trace(figure, "acknowledged")
    told = [int(each) for each in acknowledged.customdata]
    assert {float(acknowledged.y[told.index(frame)]) for frame in (117, 118, 119)} == {56473}


def test_round_trips_are_tsharks() -> None:
    """tcp.analysis.ack_rtt of frames 14, 19 and 114 from 10.9.2.2."""
    round_trips = trace(drawn("rtt", IDLE_RESTART), "round trip")
    told = [int(each) for each in round_trips.customdata]
    for frame, seconds, milliseconds in ((14, 0.360002, 180.001), (19, 0.360232, 180.000), (114, 4.360823, 180.001)):
        place = told.index(frame)
        assert float(round_trips.x[place]) == pytest.approx(seconds, abs=1e-6)
        assert float(round_trips.y[place]) == pytest.approx(milliseconds, abs=0.002)


@pytest.mark.parametrize(("first", "amount"), [(0, 101_360), (0.2, 195_480), (1.0, 88_328)])
def test_rates_are_tsharks_of_each_interval(first: float, amount: int) -> None:
    """-z io,stat,0.2,"SUM(tcp.len)tcp.len && ip.src==10.9.1.1": bytes from `first` on for 200 ms, including both
    ends.
    """
    last = first + 0.2 - 1e-9
    throughput = trace(zoomed("throughput", LOSS, first, last), "throughput")
    widths = [float(after) - float(before) for before, after in zip(throughput.x, throughput.x[1:], strict=False)]
    total = sum(float(rate) * width / 8 for rate, width in zip(throughput.y, widths, strict=False))
    assert total == pytest.approx(amount, rel=1e-4)


@pytest.mark.parametrize(("path", "sent_bytes"), [(SLOW_READER, 6_000_000), (LOSS, 8_085_432)])
def test_rates_add_up_to_what_tshark_adds_up(path: object, sent_bytes: int) -> None:
    """-z io,stat,0,"SUM(tcp.len)tcp.len && ip.src==10.9.1.1"."""
    throughput = trace(drawn("throughput", path), "throughput")  # type: ignore[arg-type]
    widths = [float(after) - float(before) for before, after in zip(throughput.x, throughput.x[1:], strict=False)]
    total = sum(float(rate) * width / 8 for rate, width in zip(throughput.y, widths, strict=False))
    assert total == pytest.approx(sent_bytes, rel=1e-5)
    # The last step ends with the capture, so no rate covers time that was not captured.
    [connection] = tcpwin.analyze(path)  # type: ignore[arg-type]
    assert float(throughput.x[-1]) == pytest.approx(connection.duration_ns / 1e9, rel=1e-6)


def test_dots_of_one_instant_have_each_their_own_flight() -> None:
    """tcp.analysis.bytes_in_flight of frames 171 to 175, pairs of which have the same timestamp."""
    dots = next(each for each in named(drawn("window", IDLE_RESTART), "in flight") if each.mode == "markers")
    told = {int(frame): int(height) for (frame, _), height in zip(dots.customdata, dots.y, strict=True)}
    assert [told[frame] for frame in range(171, 176)] == [1448, 2896, 4344, 5792, 7240]
