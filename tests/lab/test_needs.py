"""Runs announce their needs: these grow with the data sent, and disk is needed only to store packets."""

from __future__ import annotations

import pytest
from cases import all_cases

from tcpwin.lab import find_scenario, run_needs, scenarios, workloads


def test_the_needs_of_the_articles_run_are_stated() -> None:
    scenario = find_scenario("oscil-300ms-170p2")
    runs = [(scenario, "stock"), (scenario, "patched")]
    needs = run_needs(runs)
    # 16 seconds at 1 Gbit/s are 1.4 million frames of data; with ACKs, 112 bytes each, at two ends.
    assert needs.disk_bytes == pytest.approx(0.46e9, rel=0.02)
    assert needs.memory_bytes == 4 << 30
    assert run_needs(runs, capture=False).disk_bytes == 0
    assert run_needs(runs, capture=False).processor_s < needs.processor_s
    assert run_needs(runs[:1]).processor_s == needs.processor_s / 2
    assert str(needs).startswith("2 runs need about ")
    assert " of one free core, two to three times that on a busy machine; " in str(needs)
    assert str(needs).endswith("; each up to 4.29 GB of memory and 464 MB of disk")


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        # 8 MB at 2.83 Mbit/s, Mathis' rate for 1 % over 50 ms, take 22.6 s, plus 12 round trips; the lab took 27 to 28.
        ("loss-cubic-sack", 23.2),
        # 16 MB at 1 MiB per round trip of 300 ms take 4.6 s, plus 12 round trips; the lab took 6.3 s.
        ("bulk-300ms-4m2", 8.2),
    ],
)
def test_a_small_window_and_loss_make_a_run_long(name: str, seconds: float) -> None:
    scenario = find_scenario(name)
    frames = scenario.serve.bytes / 1538
    expected = 4 + frames * 35e-6 + seconds * 1000 / scenario.measure.sample_ms * 0.12
    assert run_needs([(scenario, "stock")]).processor_s == pytest.approx(expected, rel=0.05)


@all_cases("name", workloads())
def test_every_workload_says_how_far_it_goes(name: str) -> None:
    workload = workloads()[name]
    slow = workload.extent(workload.serve_settings(), workload.drive_settings(), 1e6)
    fast = workload.extent(workload.serve_settings(), workload.drive_settings(), 1e9)
    assert 0 < fast.seconds <= slow.seconds
    assert 0 < slow.bytes <= fast.bytes


def test_every_scenario_has_its_needs() -> None:
    for scenario in scenarios():
        assert run_needs([(scenario, "stock")]).processor_s > 4
