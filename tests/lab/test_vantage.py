"""The vantage point of captures, and at the receiver the flight in the sender's view.

The truth is the sender's capture of the same run. ss counts data waiting in the tbf, which no capture shows.
"""

from __future__ import annotations

import pytest
from lab.agreement import samples_inside
from lab.runs import MILLISECOND_NS, Run, read_run
from lab.selection import ROUGH, on

# netem delays every packet by half a round trip, plus or minus its jitter; a burst takes some milliseconds to leave the
# tbf.
QUEUE_NS = 10 * MILLISECOND_NS
# Lost segments are in the sender's flight, and unknown at the other end until later data arrives.
FLIGHT_ERROR = 0.05
ROUGH_FLIGHT_ERROR = 0.1


def error(run: Run) -> float:
    return ROUGH_FLIGHT_ERROR if run.scenario in ROUGH else FLIGHT_ERROR


@on()
def test_the_vantage_is_the_end_of_the_capture(run: Run) -> None:
    other = "b" if run.sender == "a" else "a"
    assert run.connection.vantage == (run.sender if run.end == "snd" else other)
    assert run.data.view == {"snd": "sender", "rcv": "receiver"}[run.end]


@on(cut=False)
def test_the_shift_is_the_round_trip_to_the_sender(run: Run) -> None:
    shift_ns = run.data.sender_shift_ns
    path_ns = 0 if run.end == "snd" else run.rtt_ns
    assert abs(shift_ns - path_ns) <= 0.05 * run.rtt_ns + run.jitter_ns + QUEUE_NS * (run.end == "rcv")


@on(ends=["snd"])
def test_at_the_senders_end_the_senders_flight_is_the_flight(run: Run) -> None:
    """At the sender the capture shows the sender's view, so there is no second figure."""
    assert run.data.sender_flight_max_bytes is None
    assert run.data.sender_flight_mean_bytes is None
    assert run.data.cwnd_estimate_max_bytes == run.data.flight_max_bytes


@on(ends=["rcv"], copies=False)
def test_at_the_receivers_end_the_senders_flight_matches_the_other_capture(run: Run) -> None:
    truth = read_run(run.scenario, "snd", "").data
    assert run.data.sender_flight_max_bytes == pytest.approx(truth.flight_max_bytes, rel=error(run))
    assert run.data.sender_flight_mean_bytes == pytest.approx(truth.flight_mean_bytes, rel=error(run))
    # The shift is needed because arriving data is acknowledged immediately.
    assert run.data.flight_mean_bytes < 0.6 * run.data.sender_flight_mean_bytes


@on(ends=["rcv"], copies=False)
def test_the_senders_flight_at_the_receivers_end_reaches_that_of_every_sample(run: Run) -> None:
    """The unacknowledged data in ss, minus the data in the tbf, which no capture has."""
    samples = samples_inside(run, "snd", early_ns=run.rtt_ns // 2, late_ns=run.rtt_ns // 2)
    most = max(run.outstanding_bytes(sample) - sample.skmem["t"] for sample in samples)
    assert run.data.sender_flight_max_bytes >= (1 - error(run)) * most
