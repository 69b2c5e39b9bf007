"""A repeated lab run has the same packets at the same times, on each Linux that is built here."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from reference import NO_LAB

from tcpwin.lab import SERIES, kernel_path, read_scenario, run_scenario

SMALL = """title = "A small transfer with losses"
[path]
rtt_ms = 20
rate_mbps = 20
queue_bytes = 30_000
bottleneck_mbps = 10
loss_percent = 0.5
[workload]
name = "bulk"
serve.bytes = 300_000
[measure]
quick = {quick}
"""


def files(bundle: Path) -> dict[str, bytes]:
    """Return the members of a run's bundle by name."""
    with zipfile.ZipFile(bundle) as members:
        return {name: members.read(name) for name in members.namelist()}


@pytest.mark.parametrize("quick", ["true", pytest.param("false", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("series", SERIES)
def test_two_runs_are_equal_byte_for_byte(series: str, quick: str, tmp_path: Path) -> None:
    if not kernel_path(series).is_file():
        pytest.skip(f"{NO_LAB} here")
    scenario = read_scenario("small", SMALL.format(quick=quick))
    first, second = (
        files(run_scenario(scenario, "patched", tmp_path, series=series, again=True).bundle) for _ in range(2)
    )
    assert first.keys() == second.keys()
    captures = [name for name in first if name.endswith(".pcap.gz")]
    assert len(captures) == 2
    assert [name for name in first if first[name] != second[name]] == []
