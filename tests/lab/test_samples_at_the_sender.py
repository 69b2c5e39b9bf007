"""At every sample of ss, the sender's capture has its kernel's window, flight and segments."""

from __future__ import annotations

import numpy as np
import pytest
from lab.agreement import PACKET_MEMORY_BYTES, agrees, rows_near, samples_inside
from lab.runs import FIN, SYN, Run, modulo_difference
from lab.selection import IPERF3, IRREGULAR, LATE, ROUGH, on

# ss read the other samples up to 89 µs later, after the next packet: 15 of 2,568, at most 3 of 53 in one run.
SHARE_AT_ONCE = 0.9
# Relative error of a mean over about fifty samples.
MEAN_ERROR = 0.05


@on(ends=["snd"])
def test_window_flight_and_acknowledged_bytes_are_the_kernels_at_every_sample(run: Run) -> None:
    samples = samples_inside(run, "snd")
    assert len(samples) >= 2
    wrong = [
        sample.time_ns
        for sample in samples
        if not any(agrees(run, sample, row) for row in rows_near(run, sample.time_ns))
    ]
    assert not wrong, f"{len(wrong)} of {len(samples)} samples: {wrong[:5]}"
    # Nearly every sample matches at its exact time.
    at_once = [agrees(run, sample, run.track.at(sample.time_ns)) for sample in samples]
    assert at_once.count(False) <= max(1, (1 - SHARE_AT_ONCE) * len(samples))


@on(ends=["snd"], without=LATE)
def test_unacked_is_the_number_of_segments_in_flight(run: Run) -> None:
    """`unacked` counts packets, so `unacked` × mss is the flight if every segment is full."""
    columns = run.columns
    ours = run.from_sender
    start = int(columns["seq"][ours & (columns["flags"] & SYN > 0)][0]) + 1
    rows = ours & (columns["length"] > 0)
    starts, first = np.unique(modulo_difference(columns["seq"][rows], start), return_index=True)
    lengths = columns["length"][rows][first]
    fin_alone = bool((ours & (columns["flags"] & FIN > 0) & (columns["length"] == 0)).any())
    for sample in samples_inside(run, "snd"):
        una = run.acked_bytes(sample)
        end = una + run.outstanding_bytes(sample)
        out = lengths[(starts + lengths > una) & (starts < end)]
        segments = int(np.sum(-(-out // sample.number("mss"))))
        fin = fin_alone and sample.state == "FIN-WAIT-1"
        assert segments + fin == sample.number("unacked"), sample


@on([*LATE, *ROUGH, *IPERF3], ends=["snd"])
def test_unacked_times_mss_is_the_flight_where_every_segment_is_full(run: Run) -> None:
    samples = samples_inside(run, "snd")
    whole = [sample.number("unacked") * sample.number("mss") == run.outstanding_bytes(sample) for sample in samples]
    # iperf3's cookie of 37 bytes is alone in flight once.
    assert whole.count(False) <= run.is_iperf3


@on(ends=["snd"])
def test_series_hold_the_window_and_the_flight_of_every_sample(run: Run) -> None:
    """A series has extremes per bucket; between buckets the previous one's last value holds."""
    samples = samples_inside(run, "snd")
    for name in ("flight",) if run.is_late else ("flight", "receive_window"):
        series = run.connection.series(name, direction=run.way)
        column = run.track.flight if name == "flight" else run.track.window
        for sample in samples:
            rows = [row for row in rows_near(run, sample.time_ns) if agrees(run, sample, row)]
            time_ns = int(run.track.time_ns[rows[0]])
            bucket = int(np.searchsorted(series.time_ns, max(sample.time_ns, time_ns), side="right")) - 1
            value = int(column[rows[0]])
            inside = series.min[bucket] <= value <= series.max[bucket]
            assert inside or (bucket > 0 and value == series.last[bucket - 1]), (name, sample.time_ns)


@on(ends=["snd"], without=LATE)
def test_extremes_enclose_every_sample(run: Run) -> None:
    samples = samples_inside(run, "snd")
    windows = [sample.number("snd_wnd") for sample in samples]
    data = run.data
    assert data.receive_window_min_bytes <= min(windows) <= max(windows) <= data.receive_window_max_bytes
    assert max(run.outstanding_bytes(sample) - sample.skmem["t"] for sample in samples) <= data.flight_max_bytes


@on(IRREGULAR, ends=["snd"], copies=False)
def test_means_over_time_are_those_of_the_samples(run: Run) -> None:
    """At least fifty samples, five a second, of runs that are not synchronised with them."""
    samples = samples_inside(run, "snd")
    assert len(samples) >= 50
    windows = [sample.number("snd_wnd") for sample in samples]
    assert run.data.receive_window_mean_bytes == pytest.approx(sum(windows) / len(windows), rel=MEAN_ERROR)
    # Data queued in the tbf is in flight but not captured: from about one segment to PACKET_MEMORY_BYTES.
    flights = [
        run.outstanding_bytes(sample)
        - sample.skmem["t"] * sample.number("mss") // (sample.number("mss") + PACKET_MEMORY_BYTES)
        for sample in samples
    ]
    assert run.data.flight_mean_bytes == pytest.approx(sum(flights) / len(flights), rel=MEAN_ERROR)
