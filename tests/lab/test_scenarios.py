"""Bundled scenario files are valid; an invalid one is refused with a sentence that names the place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cases import all_cases
from cli.command import refused, tcpwin

from tcpwin.lab import (
    Scenario,
    ScenarioError,
    find_outcome,
    find_scenario,
    kernel_path,
    plan,
    read_scenario,
    scenario_names,
    scenarios,
)
from tcpwin.lab.bundle import write_bundle
from tcpwin.reference import references

PLAIN = 'title = "A"\n[workload]\nname = "bulk"\n'
EVERY = list(scenarios())


@all_cases("scenario", EVERY, ids=lambda each: each.name)
def test_a_scenario_is_whole(scenario: Scenario) -> None:
    assert scenario.sets
    assert scenario.route.rtt_ms > 0
    for kernel in scenario.kernels:
        assert scenario.expect[kernel], "a scenario says what is to come out"
        texts = [step.text for step in plan(scenario, kernel)]
        patched = [text for text in texts if "tcp_collapse_max_bytes" in text]
        assert len(patched) == (2 if kernel == "patched" else 0)


def test_the_published_matrix_is_whole() -> None:
    """Two workloads, three round trips, five settings, stock and patched: 60 runs."""
    runs = [(each.name, kernel) for each in EVERY if "published" in each.sets for kernel in each.kernels]
    settings = ("512m2", "256p1", "170p2", "146p3", "137p4")
    assert set(runs) == {
        (f"{workload}-{rtt}-{setting}", kernel)
        for workload in ("oscil", "bulk")
        for rtt in ("300ms", "20ms", "0ms")
        for setting in settings
        for kernel in ("stock", "patched")
    }


def test_the_published_settings_are_the_articles() -> None:
    scenario = find_scenario("oscil-300ms-170p2")
    assert (scenario.route.rtt_ms, scenario.route.rate_mbps) == (300, 1000)
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_rmem"] == f"8192 262144 {170 << 20}"
    assert scenario.sysctl["receiver"]["net.ipv4.tcp_adv_win_scale"] == "2"
    assert scenario.hosts.collapse_max_bytes == 6291456


@all_cases(
    ("text", "said"),
    [
        ("title = ", "Invalid value"),
        ('[workload]\nname = "bulk"\n', "it needs a title"),
        (PLAIN + "[paths]\nrtt_ms = 1\n", "unknown key paths; available: title, sets"),
        (PLAIN + "[path]\nrtt = 1\n", "[path]: unknown setting rtt; available: rtt_ms"),
        (PLAIN + '[path]\nrtt_ms = "1"\n', "[path]: rtt_ms must be a number"),
        (PLAIN + "[path]\nrtt_ms = -1\n", "[path]: rtt_ms must be 0 or more"),
        (PLAIN + "[path]\nrtt_ms = inf\n", "[path]: rtt_ms must be a finite number"),
        (PLAIN + "[path]\nloss_percent = 101\n", "[path]: loss_percent must be 100 or less"),
        (PLAIN + "[path]\nqueue_bytes = 9\n", "bottleneck_mbps and queue_bytes go together"),
        (PLAIN + '[path]\nqueue = "red"\n', "[path]: queue must be of droptail, codel, fq_codel"),
        (PLAIN + '[path]\nqueue = "codel"\n', "a queue needs bottleneck_mbps and queue_bytes"),
        (PLAIN + "[path]\nqueue_bytes = 9\nbottleneck_mbps = 1\necn = true\n", "ecn and mark_us go with a queue that"),
        (PLAIN + "[path]\nloss_percent = 1\nburst_loss_percent = 1\n", "loss is at random or in bursts, not both"),
        (PLAIN + "[path]\npolicer_mbps = 1\n", "policer_mbps and policer_burst_bytes go together"),
        (PLAIN + "[path]\nmtu_bytes = 68\n", "mtu_bytes must be 576 or more"),
        (PLAIN + '[path]\ncross_algorithm = "cubic"\n', "cross traffic shares a queue: it needs queue_bytes"),
        (PLAIN + "[path]\ncross_s = 1\n", "cross traffic needs a cross_algorithm"),
        (PLAIN + "[measure]\nsample_ms = 5\n", "[measure]: sample_ms must be 10 or more, or 0"),
        (PLAIN + '[sysctl]\n"kernel.panic" = 1\n', "kernel.panic is not the name of a setting"),
        (PLAIN + '[sysctl]\n"net.ipv4.tcp_sack" = true\n', "tcp_sack must be text or a whole number"),
        (PLAIN + '[expect]\nall = ["receiver.X = 1"]\n', "'receiver.X = 1' is not a claim"),
        (PLAIN + "[expect]\nnew = []\n", "[expect] has all, stock, patched, 6.12, 7.3, no new"),
        ('title = "A"\n[workload]\nname = "x"\n', "[workload] needs a name of bulk, conversation, max-send"),
        ('title = "A"\nworkload = 1\n', "workload must be a table"),
        (PLAIN.replace('"bulk"', '["bulk"]'), "[workload] needs a name of bulk, conversation, max-send"),
        (PLAIN + "serve = 3\n", "[workload] serve must be a table, as serve.bytes = 1000"),
        (PLAIN + "drive = [1]\n", "[workload] drive must be a table"),
        (PLAIN + "serve.count = 3\n", "[workload.serve]: unknown setting count"),
        ('title = "A"\nkernels = ["new"]\n[workload]\nname = "bulk"\n', "kernels must be of stock, patched"),
        ('title = "A"\nseed = 0\n[workload]\nname = "bulk"\n', "seed must be a whole number from 1"),
    ],
)
def test_a_wrong_scenario_says_where(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_scenario("mine", text)
    assert str(error.value).startswith("mine: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_names_are_found_or_guessed(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="did you mean oscil-300ms-170p2"):
        find_scenario("oscil-300ms-170p3")
    (tmp_path / "mine.toml").write_text(PLAIN)
    assert find_scenario(str(tmp_path / "mine.toml")).name == "mine"
    (tmp_path / "My File.toml").write_text(PLAIN)
    with pytest.raises(ScenarioError, match="lower-case"):
        find_scenario(str(tmp_path / "My File.toml"))


def test_without_packets_it_is_another_scenario() -> None:
    for name in ("oscil-300ms-170p2", "zero-window-5s"):
        scenario = find_scenario(name)
        other = scenario.without_capture()
        assert scenario.measure.capture
        assert not other.measure.capture
        assert other.text != scenario.text
        assert other.without_capture() is other


def test_loss_delay_and_queue_become_qdiscs() -> None:
    texts = [step.text for step in plan(find_scenario("loss-cubic-sack"), "stock")]
    assert any(text.endswith("dev r1 root netem delay 25000us loss 1.0% limit 2000000") for text in texts)
    assert any(text.endswith("dev r0 root netem delay 25000us limit 2000000") for text in texts)
    texts = [step.text for step in plan(find_scenario("queue-droptail"), "stock")]
    assert any("dev r1 root tbf rate 20000000bit burst 3200 limit 100000" in text for text in texts)
    assert any(text.endswith("dev r0 root netem delay 50000us limit 2000000") for text in texts)


def test_the_list_and_a_scenario_can_be_shown() -> None:
    listed = json.loads(tcpwin("lab", "list", "--json").stdout)["scenarios"]
    assert [each["name"] for each in listed] == scenario_names()
    listed = tcpwin("lab", "list", "--set", "zero-window").stdout.decode()
    assert "zero-window-5s" in listed
    assert "oscil" not in listed
    shown = tcpwin("lab", "show", "zero-window-5s").stdout.decode()
    assert shown == find_scenario("zero-window-5s").text
    assert b"netem delay 20000us" in tcpwin("lab", "show", "zero-window-5s", "--steps").stdout


def test_wrong_names_are_errors() -> None:
    assert "unknown scenario x" in refused("lab", "show", "x")
    assert "unknown set x: choose one of" in refused("lab", "list", "--set", "x", status=2)
    assert "name a scenario" in refused("lab", "run", status=2)
    assert "go with --like" in refused("lab", "run", "zero-window-5s", "--rate", "5", status=2)
    assert "none of these runs on the patched kernel" in refused(
        "lab", "run", "zero-window-5s", "--kernel", "patched", status=2
    )


def make_bundle(scenario: Scenario, folder: Path, made: Path, which: str = "stock", **more: object) -> None:
    """Create a bundle like a run's, as far as `run` examines it."""
    made.mkdir()
    host: dict[str, object] = {"counter_increases": {}, "log": {}, "capture": None}
    (made / "meta.json").write_text(json.dumps({"hosts": {"sender": host, "receiver": host}, **more}))
    write_bundle(made, scenario.text, folder / f"{scenario.name}-{which}.zip")


def test_needs_are_reported_only_for_missing_runs(tmp_path: Path) -> None:
    """If every bundle exists, nothing is needed, not even a kernel, and nothing is announced."""
    make_bundle(find_scenario("zero-window-5s"), tmp_path, tmp_path / "made")
    away = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = tcpwin("lab", "run", "zero-window-5s", "-o", tmp_path, env=away)
    assert b"(was there)" in done.stdout
    assert b"run needs" not in done.stderr
    assert "is not built yet" in refused("lab", "run", "zero-window-5s", "--again", "-o", tmp_path, env=away)


def test_a_run_of_6_12_has_a_bundle_of_its_own_and_no_expectations(tmp_path: Path) -> None:
    """One Linux's numbers must not pass for another's, nor be compared with publications about it."""
    scenario = find_scenario("zero-window-5s")
    make_bundle(scenario, tmp_path, tmp_path / "made", made_by=kernel_path("6.12").name)
    assert find_outcome(scenario, "stock", tmp_path) is None
    assert find_outcome(scenario, "stock", tmp_path, series="6.12") is None
    make_bundle(scenario, tmp_path, tmp_path / "new", which="6.12-stock", made_by=kernel_path("6.12").name)
    found = find_outcome(scenario, "stock", tmp_path, series="6.12")
    assert found.claims == ()
    assert find_outcome(scenario, "patched", tmp_path, series="6.12") is None


@pytest.mark.parametrize(
    ("made_by", "engine", "is_there"),
    [
        (kernel_path().name, "uml", True),
        ("linux-6.1-000000000000", "uml", False),
        ("this host", "uml", False),
        ("this host", "netns", True),
        (kernel_path().name, "netns", False),
    ],
)
def test_a_run_of_another_kernel_is_not_this_one(made_by: str, engine: str, is_there: bool, tmp_path: Path) -> None:
    """Numbers of a host's own kernel, or of an older patch, must not pass for the lab's."""
    scenario = find_scenario("zero-window-5s")
    make_bundle(scenario, tmp_path, tmp_path / "made", made_by=made_by)
    assert (find_outcome(scenario, "stock", tmp_path, engine=engine) is not None) is is_there


def test_the_page_of_systems_names_only_existing_runs() -> None:
    page = Path(__file__).parents[2] / "tcpwin" / "docs" / "lab" / "systems.md"
    commands = [words.split() for words in re.findall(r"`tcpwin ([^`]+)`", page.read_text("utf8"))]
    sets = {each for scenario in EVERY for each in scenario.sets}
    runs = [words[2:] for words in commands if words[:2] == ["lab", "run"]]
    asked = {name for words in runs for name in words if not name.startswith("--")}
    assert asked <= sets | {each.name for each in EVERY}
    shown = {words[1].split("/")[0] for words in commands if words[0] == "reference"}
    assert shown <= set(references())


def test_of_a_newer_linux_only_its_own_section_is_expected() -> None:
    """The published results are of kernels before 6.6, so `all` does not apply to a newer one."""
    said = 'all = ["receiver.bytes == 1"]\n"6.12" = ["receiver.bytes == 2"]\n'
    expect = read_scenario("said", f"{PLAIN}[expect]\n{said}").expect
    assert [claim.text for claim in expect["stock"]] == ["receiver.bytes == 1"]
    assert [claim.text for claim in expect["6.12"]] == ["receiver.bytes == 2"]
    assert read_scenario("unsaid", PLAIN).expect["6.12"] == ()
    with pytest.raises(ScenarioError, match=r"has all, stock, patched, 6\.12, 7\.3, no 7\.0"):
        read_scenario("none", f'{PLAIN}[expect]\n"7.0" = []\n')
