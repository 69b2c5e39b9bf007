"""Round trips and the RTO at the sender equal those of ss at the same time.

The fields have the values at a capture's end, so each sample is compared with the analysis of the packets up to its
time. ss prints `rtt:SRTT/MDEV` to a microsecond, `minrtt`, and the RTO in ticks of 10 ms, rounded up. The kernel's
timestamp of a segment is taken before the tbf and the capture's behind it; TSval, from the kernel's clock, shows the
wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from lab.agreement import SS_DELAY_NS, samples_inside
from lab.runs import MILLISECOND_NS, SECOND_NS, Run
from lab.selection import IPERF3, LATE, on
from lab.ss_text import Sample
from lab.wire import SYN, cut, read_segments
from numpy.typing import NDArray

import tcpwin

DataThen = Callable[[Run, Sample], list[tcpwin.Direction]]
TICK_NS = 10 * MILLISECOND_NS  # HZ=100
RTO_MIN_NS = 200 * MILLISECOND_NS
# Relative; the RTO may also be off by a tick, the round trip by the wait in the tbf.
ERROR = 0.05
SAMPLES = 12
# Scenarios whose wait in the tbf exceeds a twentieth of the path's delay.
QUEUED = ("cooked_any", "offload_on_bigframes", "zero_window_stall5s")


def chosen(run: Run) -> list[Sample]:
    """Return samples with a round trip, spread over the run, including the last."""
    samples = [sample for sample in samples_inside(run, "snd") if "rtt" in sample.tokens]
    step = max(1, len(samples) // SAMPLES)
    return samples[::-step][::-1]


@pytest.fixture(scope="module")
def data_then(tmp_path_factory: pytest.TempPathFactory) -> DataThen:
    """Return a cached function that analyses the packets up to a sample, at the earliest and latest time of its
    reading.
    """
    file = tmp_path_factory.mktemp("cut") / "cut.pcap"
    at_time = cache(lambda run, time_ns: data_of(run, cut(run.capture, time_ns, file)))
    return lambda run, sample: [at_time(run, sample.time_ns + late_ns) for late_ns in (0, SS_DELAY_NS)]


def data_of(run: Run, capture: Path) -> tcpwin.Direction:
    analysis = tcpwin.analyze(capture)
    ports = {run.sender_port, run.receiver_port}
    [connection] = [each for each in analysis.connections if {each.a.port, each.b.port} == ports]
    return connection.a_to_b if connection.a.port == run.sender_port else connection.b_to_a


def milliseconds_ns(text: str) -> int:
    return round(float(text) * MILLISECOND_NS)


@cache
def waits_ns(run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the times of the sender's segments, and the delay of TSval behind the capture's clock.

    Both use one clock, with TSval truncated to milliseconds: the minimum difference of the run is a segment that did
    not wait.
    """
    mine = [each for each in read_segments(run.capture) if each.source_port == run.sender_port and each.tsval]
    times = np.array([each.time_ns for each in mine])
    behind = times - np.array([each.tsval for each in mine]) * MILLISECOND_NS
    return times, behind - behind.min()


def longest_wait_ns(run: Run, until_ns: int) -> int:
    """Return the longest wait in the tbf in the last second."""
    times, waits = waits_ns(run)
    near = (times > until_ns - SECOND_NS) & (times <= until_ns)
    return int(waits[near].max()) if near.any() else 0


@on(ends=["snd"], copies=False)
def test_smoothed_round_trip_and_timeout_are_the_kernels_at_the_time(run: Run, data_then: DataThen) -> None:
    samples = chosen(run)
    assert len(samples) >= 2
    for sample in samples:
        kernel_ns = milliseconds_ns(sample.tokens["rtt"].partition("/")[0])
        wait_ns = longest_wait_ns(run, sample.time_ns) if run.scenario in QUEUED else 0
        ours_ns = [data.rtt_smoothed_ns or 0 for data in data_then(run, sample)]
        errors = [kernel_ns - each for each in ours_ns]
        assert any(-ERROR * kernel_ns <= error <= ERROR * kernel_ns + wait_ns for error in errors), (sample, ours_ns)
        kernel_ns = sample.number("rto") * MILLISECOND_NS
        ours_ns = [data.rto_ns or 0 for data in data_then(run, sample)]
        least, most = (1 - ERROR) * (kernel_ns - TICK_NS), (1 + ERROR) * kernel_ns
        assert any(max(RTO_MIN_NS, least) <= each <= most for each in ours_ns), (sample, ours_ns)


@on(ends=["snd"], without=[*QUEUED, *IPERF3], copies=False)
def test_variance_is_the_kernels_at_the_time(run: Run, data_then: DataThen) -> None:
    """MDEV, the second number of `rtt`, is a mean of differences to which the wait in the tbf contributes."""
    for sample in chosen(run):
        kernel_ns = milliseconds_ns(sample.tokens["rtt"].partition("/")[2])
        ours_ns = [data.rtt_variance_ns or 0 for data in data_then(run, sample)]
        most = ERROR * run.rtt_ns + longest_wait_ns(run, sample.time_ns)
        assert any(abs(each - kernel_ns) <= most for each in ours_ns), (sample, ours_ns)


@on(without=QUEUED)
def test_the_senders_round_trip_is_reported_at_both_ends(run: Run) -> None:
    """Compared with the last sample; at the receiver, the leg with the jitter counts with its minimum."""
    kernel_ns = milliseconds_ns(run.samples("snd")[-1].tokens["rtt"].partition("/")[0])
    ours_ns = run.data.sender_rtt_smoothed_ns
    assert abs(ours_ns - kernel_ns) <= ERROR * kernel_ns + run.jitter_ns


@on(ends=["snd"], without=LATE)
def test_least_round_trip_is_the_kernels(run: Run) -> None:
    """minrtt of the last sample: a segment that did not wait, or waited for at most one burst."""
    least_ns = milliseconds_ns(run.samples("snd")[-1].tokens["minrtt"])
    assert run.data.rtt_min_ns <= least_ns + SS_DELAY_NS
    assert run.data.rtt_min_ns == pytest.approx(least_ns, rel=0.02)
    assert run.data.rtt_min_ns >= run.rtt_ns - run.jitter_ns


@on(without=LATE)
def test_handshakes_halves_are_those_of_the_wire(run: Run) -> None:
    """Capture point to initiator and back: SYN/ACK to ACK; to the other side and back: SYN to SYN/ACK."""
    initiator = run.connection.a.port
    ports = {run.sender_port, run.receiver_port}
    segments = [each for each in read_segments(run.capture) if {each.source_port, each.target_port} == ports]
    syn = next(each for each in segments if each.flags & SYN)
    answer = next(each for each in segments if each.flags & SYN and each.source_port != initiator)
    ack = next(each for each in segments if each.frame > answer.frame and each.source_port == initiator)
    assert run.connection.handshake_rtt_a_ns == ack.time_ns - answer.time_ns
    assert run.connection.handshake_rtt_b_ns == answer.time_ns - syn.time_ns
