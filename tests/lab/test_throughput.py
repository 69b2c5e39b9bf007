"""Throughput equals the reading program's, minus the time in which its clock ran without data under way.

The reader's clock runs from its connect to its close; a sender that paused before it closed had no data under way
meanwhile. At the sender the first payload leaves half a round trip after the connect and the last ACK arrives half a
round trip after the close: the same span. At the receiver the first payload arrives one round trip after the connect,
so the span is shorter by that.
"""

from __future__ import annotations

import pytest
from lab.agreement import SS_DELAY_NS
from lab.runs import SECOND_NS, Run
from lab.selection import ABORTED, CLOSED, LATE, SLOW_READER, STEADY, on

# The reader's times are printed to a microsecond; first and last payload may each be late by netem's jitter.
CLOCK_NS = 10_000
# Packets in the sender's tbf still leave after a RST: at most three of two segments each at 10 Mbit/s.
QUEUE_NS = 5_000_000
# TCP_DELACK_MIN (include/net/tcp.h): the last bytes before a close may still await their ACK, unless it is a RST.
DELAYED_ACK_NS = 40_000_000
# per_second_mbps is printed with one decimal.
ROUNDING_BYTES = 0.05e6 / 8


def span_ns(run: Run) -> float:
    return run.data.acked_bytes * 8 / run.data.goodput_bps * SECOND_NS


def closing_ns(run: Run) -> int:
    """Return the time from the ACK of the last byte to that of the FIN alone, by sequence numbers."""
    fins = run.from_sender & (run.columns["flags"] & 1 > 0)
    last = int((run.columns["seq"][fins] + run.columns["length"][fins])[0])
    ends = ~run.from_sender & (run.columns["ack"] == last), ~run.from_sender & (run.columns["ack"] == last + 1)
    first, second = (run.columns["time_ns"][each] for each in ends)
    return int(second[0] - first[0]) if len(first) and len(second) else 0


@on(CLOSED, without=LATE)
def test_goodput_is_the_readers_rate(run: Run) -> None:
    alone_ns = closing_ns(run)
    expected_ns = run.read_seconds * SECOND_NS - (run.rtt_ns if run.end == "rcv" else 0) - alone_ns
    assert abs(span_ns(run) - expected_ns) <= CLOCK_NS + run.jitter_ns
    if run.end == "snd":
        read_bps = float(run.reader["mbps"]) * 1e6 * run.read_seconds / (run.read_seconds - alone_ns / SECOND_NS)
        assert run.data.goodput_bps == pytest.approx(read_bps, rel=5e-3)


@on(LATE)
def test_goodput_of_a_late_capture_is_the_readers_rate_meanwhile(run: Run) -> None:
    """The path is full from before the capture to the end, so any whole second is representative.

    At the sender the first counted byte is acknowledged a round trip after the capture began.
    """
    rates = run.reader["per_second_mbps"][1:-1]
    assert len(set(rates)) == 1
    life_ns = run.connection.duration_ns
    waits_ns = (run.data.rtt_smoothed_ns or 0) if run.end == "snd" else 0
    assert run.data.goodput_bps == pytest.approx(rates[0] * 1e6 * (1 - waits_ns / life_ns), rel=5e-3)


@on(ABORTED, without=SLOW_READER)
def test_goodput_of_an_aborted_connection_is_over_the_readers_time(run: Run) -> None:
    """Data may arrive until a round trip after the close, and not before one: acknowledged bytes over that time."""
    assert abs(span_ns(run) - run.read_seconds * SECOND_NS) <= run.rtt_ns + QUEUE_NS + DELAYED_ACK_NS


@on(SLOW_READER)
def test_goodput_of_the_slow_reader_ends_when_ss_has_seen_all_acknowledged(run: Run) -> None:
    """The sender finishes seconds before the reader: the last ACK is between two samples of bytes_acked."""
    started_ns = int(float(run.meta["ground_truth"]["sender"]["t_start"]) * SECOND_NS)
    sent = int(run.meta["ground_truth"]["sender"]["sent"])
    samples = run.samples("snd")
    done = next(index for index, sample in enumerate(samples) if run.acked_bytes(sample) == sent)
    least = samples[done - 1].time_ns - started_ns - run.rtt_ns
    assert least <= span_ns(run) <= samples[done].time_ns - started_ns + SS_DELAY_NS


@on()
def test_throughput_counts_every_byte_sent_over_the_same_time(run: Run) -> None:
    data = run.data
    assert data.throughput_bps * span_ns(run) / 8 / SECOND_NS == pytest.approx(data.payload_bytes)
    series = run.connection.series("throughput", direction=run.way)
    assert int(series.sum.sum()) == data.payload_bytes


@on(STEADY, ends=["rcv"])
def test_throughput_series_matches_the_readers_seconds(run: Run) -> None:
    """A program that reads immediately takes data as it arrives; a bucket across two seconds may count in either."""
    series = run.connection.series("throughput", direction=run.way)
    assert series.width_ns * 100 < SECOND_NS
    connected_ns = int(float(run.reader["t_connect"]) * SECOND_NS)
    for second, mbps in enumerate(run.reader["per_second_mbps"]):
        first, last = connected_ns + second * SECOND_NS, connected_ns + (second + 1) * SECOND_NS
        begins, ends = series.time_ns, series.time_ns + series.width_ns
        surely = series.sum[(begins >= first) & (ends <= last)].sum()
        perhaps = series.sum[(ends > first) & (begins < last)].sum()
        assert surely - ROUNDING_BYTES <= mbps * 1e6 / 8 <= perhaps + ROUNDING_BYTES, second
