"""Random worlds: reproducible from the seed, within the stated ranges, covering every story, each run once."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from cases import all_cases
from cli.command import tcpwin
from reference import NO_LAB

from tcpwin.lab import STORIES, Scenario, drawn, kernel_path, lifts_of, plan, read_worlds, story, sweep, world
from tcpwin.lab.bundle import write_bundle
from tcpwin.lab.lift import check_liftable
from tcpwin.lab.worlds import BYTES, RATE_MBPS, RTT_MS

SEED = 7
MANY = range(3 * len(STORIES))


def test_a_seed_gives_the_same_worlds_and_another_gives_others() -> None:
    assert [world(SEED, number).text for number in MANY] == [world(SEED, number).text for number in MANY]
    assert not {world(SEED, number).text for number in MANY} & {world(SEED + 1, number).text for number in MANY}


def test_every_story_comes_once_in_a_round() -> None:
    assert Counter(story(SEED, number) for number in MANY) == dict.fromkeys(STORIES, 3)


@all_cases("number", MANY)
def test_a_world_is_within_the_stated_ranges_and_can_be_lifted(number: int) -> None:
    scenario = world(SEED, number)
    route = scenario.route
    assert RTT_MS[0] <= route.rtt_ms <= RTT_MS[1]
    narrowest = route.policer_mbps or route.bottleneck_mbps or route.rate_mbps
    assert RATE_MBPS[0] <= narrowest <= RATE_MBPS[1]
    total = (
        scenario.serve.count * scenario.serve.message_bytes
        if scenario.workload.name == "messages"
        else scenario.serve.bytes
    )
    assert total <= BYTES[1]
    check_liftable(scenario)
    assert {"receiver_window", "send_buffer", "path_rate"} <= {lift.name for lift in lifts_of(scenario)}
    assert plan(scenario, "stock")


def test_stories_draw_what_they_tell() -> None:
    """The truth is measured in the lab, but a world with the story of a policer has one."""
    for number in MANY:
        scenario, which = world(SEED, number), story(SEED, number)
        route = scenario.route
        assert ("policer" in which) == bool(route.policer_mbps)
        assert ("bursty" in which) == bool(route.burst_loss_percent)
        assert ("cross" in which) == bool(route.cross_algorithm)
        assert (which == "dctcp") == bool(route.mark_us)
        assert (which == "messages") == (scenario.workload.name == "messages")
        if "reader" in which:
            assert "receiver_application" in {lift.name for lift in lifts_of(scenario)}
        if "writer" in which:
            assert "sender_application" in {lift.name for lift in lifts_of(scenario)}


def fake_run(scenario: Scenario, kernel: str, folder: Path) -> Path:
    """Fake a run of one second, or of half a second with the rate lifted."""
    made = folder / f"made-{scenario.name}"
    made.mkdir()
    (made / "meta.json").write_text("{}")
    took_ns = 500_000_000 if "path-rate" in scenario.name else 1_000_000_000
    rows = [
        {"time_ns": took_ns, "event": "message", "one_way_delay_ns": took_ns},
        {"time_ns": took_ns, "event": "summary", "completion_ns": took_ns},
    ]
    (made / "log_receiver.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bundle = folder / f"{scenario.name}-{kernel}.zip"
    write_bundle(made, scenario.text, bundle)
    return bundle


def test_a_sweep_writes_a_line_per_world_and_resumes(tmp_path: Path) -> None:
    assert sweep(SEED, range(2), tmp_path, run=fake_run, jobs=2) == 0
    said: list[str] = []
    # Two exist: `fake_run` would fail on an existing folder.
    assert sweep(SEED, range(3), tmp_path, run=fake_run, say=said.append) == 0
    assert len(said) == 1
    lines = read_worlds(tmp_path / "worlds.jsonl")
    assert sorted(line["number"] for line in lines) == [0, 1, 2]
    for line in lines:
        scenario = world(SEED, line["number"])
        assert line["name"] == scenario.name
        assert line["drawn"] == drawn(scenario)
        assert line["limit"] == "path_rate"
        assert (tmp_path / "scenarios" / f"{scenario.name}.toml").read_text() == scenario.text
        assert (tmp_path / "bundles" / f"{scenario.name}-stock.zip").is_file()


def test_scenarios_alone_need_no_kernel(tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    worlds = ("lab", "worlds", "--seed", "7", "--count", "2", "-o", tmp_path)
    assert tcpwin(*worlds, "--only-draw", env=away).returncode == 0
    assert (tmp_path / "scenarios" / "world-7-001.toml").read_text() == world(7, 1).text
    done = tcpwin(*worlds, env=away)
    assert done.returncode == 3
    assert b"is not built yet" in done.stderr


DRAWN_WITH_EVERYTHING = """title = "Queue, loss behind it, a second flow, a smaller link"
[path]
rtt_ms = 20
rate_mbps = 100
bottleneck_mbps = 10
queue_bytes = 40_000
queue = "codel"
burst_loss_percent = 1.0
burst_frames = 3
mtu_bytes = 1440
cross_algorithm = "reno"
cross_start_s = -1
[workload]
name = "transfer"
serve.bytes = 1_000_000
[measure]
quick = true
sample_ms = 1000
"""


@pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")
def test_a_path_with_everything_has_all_its_queues(tmp_path: Path) -> None:
    """Loss behind the queue, the queue's drops, segments of 1,388 bytes, and half of the rate for each flow."""
    scenario = tmp_path / "everything.toml"
    scenario.write_text(DRAWN_WITH_EVERYTHING)
    done = tcpwin("lab", "run", scenario, "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    bundle = tmp_path / "everything-stock.zip"
    with zipfile.ZipFile(bundle) as members:
        truth = json.loads(members.read("everything-stock/meta.json"))
        capture = Path(members.extract("everything-stock/receiver.pcap.gz", tmp_path))
    assert truth["hosts"]["receiver"]["log"]["bytes"] == 1_000_000
    # 720 segments, and half as many of the other flow, pass it.
    assert 1 <= truth["dropped_by_queue"]["far_q1"] <= 60
    # Slower than alone (at least 0.85 s), because the other flow takes about as much.
    assert truth["hosts"]["receiver"]["log"]["completion_ns"] > 1.2e9
    listed = tcpwin("packets", capture, "--format", "jsonl")
    assert listed.returncode == 0, listed.stderr
    segments = [json.loads(line) for line in listed.stdout.splitlines()]
    # The cross traffic is in no capture, and 1,388 bytes are the payload on the smaller link with timestamps.
    assert {segment["connection"] for segment in segments} == {segments[0]["connection"]}
    assert max(segment["length"] for segment in segments) == 1388
