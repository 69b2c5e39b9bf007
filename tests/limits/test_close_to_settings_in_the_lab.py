"""Findings of the rules on close, capture and settings in the lab's runs, with snapshots of both hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab.selection import SCENARIOS
from reference import LAB_RUNS
from spread import some_by_day

import tcpwin
from tcpwin.limits import check, choose

ABORTED: dict[str, str | None] = {"TW501": "client"}
FOUND: dict[str, dict[str, str | None]] = {
    "idle_restart_ssai1": {"TW705": "server"},
    # iperf3's client (a) sends; its server closes first and resets with 720 kB in flight.
    "iperf3_300ms_20mbit_512m2": {"TW501": "server"},
    "loss1_reno_sack0": {"TW704": "client", "TW704 too": "server"},
    "mid_connection_noSYN": {"TW607": None},
    "no_wscale_85ms": {"TW703": "client", "TW703 too": "server"},
    "notsent_lowat_128k_466ms_10mbit": ABORTED,
    "notsent_lowat_off_466ms_10mbit": ABORTED,
    "offload_on_bigframes": {"TW603": None},
    "oscil_10mbit_300ms_170p2_guard": ABORTED,
    "oscil_10mbit_300ms_170p2_vanilla": {**ABORTED, "TW705": "server"},
    "oscil_10mbit_300ms_512m2_guard_vethtruesize": ABORTED,
    "rmem_1024k_196ms": {"TW701": "client"},
    # Both buffers are 64 KiB: the kernel counts 16 s for the window and 1.4 s for the send buffer.
    "rmem_64k_196ms": {"TW701": "client", "TW702": "server"},
    "slow_reader": ABORTED,
    "zero_window_stall5s": {"TW705": "server"},
}
"""The side that has to change something, by code. Runs not listed are clean for these rules."""


@pytest.mark.parametrize("scenario", some_by_day(SCENARIOS, of=6, first=1))
def test_finds_what_the_run_was_made_for(scenario: str, tmp_path: Path) -> None:
    folder = LAB_RUNS / scenario
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    snapshots = []
    for end, label in (("snd", "sender"), ("rcv", "receiver")):
        settings = tmp_path / f"sysctl_{label}.txt"
        lines = [f"{name} = {value}" for name, value in meta["sysctls"][end].items() if "cannot stat" not in value]
        settings.write_text("\n".join(lines) + "\n", encoding="utf8")
        kernel = tmp_path / f"uname_{label}.txt"
        kernel.write_text(meta["kernel"] + "\n", encoding="utf8")
        told = [settings, kernel, folder / f"ss_{end}.txt", folder / f"nstat_{end}.csv", folder / f"sockstat_{end}.txt"]
        snapshots += [(label, file) for file in told]
    findings = check(tcpwin.analyze(folder / "snd.pcap.gz", snapshots=snapshots), chosen=choose(["TW5", "TW6", "TW7"]))
    found = sorted((finding.code, finding.side) for finding in findings)
    assert found == sorted((code[:5], side) for code, side in FOUND.get(scenario, {}).items())
