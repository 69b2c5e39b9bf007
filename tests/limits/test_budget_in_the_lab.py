"""The packets' time budget compared with the kernel's chronographs, over every lab run, at both ends.

The kernel's values are ss's busy, rwnd_limited and sndbuf_limited of the sender's socket (`tcp_chrono_start`,
net/ipv4/tcp_output.c). Shares agree within ten points of the connection's duration, except where a reason is given.
"""

from __future__ import annotations

import pytest
from lab.runs import Run
from lab.selection import SCENARIOS, on
from lab.ss_text import Sample

import tcpwin
from tcpwin.limits.budget import Budget, draw_up
from tcpwin.limits.tables import GROUPS, RECOVERY_ITEMS, WINDOW_ITEMS

POINTS = 0.10
MS = 1_000_000
# Largest group by packets alone, and with the sender's samples.
LARGEST = {
    # Writes of 64 KiB every 100 ms, round trip 80 ms: nothing to send between two writes.
    "app_limited": ("application", "application"),
    # 5 MB through 100 Mbit/s at 20 ms.
    "cooked_any": ("path", "path"),
    # 20 messages, 2 s apart: pauses; the restart costs 3.4 of 40 s.
    "idle_restart_ssai0": ("application", "application"),
    "idle_restart_ssai1": ("application", "application"),
    # 20 Mbit/s at 300 ms, with larger buffers.
    "iperf3_300ms_20mbit_512m2": ("path", "path"),
    # 1 % loss at 50 ms.
    "loss1_cubic_sack1": ("loss", "loss"),
    "loss1_reno_sack0": ("loss", "loss"),
    "loss1_reorder_cubic_sack1": ("loss", "loss"),
    # Without the SYN the scale is unknown; at the sender even the smallest scale leaves room. 50 Mbit/s at 60 ms.
    "mid_connection_noSYN": ("path", "path"),
    # 64 KiB of window at 85 ms and 1 Gbit/s.
    "no_wscale_85ms": ("receiver", "receiver"),
    # The reader alternates between 10 Mbit/s and less.
    "notsent_lowat_128k_466ms_10mbit": ("receiver", "receiver"),
    "notsent_lowat_off_466ms_10mbit": ("receiver", "receiver"),
    # 20 MB through 200 Mbit/s at 20 ms.
    "offload_on_bigframes": ("path", "path"),
    # The receiver's kernel refuses segments within the window: the sender's kernel sees losses, and recovers for longer
    # than it waits for the window.
    "oscil_10mbit_300ms_170p2_guard": ("loss", "loss"),
    "oscil_10mbit_300ms_170p2_vanilla": ("receiver", "receiver"),
    "oscil_10mbit_300ms_512m2_guard_vethtruesize": ("receiver", "receiver"),
    # 50 Mbit/s at 50 ms; the reordering costs no time.
    "reorder_only_cubic": ("path", "path"),
    # Receive buffers of 1 MiB and 64 KiB at 196 ms and 1 Gbit/s.
    "rmem_1024k_196ms": ("receiver", "receiver"),
    "rmem_64k_196ms": ("receiver", "receiver"),
    "slow_reader": ("receiver", "receiver"),
    # 10 MB at 85 ms and 1 Gbit/s: sent before slow start ended.
    "wscale_85ms": ("congestion window", "congestion window"),
    "zero_window_stall5s": ("receiver", "receiver"),
}
# Differences of more than ten points from the kernel's counters, with their causes.
EXPLAINED = {
    # The kernel is busy until the last byte is acknowledged; the budget assigns the time after a last small segment to
    # the application. Both are right: for 80 of each 100 ms data is in flight, and none waits to be sent.
    ("app_limited", "busy"): "in flight, with nothing more to send",
    # The receiver refuses segments, and the sender recovers while the window is full. The kernel counts the window, the
    # packets the recovery.
    ("oscil_10mbit_300ms_170p2_guard", "rwnd_limited"): "recovering while the window is full",
}


def chronographs(run: Run) -> tuple[dict[str, float], float]:
    """Return the kernel's counters during the capture as shares of its time, and the share after the last sample."""
    connection = run.connection
    samples = [sample for sample in run.samples("snd") if sample.time_ns <= connection.end_ns]
    before = [sample for sample in samples if sample.time_ns <= connection.start_ns]
    last = samples[-1]
    counted = {
        name: (_count_ns(last, name) - (_count_ns(before[-1], name) if before else 0)) / connection.duration_ns
        for name in ("busy", "rwnd_limited", "sndbuf_limited")
    }
    return counted, (connection.end_ns - last.time_ns) / connection.duration_ns


def _count_ns(sample: Sample, name: str) -> float:
    """Parse `123ms` or `123ms(4.5%)`."""
    return float(sample.tokens.get(name, "0ms").split("ms")[0]) * MS


def shares(budget: Budget) -> dict[str, tuple[float, float]]:
    """Return the same shares by packets, as minimum and maximum because unknown time may be any of them."""
    unknown = budget.share("unknown")
    idle = budget.share("handshake", "application", "closed")
    # The kernel counts a full window, but not ACKs that wait for the reader.
    window, buffer = budget.share(*WINDOW_ITEMS), budget.share("send_buffer")
    return {
        "busy": (1 - idle - unknown, 1 - idle),
        "rwnd_limited": (window, window),
        "sndbuf_limited": (buffer, buffer),
    }


def differences(run: Run) -> dict[str, float]:
    """Return differences of more than ten points between packets and kernel."""
    counted, unsampled = chronographs(run)
    found = {}
    for name, (least, most) in shares(draw_up(run.data)).items():
        # The kernel may have counted more since the last sample.
        below, above = counted[name] - most, least - counted[name] - unsampled
        if max(below, above) > POINTS:
            found[name] = max(below, above)
    return found


def largest(run: Run, budget: Budget) -> str:
    """Return the largest group; for a run with losses, including the smaller windows after them."""
    if LARGEST[run.scenario][0] != "loss":
        return budget.largest
    losses_ns = sum(budget.items_ns[item] for item in GROUPS["loss"])
    # Time waiting for the window, excluding ACKs that wait for the reader, which the kernel does not count.
    return "loss" if losses_ns > sum(budget.items_ns[item] for item in WINDOW_ITEMS) else budget.largest


@on(of=3)
def test_packets_agree_with_the_kernel(run: Run) -> None:
    explained = {name for scenario, name in EXPLAINED if scenario == run.scenario}
    if (run.scenario, run.end) == ("rmem_64k_196ms", "snd"):
        # Each ACK opens the window for the data it acknowledges, and until that is sent the kernel does not wait for
        # the window. Only the window keeps the flight constant.
        explained = {"rwnd_limited"}
    assert set(differences(run)) == explained, differences(run)


@on(["app_limited"])
def test_the_sender_with_nothing_more_to_send_had_data_in_flight(run: Run) -> None:
    """The kernel counts time with data in flight as busy."""
    times, flight = run.track.time_ns, run.track.flight
    in_flight_ns = int((times[1:] - times[:-1])[flight[:-1] > 0].sum())
    if run.end == "snd":
        counted, _ = chronographs(run)
        assert abs(in_flight_ns / run.connection.duration_ns - counted["busy"]) < POINTS
    assert draw_up(run.data).share("application") > 0.95


@on(["oscil_10mbit_300ms_170p2_guard"])
def test_the_window_was_full_while_the_sender_recovered(run: Run) -> None:
    """The kernel's time for the window is between the budget's with and without recovery."""
    counted, _ = chronographs(run)
    budget = draw_up(run.data)
    window = budget.share(*GROUPS["receiver"])
    assert window < counted["rwnd_limited"] < window + budget.share(*RECOVERY_ITEMS)


@on(of=3, first=1)
def test_the_largest_group_is_the_runs_cause(run: Run) -> None:
    budget = draw_up(run.data)
    # Without the SYNs only the FIN shows the distance to the sender, too late to judge its flight.
    is_hidden = (run.scenario, run.end) == ("mid_connection_noSYN", "rcv")
    assert largest(run, budget) == ("unknown" if is_hidden else LARGEST[run.scenario][0]), budget.groups_ns
    assert budget.total_ns == run.connection.duration_ns


@on(of=6, first=2)
def test_the_largest_group_with_samples(run: Run) -> None:
    analysis = tcpwin.analyze(run.capture, snapshots=[run.truth / "ss_snd.txt", run.truth / "ss_rcv.txt"])
    connection = analysis.connections[run.connection.id]
    budget = connection.budget[run.way]
    assert largest(run, budget) == LARGEST[run.scenario][1], budget.groups_ns
    assert budget.total_ns == run.connection.duration_ns
    if budget.kernel is not None:
        # The kernel's time for the window, at most with what the packets assign to recovery or the application.
        least = min(budget.kernel.rwnd_limited_ns, sum(budget.packets_ns[item] for item in WINDOW_ITEMS))
        window_ns = sum(budget.items_ns[item] for item in WINDOW_ITEMS)
        assert least <= window_ns + len(WINDOW_ITEMS)
        assert window_ns <= budget.kernel.rwnd_limited_ns


@on(["loss1_cubic_sack1", "loss1_reno_sack0"], copies=False)
def test_the_recovery_has_its_own_items(run: Run) -> None:
    """1 % loss with fast retransmissions: no time for the window, nearly all after a loss or in recovery."""
    budget = draw_up(run.data)
    assert budget.share("after_loss", "fast_recovery", "timeout") > 0.97
    assert budget.share(*GROUPS["receiver"], "path", "send_buffer") == 0


@on(["idle_restart_ssai1", "idle_restart_ssai0"])
def test_idle_restarts_cost_a_round_trip_each(run: Run) -> None:
    """19 messages of two flights instead of one, 180 ms each; none with the sysctl off."""
    cost_ns = draw_up(run.data).items_ns["idle_restart"]
    assert cost_ns == run.data.idle_restart_cost_ns
    assert cost_ns == pytest.approx(19 * 180 * MS if run.scenario == "idle_restart_ssai1" else 0, rel=0.01)


def test_every_run_is_in_the_table() -> None:
    assert set(LARGEST) == set(SCENARIOS)
    assert {scenario for scenario, _ in EXPLAINED} <= set(SCENARIOS)
