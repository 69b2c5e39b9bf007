"""What runs need is said before; it grows with what they send, and packets cost disk only where they are kept."""

from __future__ import annotations

import pytest

from tcpwin.lab import find_scenario, run_needs, scenarios, workloads


def test_what_the_articles_run_needs_is_said() -> None:
    scenario = find_scenario("oscil-300ms-170p2")
    runs = [(scenario, "stock"), (scenario, "patched")]
    needs = run_needs(runs)
    # 16 seconds at 1 Gbit/s are 1.4 million frames of data; with ACKs, 112 bytes each, at two ends.
    assert needs.disk_bytes == pytest.approx(0.46e9, rel=0.02)
    assert needs.memory_bytes == 4 << 30
    assert run_needs(runs, capture=False).disk_bytes == 0
    assert run_needs(runs, capture=False).processor_s < needs.processor_s
    assert run_needs(runs[:1]).processor_s == needs.processor_s / 2
    assert str(needs).startswith("2 runs need at most about ")
    assert str(needs).endswith("; each up to 4.3 GB of memory and 0.5 GB of disk")


@pytest.mark.parametrize("name", workloads())
def test_every_workload_says_how_far_it_goes(name: str) -> None:
    workload = workloads()[name]
    slow = workload.extent(workload.serve_settings(), workload.drive_settings(), 1e6)
    fast = workload.extent(workload.serve_settings(), workload.drive_settings(), 1e9)
    assert 0 < fast.seconds <= slow.seconds
    assert 0 < slow.bytes <= fast.bytes


def test_every_scenario_has_its_needs() -> None:
    for scenario in scenarios():
        assert run_needs([(scenario, "stock")]).processor_s > 4
