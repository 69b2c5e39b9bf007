"""The article's patched kernel drops data that the window had promised room for: judged at both ends.

``dropped-by-receiver.zip`` is the bundle of a run of oscil-10mbps-137p4 on the patched Linux 6.1.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from reference import NO_LAB

import tcpwin
from tcpwin.lab import find_scenario, kernel_path, run_scenario
from tcpwin.limits import Verdict

KEPT = Path(__file__).with_name("dropped-by-receiver.zip")
ENDS = ("sender", "receiver")


def verdict_of(bundle: Path, end: str, folder: Path, *, alone: bool) -> Verdict:
    """Judge the capture at an end, alone or with the bundle's snapshots."""
    if alone:
        with zipfile.ZipFile(bundle) as members:
            name = next(each for each in members.namelist() if each.endswith(f"/{end}.pcap.gz"))
            analysis = tcpwin.analyze(members.extract(name, folder))
    else:
        analysis = tcpwin.analyze(bundle, capture=f"{end}.pcap.gz")
    return max(analysis.connections, key=lambda each: each.b_to_a.unique_bytes).verdict


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("alone", [True, False])
def test_the_receivers_memory_is_the_limit(end: str, tmp_path: Path, *, alone: bool) -> None:
    verdict = verdict_of(KEPT, end, tmp_path, alone=alone)
    assert (verdict.limit, verdict.owner, verdict.side) == ("receiver_memory", "client_host", "client")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["oscil-10mbps-137p4", "oscil-10mbps-170p2"])
def test_runs_of_today(name: str, tmp_path: Path) -> None:
    if not kernel_path().is_file():
        pytest.skip(f"{NO_LAB} here")
    bundle = run_scenario(find_scenario(name), "patched", tmp_path).bundle
    limits = {
        (end, alone): verdict_of(bundle, end, tmp_path, alone=alone).limit for end in ENDS for alone in (True, False)
    }
    assert set(limits.values()) == {"receiver_memory"}, limits
