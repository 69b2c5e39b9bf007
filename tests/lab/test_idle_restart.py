"""Idle restart: the same twenty messages, two seconds apart, with tcp_slow_start_after_idle on and off.

The reader's program measured each message's delay from its write to its last byte: 271 ms if the sender needs a second
flight, 92 ms otherwise. The difference is the cost of the restart.
"""

from __future__ import annotations

import pytest
from lab.runs import MILLISECOND_NS, SECOND_NS, Run
from lab.selection import on

ON, OFF = "idle_restart_ssai1", "idle_restart_ssai0"
# Neither end shows the time from the program's write to the first segment, nor does a capture see the first segment
# wait in the tbf, which spreads a message over 3 ms.
DELAY_ERROR_NS = 3 * MILLISECOND_NS
INITIAL_WINDOW = 10


def delays_ns(run: Run) -> list[float]:
    """Return the delays measured by the reader's program."""
    return [delay_ms * MILLISECOND_NS for delay_ms in run.reader["one_way_ms"]]


def least_delay_ns(run: Run) -> float:
    """Return the delay of a message sent in one flight: half the round trip, plus its time at the sender's rate."""
    message_bytes = message_bytes_of(run)
    segments = -(-message_bytes // run.samples("snd")[-1].number("mss"))
    # tbf counts 24 bytes per packet in addition to Ethernet's 14, TCP's and IP's 52.
    wire_bytes = message_bytes + segments * (24 + 14 + 52)
    rate_bps = float(run.meta["scenario"]["rate_mbit"]) * 1e6
    return run.rtt_ns / 2 + wire_bytes * 8 / rate_bps * SECOND_NS


@on([ON, OFF])
def test_every_message_follows_an_idle_gap(run: Run) -> None:
    messages = run.meta["scenario"]["sender"]["count"]
    assert run.data.messages == messages == len(delays_ns(run))
    assert run.data.idle_gaps == messages - 1
    # A gap begins with the last ACK of the previous message: at the sender it is captured half a round trip after the
    # last byte arrived, at the receiver immediately, where everything is seen half a round trip late.
    back_ns = run.rtt_ns / 2 if run.end == "snd" else -run.rtt_ns / 2
    interval_ns = run.meta["scenario"]["sender"]["interval"] * SECOND_NS
    idle_ns = sum(interval_ns - (delay_ns + back_ns) for delay_ns in delays_ns(run)[:-1])
    assert run.data.idle_ns == pytest.approx(idle_ns, abs=(messages - 1) * DELAY_ERROR_NS)


@on([ON])
def test_every_message_after_the_first_restarts_at_the_measured_cost(run: Run) -> None:
    messages = run.meta["scenario"]["sender"]["count"]
    assert run.data.idle_restarts == messages - 1
    restarts = [event for event in run.connection.events if "idle_restart" in event.names]
    assert len(restarts) == messages - 1
    # The event is at the first segment of the second flight, which the reduced window delayed by a round trip.
    interval_ns = run.meta["scenario"]["sender"]["interval"] * SECOND_NS
    begun_ns = run.data.first_data_ns
    for message, event in enumerate(restarts, start=1):
        after_ns = event.time_ns - begun_ns
        assert after_ns == pytest.approx(message * interval_ns + run.rtt_ns, abs=DELAY_ERROR_NS)
    # The cost measured by the program, within one round trip in total; one round trip per restart.
    cost_ns = sum(delay_ns - least_delay_ns(run) for delay_ns in delays_ns(run)[1:])
    assert run.data.idle_restart_cost_ns == pytest.approx(cost_ns, abs=run.rtt_ns)
    assert run.data.idle_restart_round_trips == len(restarts)


@on([OFF])
def test_nothing_restarts_with_the_sysctl_off(run: Run) -> None:
    assert (run.data.idle_restarts, run.data.idle_restart_round_trips) == (0, 0)
    assert run.data.idle_restart_cost_ns == 0
    assert not any("idle_restart" in event.names for event in run.connection.events)


@on([ON, OFF], ends=["snd"])
def test_the_least_delay_is_the_programs(run: Run) -> None:
    """Guards the truth: with the sysctl off every message but the first takes this long."""
    late = [delay_ns for delay_ns in delays_ns(run) if abs(delay_ns - least_delay_ns(run)) > DELAY_ERROR_NS]
    assert len(late) == (1 if run.scenario == OFF else len(delays_ns(run)))


@on([ON, OFF])
def test_message_delays_are_those_that_the_program_measured(run: Run) -> None:
    ordered = sorted(delays_ns(run))
    for share, measured in (
        (0.5, run.data.message_delay_p50_ns),
        (0.95, run.data.message_delay_p95_ns),
        (0.99, run.data.message_delay_p99_ns),
    ):
        # Whichever neighbours a percentile of twenty values uses.
        rank = share * (len(ordered) - 1)
        least, most = ordered[int(rank)], ordered[min(len(ordered) - 1, int(rank) + 1)]
        assert least - DELAY_ERROR_NS <= measured <= most + DELAY_ERROR_NS, share


@on([ON, OFF], ends=["snd"])
def test_the_kernels_window_is_cut_in_one_run_only(run: Run) -> None:
    """Guards the truth: cwnd in ss while idle, and with a message's first flight sent.

    tcp_slow_start_after_idle_check halves cwnd for every RTO since the last data, down to the initial window.
    """
    samples = [sample for sample in run.samples("snd") if sample.number("bytes_sent") > message_bytes_of(run)]
    idle = {sample.number("cwnd") for sample in samples if sample.number("unacked") == 0}
    busy = {sample.number("cwnd") for sample in samples if sample.number("unacked") > 0}
    rto_ns = max(sample.number("rto") for sample in samples) * MILLISECOND_NS
    silent_ns = run.meta["scenario"]["sender"]["interval"] * SECOND_NS - run.rtt_ns
    left = max(INITIAL_WINDOW, max(idle) >> int(silent_ns / rto_ns))
    assert left == INITIAL_WINDOW < min(idle)
    assert (min(busy) == INITIAL_WINDOW) == (run.scenario == ON)


def message_bytes_of(run: Run) -> int:
    """Return the bytes of a message; the first one starts without a window to reduce."""
    return int(run.meta["scenario"]["sender"]["msg_bytes"])
