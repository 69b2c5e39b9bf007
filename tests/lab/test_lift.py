"""Lifting limits: the lifted run's changes and timing; one real run if the lab's kernel is built."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cases import all_cases
from cli.command import refused, tcpwin
from reference import NO_LAB

from tcpwin.lab import (
    LIFTS,
    LiftError,
    Scenario,
    check_liftable,
    find_scenario,
    kernel_path,
    lift_scenario,
    lifted,
    lifts_of,
    read_scenario,
)
from tcpwin.lab.bundle import write_bundle

EVERYTHING = """title = "Everything limits"
[path]
rtt_ms = 100
rate_mbps = 1000
bottleneck_mbps = 20
queue_bytes = 100_000
loss_percent = 0.1
policer_mbps = 15
policer_burst_bytes = 50_000
cross_algorithm = "cubic"
[workload]
name = "transfer"
serve.bytes = 1_000_000
serve.pause_bytes = 300_000
serve.pause_s = 1.0
drive.rate_mbps = 5
[sysctl_receiver]
"net.ipv4.tcp_rmem" = "4096 131072 6291456"
"net.ipv4.tcp_adv_win_scale" = 4
"""
PLAIN = """title = "Little limits"
[path]
rtt_ms = 1
rate_mbps = 100
[workload]
name = "transfer"
"""
TALK = """title = "Everything keeps a conversation waiting"
[path]
rtt_ms = 20
rate_mbps = 10
[workload]
name = "conversation"
serve.work_s = 0.01
serve.slow_every = 4
serve.slow_s = 0.1
drive.think_s = 0.02
drive.nagle = true
"""
OF_TALK = ("server_work", "think_time", "delay", "nagle", "delayed_ack")
NAMES = {lift.name: lift for lift in LIFTS}
BUT_TALK = [lift.name for lift in LIFTS if lift.name not in OF_TALK]
WINDOW_LIMITED = """title = "A window of 32 KB over 50 ms"
[path]
rtt_ms = 50
rate_mbps = 20
[workload]
name = "transfer"
serve.bytes = 1_000_000
[sysctl_receiver]
"net.ipv4.tcp_rmem" = "4096 65536 65536"
[measure]
capture = false
sample_ms = 0
quick = true
"""


def change(text: str, name: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return the tables of a scenario and of one of its lifts, without [measure]."""
    scenario = read_scenario("mine", text)
    other = lifted(scenario, NAMES[name])
    before, after = tomllib.loads(scenario.text), tomllib.loads(other.text)
    after.pop("measure")
    return before, after


def fake(seconds: Mapping[str, float], asked: list[str]) -> Callable[[Scenario, str, Path], Path]:
    """Return a runner whose runs take the seconds in their lift's name; it appends each to `asked`."""

    def run(scenario: Scenario, kernel: str, folder: Path) -> Path:
        _, _, name = scenario.name.partition(".")
        asked.append(name)
        made = folder / f"made-{name}"
        made.mkdir()
        (made / "meta.json").write_text("{}")
        log = {"time_ns": 0, "event": "summary", "completion_ns": round(1e9 * seconds.get(name, 10.0))}
        (made / "log_receiver.jsonl").write_text(json.dumps(log) + "\n")
        bundle = folder / f"{scenario.name}-{kernel}.zip"
        write_bundle(made, scenario.text, bundle)
        return bundle

    return run


def test_a_scenario_has_the_lifts_of_the_limits_that_it_can_have() -> None:
    assert [lift.name for lift in lifts_of(read_scenario("mine", EVERYTHING))] == [*BUT_TALK]
    assert [lift.name for lift in lifts_of(read_scenario("mine", TALK))] == [
        *("receiver_window", "send_buffer", "path_rate", "congestion_control", *OF_TALK)
    ]
    # The path holds eight frames: the kernel starts with ten.
    assert [lift.name for lift in lifts_of(read_scenario("mine", PLAIN))] == [
        *("receiver_window", "send_buffer", "path_rate")
    ]
    off = EVERYTHING + '[sysctl_sender]\n"net.ipv4.tcp_slow_start_after_idle" = 0\n'
    assert "idle_restart" not in {lift.name for lift in lifts_of(read_scenario("mine", off))}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("server_work", {"serve": {"work_s": 0, "slow_every": 4, "slow_s": 0}}),
        ("think_time", {"drive": {"think_s": 0, "nagle": True}}),
        ("delay", {"rtt_ms": 2.0}),
        ("nagle", {"drive": {"think_s": 0.02, "nagle": False}}),
        ("delayed_ack", {"quick_ack": True}),
    ],
)
def test_a_lift_of_a_conversation_changes_one_thing(name: str, tables: dict[str, object]) -> None:
    before, after = change(TALK, name)
    flat = [{**each, **each["workload"], **each["path"], **each.get("host", {})} for each in (before, after)]  # type: ignore[dict-item]
    assert {key: flat[1][key] for key in tables} == tables
    unchanged = flat[0].keys() - tables.keys() - {"workload", "path", "host", "serve", "drive"}
    assert {key: flat[1][key] for key in unchanged} == {key: flat[0][key] for key in unchanged}


@all_cases("name", BUT_TALK)
def test_a_lift_changes_one_thing(name: str) -> None:
    before, after = change(EVERYTHING, name)
    changed = {heading for heading in before | after if before.get(heading) != after.get(heading)}
    allowed = {
        "receiver_window": {"sysctl", "sysctl_sender", "sysctl_receiver"},
        "receiver_memory": {"sysctl_receiver"},
        "send_buffer": {"sysctl", "sysctl_sender"},
        "receiver_application": {"workload"},
        "sender_application": {"workload"},
        "idle_restart": {"sysctl_sender"},
        "congestion_control": {"host", "workload"},
    }
    assert changed
    assert changed <= allowed.get(name, {"path"})


def test_the_rate_grows_with_its_queue_and_its_card() -> None:
    _, after = change(EVERYTHING, "path_rate")
    assert after["path"] == {
        **tomllib.loads(EVERYTHING)["path"],
        "rate_mbps": 1000,
        "bottleneck_mbps": 80,
        "queue_bytes": 400_000,
    }
    _, after = change(EVERYTHING.replace("rate_mbps = 1000", "rate_mbps = 30"), "path_rate")
    assert after["path"]["rate_mbps"] == 80  # type: ignore[index]
    _, after = change(PLAIN, "path_rate")
    assert after["path"]["rate_mbps"] == 400  # type: ignore[index]


def test_memory_grows_under_the_same_window() -> None:
    """At 4 the window is 15/16 of the memory, and at -2 a quarter."""
    _, after = change(EVERYTHING, "receiver_memory")
    assert after["sysctl_receiver"] == {
        "net.ipv4.tcp_rmem": "4096 491520 23592960",
        "net.ipv4.tcp_adv_win_scale": -2,
    }
    assert "receiver_memory" not in {lift.name for lift in lifts_of(read_scenario("mine", PLAIN))}


def test_the_first_window_fills_the_path() -> None:
    """15 Mbit/s (the policer's) over 100 ms are 187,500 bytes: 121 frames of 1,538 with their gaps."""
    _, after = change(EVERYTHING, "congestion_control")
    assert after["host"] == {"initial_window_segments": 121}
    pace = after["workload"]["serve"]["pacing_mbps"]  # type: ignore[index]
    # Below the payload that the policer passes: 1,448 of 1,514 bytes.
    assert 0.9 * 15 * 1448 / 1514 < pace < 15 * 1448 / 1514


def test_the_largest_gain_is_the_limit_and_similar_gains_are_alike(tmp_path: Path) -> None:
    seconds = {"": 10.0, "receiver-window": 4.0, "path-loss": 4.5, "path-rate": 4.7, "send-buffer": 10.5}
    asked: list[str] = []
    scenario = read_scenario("mine", EVERYTHING)
    result = lift_scenario(scenario, "stock", tmp_path, run=fake(seconds, asked))
    assert len(asked) == len(set(asked)) == 1 + len(BUT_TALK)
    assert result.limit == "receiver_window"
    # 6.0 s, 5.5 s, 5.3 s: only the last is more than a tenth shorter.
    assert result.alike == ["receiver_window", "path_loss"]
    gains = {each["name"]: each for each in result.document()["lifts"]}
    assert gains["receiver_window"]["gain_ns"] == 6_000_000_000
    assert gains["receiver_window"]["gain_share"] == pytest.approx(0.6)
    assert gains["send_buffer"]["gain_share"] == pytest.approx(-0.05)


def test_where_nothing_gains_nothing_limits(tmp_path: Path) -> None:
    result = lift_scenario(read_scenario("mine", PLAIN), "stock", tmp_path, run=fake({"path-rate": 9.9}, []))
    assert (result.limit, result.alike) == ("none", ["none"])


def test_the_delays_of_messages_are_listed_with_their_time(tmp_path: Path) -> None:
    text = 'title = "A"\n[path]\nrtt_ms = 50\n[workload]\nname = "messages"\n'

    def run(scenario: Scenario, kernel: str, folder: Path) -> Path:
        is_base = "." not in scenario.name
        made = folder / f"made-{scenario.name}"
        made.mkdir()
        (made / "meta.json").write_text("{}")
        delay_ns = 300_000_000 if is_base else 100_000_000
        rows = [
            {"time_ns": second * 10**9 + delay_ns, "event": "message", "one_way_delay_ns": delay_ns}
            for second in range(1, 4)
        ]
        (made / "log_receiver.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        bundle = folder / f"{scenario.name}-{kernel}.zip"
        write_bundle(made, scenario.text, bundle)
        return bundle

    result = lift_scenario(read_scenario("mine", text), "stock", tmp_path, run=run)
    assert (result.base.delays_ns, result.base.completion_ns) == (900_000_000, 2_300_000_000)
    assert {each.times.delays_ns for each in result.gains} == {300_000_000}
    assert {each.gain_ns for each in result.gains} == {200_000_000}
    assert result.document()["judged"] == "completion"


def test_after_a_run_that_failed_no_more_are_begun(tmp_path: Path) -> None:
    asked: list[str] = []

    def run(scenario: Scenario, kernel: str, folder: Path) -> Path:  # noqa: ARG001
        asked.append(scenario.name)
        if "." in scenario.name:
            # The others take a while; otherwise all would have begun before the first fails.
            time.sleep(0.2)
        raise LiftError("it failed")

    for jobs in (1, 2):
        asked.clear()
        with pytest.raises(LiftError, match="it failed"):
            lift_scenario(read_scenario("mine", EVERYTHING), "stock", tmp_path, run=run, jobs=jobs)
        assert 1 <= len(asked) < 1 + len(BUT_TALK)


@pytest.mark.parametrize("name", ["oscil-300ms-170p2", "max-send-1g", "buffer-64k"])
def test_what_ends_by_the_clock_cannot_be_lifted(name: str) -> None:
    with pytest.raises(LiftError, match="no lift can shorten it"):
        check_liftable(find_scenario(name))


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert "no lift can shorten it" in refused("lab", "lift", "oscil-300ms-170p2", "-o", tmp_path)
    assert "is not built yet" in refused("lab", "lift", "zero-window-5s", "-o", tmp_path, env=away)
    assert "unknown scenario x" in refused("lab", "lift", "x")
    assert "does not run on the patched kernel" in refused(
        "lab", "lift", "zero-window-5s", "--kernel", "patched", status=2
    )


@pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")
def test_a_window_below_the_path_is_what_limits(tmp_path: Path) -> None:
    """32 KB per round trip of 50 ms are 5.2 of 20 Mbit/s; in Linux half of a receive buffer is window."""
    scenario = tmp_path / "window-limited.toml"
    scenario.write_text(WINDOW_LIMITED)
    done = tcpwin("lab", "lift", scenario, "-o", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["schema"], result["limit"]) == ("tcpwin/lift/1", "receiver_window")
    assert result["alike"] == ["receiver_window"]
    assert result["base"]["completion_ns"] == pytest.approx(1_000_000 / 32_768 * 50e6, rel=0.15)
    took = {each["name"]: each["completion_ns"] for each in result["lifts"]}
    # The card then carries the data at 18.8 Mbit/s, after some round trips of slow start.
    assert 8 * 1_000_000 / 18.8e6 <= took["receiver_window"] / 1e9 <= 8 * 1_000_000 / 18.8e6 + 0.3
    bundles = sorted(path.name for path in tmp_path.glob("*.zip"))
    assert len(bundles) == 1 + len(took)
    # All bundles exist: no run is repeated, even without a kernel to run it.
    again = tcpwin("lab", "lift", scenario, "-o", tmp_path)
    assert again.returncode == 0
    assert b"limit: receiver_window" in again.stdout
