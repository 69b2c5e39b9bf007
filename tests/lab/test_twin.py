"""A change tried on a twin in the lab's kernel: its result, and when it predicts nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli.command import refused, tcpwin
from reference import NO_LAB, ROOT

from tcpwin import analyze
from tcpwin.lab import ScenarioError, kernel_path, scenario_like
from tcpwin.lab.behaviour import Behaviour, behaviour_of, score
from tcpwin.lab.twin import run_twin
from tcpwin.paths import Changes, fit_path, read_changes
from tcpwin.reference import measure_connection

HERE = Path(__file__).resolve().parent
LEFT = HERE.parent / "paths" / "send-buffer-left.zip"
CAPTURE = "sender.pcap.gz"
SLOW_READER = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
TRUE_NS = 2_120_000_000
"""Duration on the true path with the receiver's buffer at 64 MiB and the sender's still at 60,000 bytes."""

built = pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")


def test_every_change_of_a_setting_or_the_path_is_in_the_scenario() -> None:
    analysis = analyze(LEFT, capture=CAPTURE)
    path = fit_path(analysis.connections[0])
    assert path is not None
    settings = {
        "receiver.tcp_rmem": "64M",
        "receiver.tcp_adv_win_scale": "-2",
        "sender.tcp_wmem": "8192",
        "sender.tcp_congestion_control": "bbr",
        "sender.tcp_slow_start_after_idle": "0",
    }
    changes = read_changes(path, settings, loss_share=0.005, round_trip_ns=20e6, rate_bps=50e6)
    changed = scenario_like(analysis, changes=changes)
    assert changed.sysctl["receiver"]["net.ipv4.tcp_rmem"] == f"4096 67255 {64 << 20}"
    assert changed.sysctl["receiver"]["net.ipv4.tcp_adv_win_scale"] == "-2"
    assert changed.sysctl["sender"]["net.ipv4.tcp_wmem"] == "4096 8192 8192"
    assert changed.sysctl["sender"]["net.ipv4.tcp_congestion_control"] == "bbr"
    assert changed.sysctl["sender"]["net.ipv4.tcp_slow_start_after_idle"] == "0"
    assert (changed.route.loss_percent, changed.route.rtt_ms, changed.route.rate_mbps) == (0.5, 20.0, 50.0)
    assert changed.serve.bytes == scenario_like(analysis).serve.bytes


def lifting(limit: str) -> Changes:
    return Changes(lifted=(limit,), words=(f"lift {limit}",))


def test_a_limit_is_lifted_in_the_run_where_the_run_has_it() -> None:
    slow = analyze(SLOW_READER)
    assert scenario_like(slow).drive.trace_us
    free = scenario_like(slow, changes=lifting("receiver_application"))
    assert not free.drive.trace_us
    assert free.serve == scenario_like(slow).serve
    wide = scenario_like(slow, changes=lifting("receiver_window"))
    assert wide.sysctl["receiver"]["net.ipv4.tcp_rmem"].split()[-1] == str(64 << 20)
    assert wide.drive.trace_us
    buffered = scenario_like(slow, changes=lifting("send_buffer"))
    assert buffered.sysctl["sender"]["net.ipv4.tcp_wmem"].split()[-1] == str(64 << 20)
    assert scenario_like(slow, changes=lifting("path_rate")).route.rate_mbps == 4 * scenario_like(slow).route.rate_mbps


def test_a_limit_that_the_run_does_not_have_cannot_be_lifted() -> None:
    analysis = analyze(LEFT, capture=CAPTURE)
    for limit, words in (("handshake", "handshake"), ("path_policer", "policer"), ("receiver_application", "reader")):
        with pytest.raises(ScenarioError, match=f"the run has no .*{words}"):
            scenario_like(analysis, changes=lifting(limit))


def test_without_the_kernel_the_error_says_what_is_needed(tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    said = refused("whatif", LEFT, "--capture", CAPTURE, "--rtt", "20ms", "--twin", tmp_path / "runs", env=away)
    assert "tcpwin lab build" in said


def test_a_kernel_is_chosen_for_a_run(tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    asked = ("whatif", LEFT, "--capture", CAPTURE, "--rtt", "20ms", "--kernel", "7.3")
    assert "--kernel goes with --twin" in refused(*asked, status=2)
    assert "kernel 7.3 is not built" in refused(*asked, "--twin", tmp_path / "runs", env=away)


@pytest.mark.skipif(not kernel_path("7.3").is_file(), reason=f"{NO_LAB} here")
def test_a_run_on_another_linux_than_the_receivers_says_so(tmp_path: Path) -> None:
    changes = replace(Changes(), round_trip_ns=20e6, words=("round trip 20 ms",))
    known, unknown = analyze(LEFT, capture=CAPTURE), analyze(SLOW_READER)
    for analysis, words in (
        (known, "6.1 counts receive memory as the receiver's does"),
        (unknown, "which the receiver has is not known"),
    ):
        twin = run_twin(analysis, analysis.connections[0], changes, tmp_path / words[:3], series="7.3")
        assert twin.series == "7.3"
        assert twin.is_twin
        assert twin.doubts[0] == f"it ran on Linux 7.3, and {words}"
        assert twin.confidence == "possible"


@built
def test_the_twin_foresees_what_a_buffer_that_was_left_does(tmp_path: Path) -> None:
    analysis = analyze(LEFT, capture=CAPTURE)
    connection = analysis.connections[0]
    path = fit_path(connection)
    assert path is not None
    changes = read_changes(path, {"receiver.tcp_rmem": "64M"})
    twin = run_twin(analysis, connection, changes, tmp_path, name="send-buffer-left")
    assert twin.is_twin
    assert twin.duration_ns.likely == pytest.approx(TRUE_NS, rel=0.1)
    assert twin.duration_ns.low <= TRUE_NS <= twin.duration_ns.high
    assert twin.confidence == "likely"
    # The bundles exist, so the program only reads them.
    words = ("--set", "receiver.tcp_rmem=64M", "--twin", tmp_path)
    described = json.loads(tcpwin("whatif", LEFT, "--capture", CAPTURE, *words, "--json").stdout)["twin"]
    assert described["is_twin"]
    assert described["kernel"] == "6.1"
    assert described["score"] == twin.score > 0.95
    first = described["as_it_was"]
    assert first["goodput_bps"] == pytest.approx(described["captured_bps"], rel=0.15)
    assert first["curve"]["sum_bytes"][-1] == described["captured"]["curve"]["sum_bytes"][-1]
    said = tcpwin("whatif", LEFT, "--capture", CAPTURE, *words).stdout.decode()
    assert "it is a twin. With receiver.tcp_rmem=64M it takes" in " ".join(said.split())
    assert " ".join(said.split()).count("receive window receive window congestion window") == 1


@built
def test_a_run_that_does_otherwise_predicts_nothing(tmp_path: Path) -> None:
    """The first run has a path a tenth as fast as the capture's: no twin."""
    analysis = analyze(LEFT, capture=CAPTURE)
    connection = analysis.connections[0]
    changes = replace(Changes(), round_trip_ns=80e6, words=("round trip 80 ms",))
    twin = run_twin(analysis, connection, changes, tmp_path, rate_mbps=0.5)
    assert not twin.is_twin
    assert twin.duration_ns is None
    assert twin.goodput_bps is None
    assert "not a twin and predicts nothing" in twin.text
    assert twin.changed is None
    assert len(list(tmp_path.glob("*.zip"))) == 1
    assert twin.score < 0.9


@built
def test_the_twin_answers_where_the_model_cannot(tmp_path: Path) -> None:
    """A slow reader never filled the path, so its capacity is unknown: the twin states its assumption."""
    lift = ("--lift", "receiver_application")
    changed = (*lift, "--set", "receiver.tcp_rmem=64M")
    assert "does not show what its path carries" in refused("whatif", SLOW_READER, *changed)
    answer = json.loads(tcpwin("whatif", SLOW_READER, *changed, "--twin", tmp_path, "--json").stdout)
    assert "does not show what its path carries" in answer["refused"]
    answer = json.loads(tcpwin("whatif", SLOW_READER, *lift, "--twin", tmp_path, "--json").stdout)
    twin = answer["twin"]
    predicted, ran = answer["prediction"]["duration_ns"], twin["duration_ns"]["likely"]
    assert predicted["low"] <= ran <= predicted["high"]
    assert twin["is_twin"]
    assert twin["as_it_was"]["limit"] == "receiver_application"
    assert twin["as_it_was"]["zero_windows"] > 10
    assert twin["changed"]["limit"] != "receiver_application"
    assert twin["changed"]["zero_windows"] == 0
    before_ns = twin["captured"]["duration_ns"]
    assert twin["duration_ns"]["likely"] < 0.1 * before_ns
    # A path at the observed rate gains nothing.
    assert (twin["duration_ns"]["high"], twin["confidence"]) == (before_ns, "possible")
    assert twin["change"] == "without slow reader"
    assert "it is a twin. Without slow reader it takes" in twin["text"]
    assert "give it with --rate" in twin["doubts"][0]
    said = tcpwin("whatif", SLOW_READER, *lift, "--twin", tmp_path).stdout.decode()
    assert "slow reader slow reader congestion window" in " ".join(said.split())


@built
@pytest.mark.nightly
def test_a_report_runs_the_connections_that_no_run_is_like(tmp_path: Path) -> None:
    """With reordering, the sender does not behave like the library's runs with the same losses, nor like a twin."""
    capture = ROOT / "captures" / "runs" / "loss1_reorder_cubic_sack1" / "snd.pcap.gz"
    runs, page, text, data = (tmp_path / name for name in ("runs", "r.html", "r.md", "r.json"))
    for out in (page, text, data):
        done = tcpwin("report", capture, "--twin", runs, "-o", out)
        assert done.returncode == 0, done.stderr
    [twin] = json.loads(data.read_text(encoding="utf8"))["twins"]
    assert (twin["connection"], twin["is_twin"]) == (0, False)
    assert twin["as_it_was"]["limit"] == "path_loss"
    assert len(list(runs.glob("*.zip"))) == 1, "later reports use the first one's run"
    for written in (page.read_text(encoding="utf8"), text.read_text(encoding="utf8")):
        assert "Twins in the lab" in written
        assert "it is not a twin and predicts nothing." in written
        assert "run (not a twin)" in written


def behaviour() -> Behaviour:
    analysis = analyze(LEFT, capture=CAPTURE)
    measured = measure_connection(analysis.connections[0])
    assert measured is not None
    return behaviour_of(analysis.connections[0], measured)


def test_what_a_transfer_did_ends_with_all_its_bytes() -> None:
    connection = analyze(LEFT, capture=CAPTURE).connections[0]
    found = behaviour()
    assert found.sum_bytes[-1] == connection.b_to_a.acked_bytes
    assert list(found.time_ns) == sorted(found.time_ns)
    assert list(found.sum_bytes) == sorted(found.sum_bytes)
    assert (found.time_ns[0], found.sum_bytes[0]) == (0, 0)
    assert found.time_ns[-1] <= connection.duration_ns


def test_the_score_falls_with_each_thing_that_differs() -> None:
    """One of the five parts costs at most its fifth, and zero values on both sides cost nothing."""
    one = behaviour()
    assert score(one, one) == 1
    assert one.goodput_bps
    assert one.window_mean_bytes
    assert one.flight_mean_bytes
    others = {
        "half as fast": (replace(one, goodput_bps=one.goodput_bps / 2), 0.9),
        "twice the window": (replace(one, window_mean_bytes=2 * one.window_mean_bytes), 0.9),
        "half the flight": (replace(one, flight_mean_bytes=one.flight_mean_bytes / 2), 0.9),
        "a window closed half the time": (replace(one, zero_window_ns=one.duration_ns // 2), 0.9),
        "losses": (replace(one, resent_segments=one.data_segments // 10), 0.8),
        "a loss of one in a thousand": (replace(one, resent_segments=1, data_segments=1000), 0.98),
    }
    for name, (other, expected) in others.items():
        assert score(one, other) == pytest.approx(expected, abs=0.001), name
        assert score(other, one) == pytest.approx(score(one, other)), name
