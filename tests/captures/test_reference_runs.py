"""Every run in captures/reference: its scenario, the scenario's expectations, and its packets against its logs."""

from __future__ import annotations

import hashlib
import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cases import all_cases
from spread import some_by_day

import tcpwin
from tcpwin.lab import Scenario, find_scenario

FOLDER = Path(__file__).parents[2] / "captures" / "reference"
RUNS = sorted(FOLDER.glob("*.zip"))
WITH_PACKETS = [path for path in RUNS if any(name.endswith(".pcap.gz") for name in zipfile.ZipFile(path).namelist())]
MS = 1_000_000


def member(bundle: Path, name: str) -> str:
    with zipfile.ZipFile(bundle) as members:
        return members.read(f"{bundle.stem}/{name}").decode()


def truth_of(bundle: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads(member(bundle, "meta.json"))
    return truth


def scenario_of(bundle: Path) -> Scenario:
    return find_scenario(truth_of(bundle)["scenario"])


def delays_ns(bundle: Path) -> list[int]:
    """Return the delay of each message as measured by the reader."""
    lines = [json.loads(line) for line in member(bundle, "log_receiver.jsonl").splitlines()]
    return [line["one_way_delay_ns"] for line in lines if line["event"] == "message"]


def sender_of(bundle: Path) -> tcpwin.Connection:
    return tcpwin.analyze(bundle, capture="sender.pcap.gz").connections[0]


@all_cases("path", RUNS, ids=lambda path: path.stem)
def test_a_run_matches_its_toml(path: Path) -> None:
    said = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf8"))
    assert said.keys() == {"title", "file", "command", "origin", "licence", "sha256"}
    assert said["file"] == path.name
    assert hashlib.sha256(path.read_bytes()).hexdigest() == said["sha256"]
    truth = truth_of(path)
    assert said["command"].startswith(f"tcpwin lab run {truth['scenario']} --kernel {truth['kernel']}")


@all_cases("path", RUNS, ids=lambda path: path.stem)
def test_a_run_was_made_by_the_scenario_of_today(path: Path) -> None:
    scenario = scenario_of(path)
    assert member(path, "scenario.toml") in (scenario.text, scenario.without_capture().text)


@all_cases("path", RUNS, ids=lambda path: path.stem, of=2)
def test_a_run_came_out_as_expected(path: Path) -> None:
    truth = truth_of(path)
    claims = scenario_of(path).expect[truth["kernel"]]
    assert claims
    assert [claim.text for claim in claims if not claim.holds(truth)] == []


@all_cases("path", WITH_PACKETS, ids=lambda path: path.stem, of=2, first=1)
@all_cases("end", ["sender", "receiver"])
def test_the_packets_are_all_there(path: Path, end: str) -> None:
    truth = truth_of(path)
    analysis = tcpwin.analyze(path, capture=f"{end}.pcap.gz")
    assert [host.label for host in analysis.hosts] == ["receiver", "sender"]
    assert all(host.clock is not None and host.clock.method == "same_clock" for host in analysis.hosts)
    assert truth["hosts"][end]["capture"]["dropped"] == 0
    assert len(analysis.connections) == 1
    connection = analysis.connections[0]
    assert str(connection.b.address) == truth["hosts"]["sender"]["address"]
    assert not any(sample.disagreements for sample in connection.snapshots)


def test_every_file_has_its_truth() -> None:
    assert {path.stem for path in RUNS} == {path.stem for path in FOLDER.glob("*.toml")}
    assert len(WITH_PACKETS) >= 2
    assert sum(path.stat().st_size for path in RUNS) < 600_000


def test_the_cost_of_idle_restart_matches_the_applications_measurement() -> None:
    """Ably's effect: a round trip for each message after a gap; tcpwin's cost equals the programs' difference."""
    on, off = FOLDER / "idle-restart-on-stock.zip", FOLDER / "idle-restart-off-stock.zip"
    rtt_ns = 180 * MS
    slow, fast = delays_ns(on), delays_ns(off)
    assert len(slow) == len(fast) == 120
    p99_on, p99_off = (truth_of(path)["hosts"]["receiver"]["log"]["p99_one_way_delay_ns"] for path in (on, off))
    # The last of two flights is shorter than the one that carries everything.
    assert p99_on - p99_off == pytest.approx(rtt_ns, abs=3 * MS)
    restarted, steady = sender_of(on).b_to_a, sender_of(off).b_to_a
    assert (restarted.idle_gaps, restarted.idle_restarts) == (119, 119)
    assert (steady.idle_gaps, steady.idle_restarts, steady.idle_restart_cost_ns) == (119, 0, 0)
    # The first message has the initial window in both.
    assert restarted.idle_restart_cost_ns == pytest.approx(sum(slow[1:]) - sum(fast[1:]), rel=0.02)
    assert restarted.message_delay_p99_ns == pytest.approx(p99_on, abs=3 * MS)
    assert steady.message_delay_p99_ns == pytest.approx(p99_off, abs=3 * MS)


@pytest.mark.parametrize("path", some_by_day(WITH_PACKETS, of=2), ids=lambda path: path.stem)
def test_both_ends_name_the_same_limit_and_fix(path: Path) -> None:
    """The round trips of the idle-restart run cost 0.1 s more by the receiver's capture than by the sender's."""
    one, other = (tcpwin.analyze(path, capture=f"{end}.pcap.gz").verdict for end in ("sender", "receiver"))
    assert one is not None
    assert other is not None
    assert (one.limit, one.also, one.owner, one.fix) == (other.limit, other.also, other.owner, other.fix)


def test_idle_restart_is_found_where_it_is() -> None:
    codes = {
        name: {
            finding.code
            for finding in tcpwin.analyze(FOLDER / f"idle-restart-{name}-stock.zip", capture="sender.pcap.gz").findings
        }
        for name in ("on", "off")
    }
    assert {"TW401", "TW705"} <= codes["on"]
    assert not {"TW401", "TW705"} & codes["off"]


def test_stock_collapses_where_patched_drops() -> None:
    stock, patched = (
        truth_of(FOLDER / f"oscil-300ms-170p2-{kernel}.zip")["hosts"]["receiver"]["counter_increases"]
        for kernel in ("stock", "patched")
    )
    assert stock["TcpExtPruneCalled"] == 24, "the article's own number"
    assert stock["TcpExtTCPRcvCollapsed"] > 400_000
    assert "TcpExtTCPRcvQDrop" not in stock
    assert {"TcpExtPruneCalled", "TcpExtTCPRcvCollapsed"}.isdisjoint(patched)
    assert patched["TcpExtTCPRcvQDrop"] > 0
