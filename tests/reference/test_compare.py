"""Comparing a transfer with nearby references: nearest run, verdict, memory model, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cases import all_cases
from reference import NO_LAB

import tcpwin
from tcpwin.analysis import DirectionName
from tcpwin.lab import kernel_path, read_scenario, run_scenario
from tcpwin.reference import (
    Comparison,
    Measured,
    compare,
    compare_measured,
    measure_connection,
    measure_sockets,
    predict,
    reference,
)

CAPTURES = Path(__file__).parents[2] / "captures"
SMALL_WINDOW = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
MIB, MS, SECOND = 1 << 20, 1_000_000, 1_000_000_000


def compared(name: str, *, capture: str | None = None, rate_bps: float | None = None) -> Comparison:
    analysis = tcpwin.analyze(CAPTURES / name, capture=capture)
    return compare(analysis.connections[0], rate_bps=rate_bps)


def names(comparison: Comparison) -> list[str]:
    return [f"{near.run.reference}/{near.run.name}" for near in comparison.nearest]


@pytest.fixture(scope="module", params=["sender", "receiver"])
def small_window(request: pytest.FixtureRequest) -> Comparison:
    return compared("reference/bulk-300ms-4m2-stock.zip", capture=f"{request.param}.pcap.gz", rate_bps=1e9)


@pytest.mark.parametrize("kernel", ["stock", "patched"])
def test_the_nearest_of_a_lab_run_is_the_run_of_its_scenario(kernel: str) -> None:
    measured = measure_sockets(CAPTURES / "reference" / f"oscil-300ms-170p2-{kernel}.zip", rate_bps=1e9)
    assert measured.workload == "oscillating-reader"
    found = compare_measured(measured)
    assert names(found)[0] == f"lab-oscil-300ms/170p2-{kernel}"
    assert found.nearest[0].distance == 0
    assert len(found.cells[0]) == 2 + len(found.beside)
    # The bundle's counters equal those of the shipped table: they are one run.
    run = reference("lab-oscil-300ms").run(f"170p2-{kernel}")
    shared = run.counters.keys() & measured.counters.keys()
    assert len(shared) == 4
    assert {name: measured.counters[name] for name in shared} == {name: run.counters[name] for name in shared}
    # 941 Mbit/s is the payload on 1 Gbit/s of Ethernet with timestamps: 1448 of 1538 bytes.
    assert measured.best_second_bps == pytest.approx(1e9 * 1448 / 1538, rel=0.001)
    assert found.prediction is None, "a larger buffer cures neither a slow reader nor an overflow"


def test_an_overflowing_queue_is_reported_with_the_settings_that_avoid_it() -> None:
    stock = compare_measured(measure_sockets(CAPTURES / "reference" / "oscil-300ms-170p2-stock.zip"))
    assert "reached 1 to 941 / 684 to 941 / 941 to 942 Mbit/s in the fast seconds of its loops over 300 ms" in (
        stock.verdict
    )
    assert "PruneCalled 24, TCPRcvCollapsed 744,409; lab-oscil-300ms/256p1-stock" in stock.verdict


def test_the_models_window_is_the_packets(small_window: Comparison) -> None:
    """4 MiB at -2: a quarter, 1,048,576 bytes. With shift 7 that is 8,192 units, and no other limit is lower."""
    measured = small_window.measured
    assert (measured.rmem_max_bytes, measured.adv_win_scale, measured.kernel) == (4 * MIB, -2, "6.1.192")
    assert measured.window_max_bytes == pytest.approx(MIB, rel=0.002)
    assert small_window.agreement.startswith("memory model: 4 MiB at -2 gives 1 MiB; ")
    assert small_window.agreement.endswith("they agree")


def test_the_verdict_on_a_small_window(small_window: Comparison) -> None:
    assert small_window.best is reference("lab-bulk-300ms").run("512m2-stock")
    assert small_window.verdict.startswith(
        "lab-bulk-300ms/512m2-stock (Linux 6.1.192, 512 MiB at -2 gives 128 MiB) "
        "reached 941 Mbit/s in its best second, 602 Mbit/s on average, over 300 ms. Yours reached "
    )
    # From the first byte to the last ACK: at the receiver that is a round trip shorter than at the sender.
    assert small_window.measured.goodput_bps == pytest.approx(20.8e6, rel=0.03)
    assert "limited by the client's receive window (" in small_window.verdict
    assert small_window.verdict.endswith(": 4 MiB at -2 gives 1 MiB.")
    rows = {row.name: (row.yours, row.reference) for row in small_window.rows}
    assert rows["window by the settings"][0] == "1 MiB"
    assert rows["stalls"] == ("none", None), "references state none"
    # The nearest run is not the verdict's, which has a separate column.
    assert [f"{run.reference}/{run.name}" for run in small_window.beside] == [
        "cloudflare-production/melbourne-old",
        "lab-bulk-300ms/512m2-stock",
    ]
    cells = {name: rest for name, *rest in small_window.cells}
    assert cells["throughput"][1:] == ["120 Mbit/s", "941 Mbit/s"]
    # The run's kernel: 128 MiB of window, and what 941 Mbit/s keep on a path of 300 ms.
    assert cells["largest window seen"][1:] == [None, "128 MiB"]
    assert cells["most in flight"][2] == "33.9 MiB"


def test_the_prediction_for_the_references_settings(small_window: Comparison) -> None:
    """Slow start limits 16 MB: 10 × 1448 × (2^n - 1) reaches it at n = 11 (n = 10 gives 14.8 MB), 3.3 s, 38.8 Mbit/s.

    The lab's kernel reached 38.7 Mbit/s with these settings.
    """
    prediction = small_window.prediction
    assert prediction.allowed.window_bytes == 128 * MIB
    assert prediction.allowed.rate_bps == pytest.approx(128 * MIB * 8 / 0.3, rel=1e-5)
    assert prediction.goodput_bps == pytest.approx(16e6 * 8 / (11 * 0.3), rel=0.001)
    assert prediction.ceiling_bps == 1e9, "the path's, which is less than the window's"
    assert prediction.lines == (
        'sysctl -w net.ipv4.tcp_rmem="8192 262144 536870912"',
        "sysctl -w net.ipv4.tcp_adv_win_scale=-2",
    )
    assert "the path carries no more than 1 Gbit/s;" in prediction.assumptions


def bulk(**other: object) -> Measured:
    """A minute at 1 MiB over 300 ms, limited by the window for 54 s."""
    known: dict[str, object] = {
        "rtt_ns": 300 * MS,
        "goodput_bps": 25e6,
        "volume_bytes": 187_500_000,
        "duration_ns": 60 * SECOND,
        "window_ns": 54 * SECOND,
        "window_max_bytes": MIB,
        "kernel": "6.1.0",
        "rmem_max_bytes": 4 * MIB,
        "adv_win_scale": -2,
        "is_patched": False,
        "workload": "iperf3",
        "limit": "receiver_window",
        "limited_by": "limited by b's receive window",
    }
    return Measured("made by hand", "b", **{**known, **other})  # type: ignore[arg-type]


def test_a_prediction_by_hand() -> None:
    """54 s at 1/128 are 0.42 s, and 6 s remain: 187.5 MB in 6.42 s are 233.6 Mbit/s."""
    run = reference("lab-bulk-300ms").run("512m2-stock")
    found = predict(bulk(), run)
    assert found.goodput_bps == pytest.approx(187.5e6 * 8 / (6 + 54 / 128))
    # Over a path of 100 Mbit/s no setting gives more.
    assert predict(bulk(path_rate_bps=1e8), run).goodput_bps == 1e8
    # From 6.6 on the scale has no effect: half of the buffer before anything is measured.
    newer = predict(bulk(kernel="6.12", adv_win_scale=None, rmem_max_bytes=2 * MIB), run)
    assert newer.allowed.words == "512 MiB at 128/256 gives 256 MiB"
    assert len(newer.lines) == 1


@pytest.mark.parametrize(("share", "words"), [(111, "512 MiB at 111/256 gives 222 MiB"), (243, "512 MiB at 243/256")])
def test_from_6_6_on_a_connections_own_share_counts(share: int, words: str) -> None:
    """1448 bytes in 3328 are 111/256, veth's 243/256: the connection's share, not the initial half."""
    run = reference("lab-bulk-300ms").run("512m2-stock")
    measured = bulk(kernel="6.12", adv_win_scale=None, rmem_max_bytes=2 * MIB, window_max_bytes=2 * MIB * share // 256)
    found = compare_measured(measured)
    assert "other settings were in force" not in found.agreement
    assert f"{round(100 * share / 256)} % of the buffer" in found.agreement
    prediction = predict(measured, run)
    assert prediction.allowed.words.startswith(words)


@all_cases(
    ("other", "said"),
    [
        ({"limit": "path_rate", "limited_by": "limited by the path"}, "would not help: it was limited by the path."),
        ({"is_reader_slow": True}, "the application on b reads too slowly."),
        ({"is_unscaled": True}, "without the window scale option the maximum is 65,535 bytes."),
        ({"window_max_bytes": MIB // 2}, "the window never came above 512 KiB"),
        ({"limit": "capture"}, "Its limit is unknown"),
        (
            {"rmem_max_bytes": 512 * MIB, "window_max_bytes": 128 * MIB},
            "allow no larger window than yours: 512 MiB at -2 gives 128 MiB.",
        ),
    ],
)
def test_no_gain_is_promised(other: dict[str, object], said: str) -> None:
    found = predict(bulk(**other), reference("lab-bulk-300ms").run("512m2-stock"))
    assert found.goodput_bps is None
    assert not found.lines
    assert said in found.text


@all_cases(
    ("other", "said"),
    [
        ({"rtt_ns": 2_000 * MS}, "yours is 2 s"),
        ({"path_rate_bps": 10e6}, "its path carries 10 Mbit/s"),
        ({"best_second_bps": 30e9, "rtt_ns": 30 * MS}, "it carried 30 Gbit/s"),
        ({"rtt_ns": None}, "its round trip is unknown"),
        ({"workload": None, "shape": "a trickle"}, "no reference has its shape: a trickle"),
    ],
)
def test_a_transfer_far_from_all_runs_gets_no_verdict(other: dict[str, object], said: str) -> None:
    found = compare_measured(bulk(**other))
    assert said in found.why_not
    assert (found.nearest, found.best, found.verdict, found.prediction, found.rows) == ((), None, None, None, ())


@all_cases(
    ("name", "said"),
    [
        ("bundles/slow-reader.zip", "a reader that was slow or stopped"),
        ("bundles/without-syn.zip", "its path carries 46.3 Mbit/s"),
        ("wild/keep-alive.pcap", "the sender had nothing to send for most of the time"),
        ("wild/lossy-path.pcapng.gz", "a transfer of 13 round trips"),
        ("lab/zero-window-stall.pcap.gz", "a reader that was slow or stopped"),
    ],
)
def test_captures_that_no_reference_is_like(name: str, said: str) -> None:
    found = compared(name)
    assert found.why_not.startswith("No published run is near enough to compare with: ")
    assert said in found.why_not
    assert (found.verdict, found.prediction) == (None, None)


def test_without_settings_the_prediction_says_what_it_assumes() -> None:
    """The packets do not show whether SO_RCVBUF or tcp_rmem set the 64 KiB that limit the window."""
    connection = tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz").connections[0]
    found = compare(connection, rate_bps=1e9)
    assert found.agreement is None
    assert found.prediction is not None
    assert any("your settings are unknown" in each for each in found.prediction.assumptions)
    assert any("your kernel is older than 6.6" in each for each in found.prediction.assumptions)
    assert any("the sender's buffer (tcp_wmem)" in each for each in found.prediction.assumptions)


def test_a_send_buffer_that_is_left_bounds_the_prediction() -> None:
    """2 MiB allow 1.9 MiB in flight over 300 ms: at most 53 Mbit/s, whatever the receiver's buffer."""
    run = reference("lab-bulk-300ms").run("512m2-stock")
    found = predict(bulk(wmem_max_bytes=2 * MIB), run)
    assert found.ceiling_bps == pytest.approx(0.95 * 2 * MIB * 8 / 0.3, rel=1e-3)
    assert found.goodput_bps < found.ceiling_bps
    assert "raise it as well" in found.text
    left = predict(bulk(wmem_max_bytes=MIB), run)
    assert left.goodput_bps is None
    assert "A larger receive buffer alone would not help: the sender's tcp_wmem of 1 MiB" in left.text


@all_cases(
    ("other", "said"),
    [
        ({"loss_share": 0.01}, "its path randomly loses 1.00 % of the segments, and no reference's does"),
        ({"limit": "path_policer", "limited_by": "limited by a policer"}, "it was limited by a policer"),
        ({"workload": "oscillating-reader", "kernel": "6.12.1", "path_rate_bps": 1e9}, "has Linux 6.12.1"),
        ({"rtt_ns": 600 * MS, "path_rate_bps": 1e9}, "yours is 600 ms"),
        ({"path_rate_bps": 40e6}, "its path carries 40 Mbit/s"),
        ({}, "it carried 25 Mbit/s, and its path's rate is unknown (give it with --rate)"),
    ],
)
def test_what_would_mislead_is_not_shown(other: dict[str, object], said: str) -> None:
    found = compare_measured(bulk(**other))
    assert said in (found.why_not or "")
    assert (found.nearest, found.traced) == ((), None)


def test_the_parts_of_a_distance_are_shown() -> None:
    found = compare_measured(bulk(path_rate_bps=9e8))
    assert found.nearest
    for near in found.nearest:
        assert len(near.distances) == len(near.why)
        assert sum(near.distances) == pytest.approx(near.distance)


def test_a_run_that_is_faster_for_another_reason_says_so() -> None:
    """The window did not limit this transfer: a run at 941 Mbit/s promises nothing."""
    found = compare_measured(bulk(path_rate_bps=9e8, limit="send_buffer", limited_by="limited by the send buffer"))
    assert "what limited yours did not limit it" in found.verdict


@pytest.mark.parametrize(("name", "first"), [("on", "tcpping-on"), ("off", "tcpping-off")])
def test_messages_by_their_setting(name: str, first: str) -> None:
    """99 of 100 messages took 271 ms with restarts, 92 ms without: a round trip of 180 ms less."""
    found = compared(f"reference/idle-restart-{name}-stock.zip", capture="sender.pcap.gz")
    assert f"ably-idle-restart/{first}" in names(found)[:2]
    distances = {near.run.name: near.distance for near in found.nearest}
    assert distances["tcpping-on"] - distances["tcpping-off"] == (1 if name == "off" else -1)
    assert found.verdict.startswith("ably-idle-restart, messages over 180 ms: ")
    assert "p99 358 ms with tcp_slow_start_after_idle 1" in found.verdict
    assert ("Yours: p99 271 ms" if name == "on" else "Yours: p99 92.3 ms") in found.verdict
    assert ("setting it to 0 would avoid that" in found.verdict) == (name == "on")


def test_a_window_above_the_models_is_reported() -> None:
    found = compare_measured(bulk(window_max_bytes=3 * MIB))
    assert "more than the model allows" in found.agreement
    assert compare_measured(replace(bulk(), rmem_max_bytes=None)).agreement is None


SLOW_MESSAGES = """
title = "30 KB every 2 s at 600 kbit/s: each takes 410 ms at the path's rate"
[path]
rtt_ms = 180
rate_mbps = 0.6
[workload]
name = "messages"
serve.message_bytes = 30720
serve.count = 12
serve.gap_s = 2.0
[measure]
sample_ms = 5000
quick = true
"""


@pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")
def test_messages_that_wait_for_the_path_differ_from_those_that_wait_for_a_window(tmp_path: Path) -> None:
    scenario = read_scenario("slow-messages", SLOW_MESSAGES)
    bundle = run_scenario(scenario, "stock", tmp_path).bundle
    found = compare(tcpwin.analyze(str(bundle), capture="sender.pcap.gz").worst(1)[0])
    assert found.nearest == ()
    assert "messages that take longer at the path's rate than a round trip" in found.why_not


def test_the_direction_that_carried_the_data_is_compared() -> None:
    """A verdict may be about the requests, which lost most time; no run is similar to those."""
    connection = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz").connections[0]
    larger: DirectionName = "a_to_b" if connection.a_to_b.unique_bytes > connection.b_to_a.unique_bytes else "b_to_a"
    smaller: DirectionName = "b_to_a" if larger == "a_to_b" else "a_to_b"
    of_requests = replace(connection.verdicts[larger], direction=smaller)
    measured = measure_connection(connection, verdict=of_requests)
    assert measured.direction == larger
    assert measured.volume_bytes > 1_000_000
    assert measured.limit == connection.verdicts[larger].limit
