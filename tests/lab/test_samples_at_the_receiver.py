"""At every sample of ss, the receiver's capture matches the window, flight and bytes of both kernels.

netem delays every packet by half the round trip in each direction. The sender's knowledge at a time T therefore left
the receiver at T − half, and its data sent by then arrives by T + half.
"""

from __future__ import annotations

import numpy as np
from lab.agreement import fits_the_queue, has_acked, has_window, rows_near, samples_inside
from lab.runs import ACK, Run
from lab.selection import LATE, ROUGH, on
from lab.ss_text import Sample

# In runs with loss or jitter on the data's path, this share of samples may have their newest packets lost.
SHARE_LOST = 0.05
RECEIVED_FIN = ("CLOSE-WAIT", "LAST-ACK")


def has_clean_path(run: Run) -> bool:
    """Return whether packets were neither lost, delayed unevenly, nor refused by the receiver."""
    return run.scenario not in ROUGH and not run.counter("snd", "Tcp.RetransSegs")


@on(ends=["rcv"])
def test_window_and_acknowledged_bytes_match_the_sender_half_a_round_trip_later(run: Run) -> None:
    half_ns = run.rtt_ns // 2
    samples = samples_inside(run, "snd", early_ns=half_ns)
    assert len(samples) >= 2
    for sample in samples:
        rows = rows_near(run, sample.time_ns - half_ns)
        assert any(is_known(run, sample, row) for row in rows), sample


def is_known(run: Run, sample: Sample, row: int) -> bool:
    return has_window(run, sample, row) and has_acked(run, sample, row)


def arrived_less_known(run: Run, arrived: int, known: int) -> int:
    """Return data that had arrived after one row and was not yet acknowledged after an earlier one."""
    track = run.track
    return int(track.una[arrived] + track.flight[arrived] - track.una[known])


@on(ends=["rcv"])
def test_flight_matches_the_senders_half_a_round_trip_before(run: Run) -> None:
    """The sender's flight at T is the data that arrived by T + half, minus the data acknowledged by T − half."""
    half_ns = run.rtt_ns // 2
    jitter_ns = run.jitter_ns
    samples = samples_inside(run, "snd", early_ns=half_ns, late_ns=half_ns + jitter_ns)
    assert len(samples) >= 2
    different = 0
    for sample in samples:
        out = run.outstanding_bytes(sample)
        known = [row for row in rows_near(run, sample.time_ns - half_ns) if is_known(run, sample, row)]
        arrived = rows_near(run, sample.time_ns + half_ns)
        if has_clean_path(run):
            queues = {out - arrived_less_known(run, row, before) for row in arrived for before in known}
            assert any(fits_the_queue(run, sample, queue) for queue in queues), sample
            continue
        early = run.track.at(sample.time_ns + half_ns - jitter_ns)
        late = run.track.at(sample.time_ns + half_ns + jitter_ns)
        assert arrived_less_known(run, early, known[-1]) <= out, sample
        sent = out - sample.skmem["t"]
        different += arrived_less_known(run, late, known[0]) < sent
    assert different <= SHARE_LOST * len(samples)


@on(ends=["rcv"], without=LATE)
def test_bytes_received_are_those_acknowledged_and_in_flight(run: Run) -> None:
    """bytes_received is RCV.NXT: at this end all received data, unless a hole precedes it or the kernel refused it."""
    track = run.track
    samples = samples_inside(run, "rcv")
    assert len(samples) >= 2
    for sample in samples:
        received = sample.number("bytes_received") - (sample.state in RECEIVED_FIN)
        rows = rows_near(run, sample.time_ns)
        if has_clean_path(run):
            assert received in {int(track.una[row] + track.flight[row]) for row in rows}, sample
        else:
            assert any(track.una[row] <= received <= track.una[row] + track.flight[row] for row in rows), sample


@on(ends=["rcv"], without=LATE)
def test_the_senders_own_window_matches_the_receivers_kernel(run: Run) -> None:
    """In the opposite direction: snd_wnd at the receiver is the window advertised by the data's sender."""
    columns = run.columns
    rows = np.flatnonzero(run.from_sender & (columns["flags"] & ACK > 0))
    samples = samples_inside(run, "rcv")
    assert len(samples) >= 2
    for sample in samples:
        near = [int(row) for row in rows_near(run, sample.time_ns)]
        latest = np.searchsorted(rows, near, side="right") - 1
        windows = {int(columns["window"][rows[position]]) for position in latest if position >= 0}
        assert sample.number("snd_wnd") in windows, sample
