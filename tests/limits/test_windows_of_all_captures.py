"""Findings of the rules on scaling and the receiver in every bundled capture and the lab's runs.

The truth is in each capture's TOML or meta.json. Checks the codes found, and the owner of the costliest.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import all_cases
from reference import LAB_RUNS
from stories.window_stories import codes_on_windows

import tcpwin
from tcpwin.limits import check, choose

CAPTURES = Path(__file__).parents[2] / "captures"
FOUND = {
    "lab/cooked-any.pcap.gz": [],
    "lab/idle-restart.pcap.gz": [],
    "lab/loss-1-percent.pcap.gz": [],
    "lab/mid-connection.pcap.gz": ["TW104"],
    "lab/no-window-scaling.pcap.gz": ["TW101"],
    "lab/offload-big-frames.pcap.gz": [],
    "lab/receive-buffer-64k-receiver.pcap.gz": ["TW207"],
    "lab/receive-buffer-64k.pcap.gz": ["TW207"],
    "lab/slow-reader-receiver.pcap.gz": ["TW201", "TW202"],
    "lab/slow-reader.pcap.gz": ["TW201", "TW202"],
    "lab/window-scaling.pcap.gz": [],
    "lab/zero-window-stall.pcap.gz": ["TW201"],
    "wild/aborted-by-reader.pcapng": ["TW201"],
    "wild/forwarded-any.pcap.zst": [],
    "wild/http-download.pcapng": [],
    "wild/http-ipv6.pcap.zst": [],
    "wild/iperf3-loopback.pcap.lz4": [],
    "wild/keep-alive.pcap": [],
    "wild/lossy-path-receiver.pcap.gz": [],
    "wild/lossy-path.pcapng.gz": [],
    "wild/lost-window-update-receiver.pcap.gz": ["TW201"],
    "wild/lost-window-update.pcap.gz": ["TW201", "TW204"],
    "wild/many-short.pcap.gz": [],
    "wild/zero-window-loopback.pcap": ["TW201"],
    "bundles/slow-reader.zip": ["TW201", "TW208"],
    "bundles/without-syn.zip": [],
}
# By lab scenario: the findings in both ends' captures with all snapshots, and the owner of the costliest.
RUNS = {
    "app_limited": ([], None),
    "cooked_any": ([], None),
    "idle_restart_ssai1": ([], None),
    "loss1_cubic_sack1": ([], None),
    "loss1_reno_sack0": ([], None),
    "loss1_reorder_cubic_sack1": ([], None),
    "mid_connection_noSYN": ([], None),
    "no_wscale_85ms": (["TW101"], "client_host"),
    "offload_on_bigframes": ([], None),
    "oscil_10mbit_300ms_170p2_guard": (["TW208", "TW210", "TW211"], "client_host"),
    "oscil_10mbit_300ms_170p2_vanilla": (["TW201", "TW208", "TW209"], "client_application"),
    "oscil_10mbit_300ms_512m2_guard_vethtruesize": (["TW201", "TW208"], "client_application"),
    "reorder_only_cubic": ([], None),
    "rmem_1024k_196ms": (["TW202"], "client_host"),
    "rmem_64k_196ms": (["TW207"], "client_host"),
    "slow_reader": (["TW201", "TW208"], "client_application"),
    "wscale_85ms": ([], None),
    "zero_window_stall5s": (["TW201", "TW208"], "client_application"),
}
# In the run with drops, the sender's kernel counted rwnd_limited for 18.8 of 60.3 s (ss); recovery from 153 drops took
# 14.6 s, and the smaller congestion window and the waits for probes as long again.


@all_cases("name", FOUND, of=6, first=1)
def test_the_projects_captures(name: str) -> None:
    assert codes_on_windows(tcpwin.analyze(CAPTURES / name)) == FOUND[name]


def test_no_capture_is_left_out() -> None:
    present = {
        path.relative_to(CAPTURES).as_posix()
        for folder in ("lab", "wild", "bundles")
        for path in (CAPTURES / folder).iterdir()
        if path.suffix not in (".toml", ".md")
    }
    assert present == set(FOUND)


@pytest.mark.parametrize("end", ["snd", pytest.param("rcv", marks=pytest.mark.nightly)])
@all_cases("scenario", RUNS, of=6)
def test_the_labs_runs(scenario: str, end: str) -> None:
    folder = LAB_RUNS / scenario
    snapshots = [
        folder / f"{what}_{side}.{kind}" for what, kind in (("ss", "txt"), ("nstat", "csv")) for side in ("snd", "rcv")
    ]
    analysis = tcpwin.analyze(folder / f"{end}.pcap.gz", snapshots=[path for path in snapshots if path.exists()])
    codes, owner = RUNS[scenario]
    assert codes_on_windows(analysis) == codes
    found = check(analysis, chosen=choose(["TW1", "TW2"])).found
    assert (found[0].owner if found else None) == owner
