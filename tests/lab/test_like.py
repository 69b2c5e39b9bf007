"""A scenario like a capture: its round trip, its bytes, and the settings of its hosts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli.command import refused
from spread import some_by_day

import tcpwin
from tcpwin.lab import ScenarioError, scenario_like, series_like, world
from tcpwin.lab.pace import _trace, _when_written
from tcpwin.reference import reference

CAPTURES = Path(__file__).parents[2] / "captures"


def test_a_bundle_becomes_a_scenario() -> None:
    scenario = scenario_like(
        tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), name="Slow reader!", rate_mbps=100
    )
    assert scenario.route.rtt_ms == pytest.approx(40, abs=0.5)
    assert (scenario.route.rate_mbps, scenario.serve.bytes) == (100, 6_000_000)
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_congestion_control"] == "cubic"
    assert scenario.name == "like-slow-reader"


def test_a_files_settings_apply_to_both_hosts_and_an_assumed_rate_is_reported(tmp_path: Path) -> None:
    settings = tmp_path / "sysctl.txt"
    settings.write_text("net.ipv4.tcp_rmem = 4096 87380 4194304\nnet.ipv4.tcp_congestion_control = htcp\n")
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz", snapshots=[settings]))
    for end in ("sender", "receiver"):
        assert scenario.sysctl[end] == {"net.ipv4.tcp_rmem": "4096 87380 4194304"}
    assert scenario.route.rate_mbps == 1000
    assert "# assumed" in scenario.text
    assert "# Not in the lab's kernel: tcp_congestion_control = htcp" in scenario.text


def test_a_path_carries_at_least_what_was_captured() -> None:
    """700,204 bytes over loopback reached 2.9 Gbit/s, more than the default of 1 Gbit/s."""
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "wild" / "http-ipv6.pcap.zst"))
    assert scenario.route.rate_mbps == 10_000
    assert "# assumed" in scenario.text


def test_the_settings_of_a_references_run_replace_the_receivers() -> None:
    analysis = tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip")
    run = reference("lab-bulk-300ms").run("512m2-stock")
    scenario = scenario_like(analysis, connection=analysis.connections[0], settings_of=run)
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == f"4096 131072 {512 << 20}"
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_adv_win_scale"] == "-2"
    assert scenario.sysctl["sender"]["net.ipv4.tcp_wmem"].split()[2] == "4194304", "the sender's own stays"
    assert scenario.sysctl["sender"]["net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert (scenario.name, scenario.hosts.memory_mib) == ("like-capture-as-lab-bulk-300ms-512m2-stock", 4096)
    with pytest.raises(ScenarioError, match="states no receive buffer"):
        scenario_like(analysis, settings_of=reference("passt-ramps").run("5ms"))


@pytest.mark.parametrize(
    ("name", "said"), [("cut-record-header.pcap", "has no data"), ("only-a-header.pcap", "has no TCP connection")]
)
def test_a_capture_without_a_transfer_is_refused(name: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenario_like(tcpwin.analyze(CAPTURES / "broken" / name))


@pytest.mark.parametrize(
    "line",
    [
        "tcp_rmem = 4096 131072 abc",
        'tcp_rmem = 4096 131072 6291456"',
        "tcp_rmem =",
        "tcp_wmem = 4096",
        "tcp_rmem = 1 2 99999999999999999999999999",
        'tcp_sack = 1"',
        "tcp_adv_win_scale = one",
        'tcp_congestion_control = x"',
    ],
)
def test_a_setting_that_no_kernel_has_said_is_refused_by_name(line: str, tmp_path: Path) -> None:
    """Snapshots come from other people: their content must not enter a scenario unchecked."""
    settings = tmp_path / "sysctl.txt"
    settings.write_text(f"net.ipv4.{line}\n")
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz", snapshots=[settings])
    with pytest.raises(ScenarioError) as error:
        scenario_like(analysis)
    assert line.partition(" ")[0] in str(error.value)
    assert "\n" not in str(error.value)


WORLDS = Path(__file__).parents[1] / "worlds" / "captures"


def test_the_path_is_the_one_that_the_capture_shows() -> None:
    """Worlds 040 (20 Mbit/s, 9.4 ms, 1.39 % random loss, reno) and 003 (16.2 Mbit/s, a queue of 73,580 bytes)."""
    lossy = scenario_like(tcpwin.analyze(WORLDS / "seed-1-040-sender.pcap.gz")).route
    drawn = world(1, 40).route
    assert lossy.rate_mbps == pytest.approx(drawn.bottleneck_mbps or drawn.rate_mbps, rel=0.1)
    assert lossy.loss_percent == pytest.approx(drawn.loss_percent, rel=0.3)
    assert lossy.queue_bytes == 0
    full = scenario_like(tcpwin.analyze(WORLDS / "seed-1-003-sender.pcap.gz"))
    assert full.route.bottleneck_mbps == pytest.approx(16.2, rel=0.1)
    assert full.route.queue_bytes == pytest.approx(73_580, rel=0.2)
    assert (full.route.loss_percent, full.sysctl["sender"]["net.ipv4.tcp_congestion_control"]) == (0, "cubic")


def test_settings_stay_at_their_ends(tmp_path: Path) -> None:
    """Two hosts, no sockets: each file belongs to the host in its name."""
    for name, size in (("client", 1_000_000), ("server", 9_000_000)):
        (tmp_path / f"{name}-sysctl.txt").write_text(f"net.ipv4.tcp_rmem = 4096 87380 {size}\n")
    snapshots = sorted(tmp_path.iterdir())
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz", snapshots=snapshots))
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == "4096 87380 1000000"
    assert scenario.sysctl["sender"]["net.ipv4.tcp_rmem"] == "4096 87380 9000000"


@pytest.mark.parametrize(
    ("release", "series"),
    some_by_day(
        [("6.6.1", "6.12"), ("5.15.0", "6.1"), ("6.15.11", "6.12"), ("6.16.0", "7.3"), ("7.4.1", "7.3"), ("", "6.1")],
        of=6,
        first=3,
    ),
)
def test_the_linux_is_the_one_that_counts_as_the_receivers(release: str, series: str, tmp_path: Path) -> None:
    """Only the receiver's kernel counts; this sender is on the other side of 6.6."""
    other = "6.12.1" if series == "6.1" else "5.10.1"
    for name, own in (("client", release), ("server", other)):
        text = f"kernel.osrelease = {own}\n" if own else ""
        (tmp_path / f"{name}-sysctl.txt").write_text(f"{text}net.ipv4.tcp_sack = 1\n")
    capture, snapshots = CAPTURES / "lab" / "slow-reader.pcap.gz", sorted(tmp_path.iterdir())
    assert series_like(tcpwin.analyze(capture, snapshots=snapshots).worst(1)[0]) == series
    away = {"XDG_CACHE_HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    asked = ("lab", "run", "--like", capture, "--with", *snapshots, "-o", tmp_path / "runs")
    said = refused(*asked, env=away)
    assert ("the lab's kernel is not built" if series == "6.1" else f"kernel {series} is not built") in said
    assert "the lab's kernel is not built" in refused(*asked, "--kernel", "6.1-stock", env=away)


def test_a_slow_reader_is_as_slow_as_it_was() -> None:
    """It took 40,000 bytes every 200 ms. Its buffer held 520,000 bytes, three times the largest window."""
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz"))
    assert (scenario.workload.name, scenario.serve.trace_us) == ("transfer", ())
    trace = scenario.drive
    assert trace.trace_bytes[-1] == 6_000_000
    slow = [step for step in zip(trace.trace_us, trace.trace_bytes, strict=True) if 2_000_000 < step[0] < 27_000_000]
    assert len(slow) > 100
    for after_us, until in slow:
        assert until == pytest.approx(40_000 * (after_us / 200_000), abs=3 * 40_000)
    (first_us, first), (last_us, last) = slow[0], slow[-1]
    assert (last - first) / (last_us - first_us) == pytest.approx(0.2, rel=0.02), "bytes a microsecond"


def test_a_slow_reader_is_judged_by_the_queue_of_the_kernel_it_runs_on() -> None:
    """6.1 holds more unread data at the same window than later kernels: its reader began later."""
    analysis = tcpwin.analyze(CAPTURES / "lab" / "slow-reader.pcap.gz")
    traces = {each: scenario_like(analysis, series=each).drive for each in (None, "6.1", "7.3")}
    assert traces[None] == traces["6.1"]
    assert traces["7.3"].trace_us
    assert traces["7.3"] != traces["6.1"]


def test_messages_are_written_when_they_were() -> None:
    """20 messages of 30,720 bytes, one every 2 s; the second flight of each waits for ACKs, not for its writer."""
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "idle-restart.pcap.gz"))
    trace = scenario.serve
    assert trace.trace_bytes[:20] == tuple(30_720 * (number + 1) for number in range(20))
    assert trace.trace_us[:20] == pytest.approx([2_000_000 * number for number in range(20)], abs=10_000)
    assert scenario.drive.trace_us == ()


def test_a_transfer_that_nobody_slowed_is_as_fast_as_its_path() -> None:
    scenario = scenario_like(tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"))
    assert scenario.workload.name == "bulk"


def test_a_writer_of_small_pieces_is_not_taken_for_one_that_waits_for_acks() -> None:
    """5,000 writes of 1,000 bytes, one per millisecond, over 4 ms: an ACK arrives just before each but does not
    release it.
    """
    step_ns, round_trip_ns = 1_000_000, 4_000_000
    sent = np.arange(5_000, dtype=np.int64) * step_ns
    written = _when_written(sent, sent[4:] - 1_000, round_trip_ns)
    assert (sent - written).max() <= 2 * round_trip_ns


def test_the_last_bytes_are_there_when_they_were_sent() -> None:
    """The wait lasts to the end of the connection: a step shorter than the others must not wait for it."""
    data = SimpleNamespace(unique_bytes=100_100)
    waits = np.array([[10_000_000, 90_000_000]])
    trace = _trace(waits, np.array([0, 20_000_000, 30_000_000]), np.array([50_000, 100_000, 100_100]), 0.0, data)
    assert (trace.after_us, trace.until_bytes) == ((0, 20_000, 30_000), (50_000, 100_000, 100_100))
