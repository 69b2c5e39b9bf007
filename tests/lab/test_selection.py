"""The tables of selection.py list every run under its true properties."""

from __future__ import annotations

import gzip
from pathlib import Path

from lab.runs import Run
from lab.selection import ABORTED, COPIES, CUT_COPIES, IPERF3, LATE, ROUGH, SCENARIOS, SLOW_READER, STALL, STEADY, on
from reference import LAB_RUNS

HERE = Path(__file__).resolve().parent


def test_no_capture_of_the_lab_is_left_out() -> None:
    folders = {path.name for path in LAB_RUNS.iterdir() if path.is_dir()}
    assert folders == set(SCENARIOS)
    assert len(SCENARIOS) == len(set(SCENARIOS)) == 22


def test_every_copy_of_a_lab_capture_is_used() -> None:
    copies = {path.name.removesuffix(".pcap.gz") for path in (HERE.parents[1] / "captures" / "lab").glob("*.pcap.gz")}
    assert copies == {copy for _, _, copy in COPIES}
    assert {path.name for path in (HERE / "truth").iterdir()} == {scenario for scenario, _, _ in COPIES}


def test_a_copy_holds_the_packets_of_its_run() -> None:
    """Tests that check a run need its copy only at night."""
    for scenario, end, name in COPIES:
        copy = gzip.decompress((HERE.parents[1] / "captures" / "lab" / f"{name}.pcap.gz").read_bytes())
        run = gzip.decompress((LAB_RUNS / scenario / f"{end}.pcap.gz").read_bytes())
        assert copy == (run[: len(copy)] if name in CUT_COPIES else run), name


@on(ends=["snd"])
def test_a_run_is_what_its_name_is_listed_under(run: Run) -> None:
    scenario = run.meta["scenario"]
    mode = scenario["reader"].get("mode")
    closes = ("TcpExt.TCPAbortOnClose", "TcpExt.TCPAbortOnData")
    assert (run.scenario in ABORTED) == any(run.counter("rcv", name) for name in closes)
    assert (run.scenario in LATE) == ("late_capture_s" in scenario)
    assert (run.scenario in ROUGH) == ("netem_fwd" in scenario)
    assert (run.scenario in IPERF3) == ("iperf3" in scenario)
    assert (run.scenario in STALL) == (mode == "stall")
    assert (run.scenario in SLOW_READER) == (mode == "slowread")
    assert (run.scenario in STEADY) == (mode == "bulk" and run.scenario not in (*ROUGH, *LATE))


@on(ends=["snd"])
def test_no_acknowledgment_was_lost(run: Run) -> None:
    """Every packet of the receiver's kernel reached the sender's, so both ends see every window."""
    assert run.counter("rcv", "Ip.OutRequests") == run.counter("snd", "Ip.InReceives")
