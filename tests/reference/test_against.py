"""A prediction compared with a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tcpwin
from tcpwin.reference import against, measure_connection, predict, reference
from tcpwin.reference.measured import Measured

BUNDLE = Path(__file__).parents[2] / "captures" / "reference" / "bulk-300ms-4m2-stock.zip"
MIB = 1 << 20


def measured() -> Measured:
    found = measure_connection(tcpwin.analyze(BUNDLE, capture="sender.pcap.gz").connections[0])
    assert found is not None
    return found


def test_the_same_settings_give_the_same() -> None:
    found = against(measured(), measured())
    assert (found.is_window_right, found.is_rate_right) == (True, True)
    rows = {name: rest for name, *rest in found.rows}
    assert rows["throughput"][1:] == ["20.3 Mbit/s", "20.3 Mbit/s"]
    assert rows["largest window"][1] == "1 MiB"
    assert "less than 1 % apart" in found.verdict


def test_a_slower_path_gives_no_more_than_its_rate() -> None:
    """20.3 Mbit/s were captured; a run over a path of 10 cannot reach more."""
    slower = replace(measured(), path_rate_bps=10e6)
    rows = {name: rest for name, *rest in against(slower, replace(slower, goodput_bps=9.4e6)).rows}
    assert rows["throughput"] == ["20.3 Mbit/s", "10 Mbit/s", "9.4 Mbit/s"]


def test_a_run_that_breaks_the_prediction_is_reported() -> None:
    """38.8 Mbit/s were predicted for other settings; a run that stays at 20.3 is 48 % slower."""
    captured = measured()
    found = against(captured, captured, predict(captured, reference("lab-bulk-300ms").run("512m2-stock")))
    assert found.is_rate_right is False
    assert "The prediction was 38.8 Mbit/s, the run reached 20.3 Mbit/s (48 % less)" in found.verdict


def test_a_limit_of_the_capture_that_did_not_limit_the_run_is_reported() -> None:
    captured = replace(
        measured(), limit="congestion window", limited_by="limited by b's congestion window, cut by losses"
    )
    faster = replace(measured(), goodput_bps=40e6, limit="path", limited_by="limited by the path")
    assert (
        "The captured transfer was limited by b's congestion window, cut by losses; the"
        in against(captured, faster).verdict
    )
    assert "What was captured" not in against(captured, replace(faster, goodput_bps=captured.goodput_bps)).verdict


def test_a_window_that_differs_from_the_models() -> None:
    captured = measured()
    larger = against(captured, replace(captured, window_max_bytes=2 * MIB))
    assert larger.is_window_right is False
    unbound = against(captured, replace(captured, window_max_bytes=MIB // 4, limit="path"))
    assert unbound.is_window_right is True
    assert "another limit came first" in unbound.verdict


def test_a_run_says_whether_it_is_a_twin() -> None:
    captured = measured()
    assert against(captured, captured).is_twin is True
    slower = against(
        captured, replace(captured, goodput_bps=captured.goodput_bps * 0.8 if captured.goodput_bps else None)
    )
    assert slower.is_twin is False
    assert "not a twin of the capture" in slower.verdict
    assert against(captured, replace(captured, limit="path_rate")).is_twin is False
    run = reference("lab-bulk-300ms").run("512m2-stock")
    assert against(captured, captured, predict(captured, run)).is_twin is None


def test_from_6_6_on_the_runs_own_share_is_reported() -> None:
    """3.8 MiB of a buffer of 4 MiB is veth's share, which no fixed half contradicts."""
    newer = replace(measured(), kernel="6.12.117", window_max_bytes=4 * MIB * 243 // 256)
    found = against(measured(), newer)
    assert found.is_window_right is True
    assert "The run's largest window is 3.8 MiB, 95 % of its buffer" in found.verdict
    assert against(measured(), replace(newer, window_max_bytes=5 * MIB)).is_window_right is False
