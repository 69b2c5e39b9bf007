"""A path's settings as iproute2 commands (tc(8), ip(8)): queues, losses, policers and second routers."""

from __future__ import annotations

import re

import pytest

from tcpwin.lab import Scenario, plan, read_scenario, scenarios
from tcpwin.lab.batches import batched

WORKLOAD = '[workload]\nname = "transfer"\n'
QUEUE = "rtt_ms = 40\nbottleneck_mbps = 20\nqueue_bytes = 100_000\n"


def scenario(path: str, more: str = "") -> Scenario:
    return read_scenario("mine", f'title = "A"\n[path]\n{path}{WORKLOAD}{more}')


def lines(path: str, more: str = "") -> list[str]:
    """Return the steps of a path."""
    return [step.text for step in plan(scenario(path, more), "stock")]


def only(found: list[str], pattern: str) -> str:
    """Return the only matching step."""
    matching = [line for line in found if re.search(pattern, line)]
    assert len(matching) == 1, matching
    return matching[0]


def test_a_managed_queue_is_the_child_of_the_bottlenecks_rate() -> None:
    found = lines(QUEUE + 'queue = "codel"\necn = true\nmark_us = 700\n')
    assert "root handle 1: tbf rate 20000000bit" in only(found, r"dev r1 root")
    # 100,000 bytes are 67 frames of at most 1,514; the target exceeds a frame's time at 20 Mbit/s, 0.6 ms.
    child = only(found, r"dev r1 parent 1:1")
    assert child.endswith("codel limit 67 target 5000us interval 100ms ecn ce_threshold 700us")
    assert "fq_codel limit 67 target 5000us interval 100ms noecn memory_limit" in only(
        lines(QUEUE + 'queue = "fq_codel"\n'), r"parent 1:1"
    )


def test_codels_target_is_above_the_time_of_a_frame() -> None:
    """RFC 8289 §4.4: 12 ms per frame at 1 Mbit/s."""
    found = only(lines('bottleneck_mbps = 1\nqueue_bytes = 100_000\nqueue = "codel"\n'), r"parent 1:1")
    target = re.search(r"target (\d+)us", found)
    assert 12_112 <= int(target[1]) <= 25_000


def test_loss_behind_a_queue_has_a_separate_router() -> None:
    found = lines(QUEUE + "loss_percent = 0.5\n")
    assert "ip netns add tcpwin-far" in found
    assert "far: net.ipv4.ip_forward = 1" in found
    assert "tbf rate 20000000bit" in only(found, r"dev r1 root")
    assert only(found, r"dev q1 root").endswith("netem loss 0.5% limit 2000000")
    # The whole delay is on the return path, and only once.
    assert only(found, r"netem delay").endswith("dev q0 root netem delay 40000us limit 2000000")


@pytest.mark.parametrize(("percent", "frames"), [(1.0, 10.0), (5.0, 4.0), (0.1, 2.5)])
def test_bursts_lose_the_share_that_was_asked_for(percent: float, frames: float) -> None:
    """Gilbert-Elliott: the bad state lasts 1/r frames, p / (p + r) of all frames are in it, and half of those are
    lost.
    """
    found = only(lines(f"burst_loss_percent = {percent}\nburst_frames = {frames}\n"), r"gemodel")
    chances = re.search(r"loss gemodel ([\d.]+)% ([\d.]+)% 50% 0%", found)
    assert chances is not None
    begin, end = (float(chance) / 100 for chance in chances.groups())
    assert 1 / end == pytest.approx(frames, rel=1e-4)
    assert 50 * begin / (begin + end) == pytest.approx(percent, rel=1e-3)


def test_a_policer_drops_on_the_way_in() -> None:
    found = lines("policer_mbps = 8\npolicer_burst_bytes = 50_000\n")
    assert only(found, r"dev r0 .*ingress")
    assert only(found, r"police").endswith("matchall action police rate 8000000bit burst 50000 conform-exceed drop")


def test_a_smaller_link_and_a_first_window_are_devices_and_routes() -> None:
    found = lines("mtu_bytes = 1440\n", "[host]\ninitial_window_segments = 80\n")
    assert "ip -n tcpwin-router link set dev r1 mtu 1440" in found
    assert "ip -n tcpwin-sender route add default via 10.9.1.254 initcwnd 80" in found
    assert "ip -n tcpwin-receiver route add default via 10.9.2.254" in found


def test_cross_traffic_has_a_sender_of_its_own_and_its_algorithm() -> None:
    found = lines(QUEUE + 'cross_algorithm = "bbr"\n')
    assert {"ip netns add tcpwin-far", "ip netns add tcpwin-cross"} < set(found)
    assert "cross: net.ipv4.tcp_congestion_control = bbr" in found


def test_dctcp_is_allowed_first() -> None:
    """The kernel restricts it in namespaces until it is allowed."""
    found = lines("", '[sysctl]\n"net.ipv4.tcp_congestion_control" = "dctcp"\n')
    allowed = only(found, r"tcp_allowed_congestion_control")
    assert "dctcp" in allowed
    assert found.index(allowed) < found.index("sender: net.ipv4.tcp_congestion_control = dctcp")


def test_a_path_without_these_needs_no_more_than_three_namespaces() -> None:
    for each in scenarios():
        made = [step.text for step in plan(each, "stock") if step.text.startswith("ip netns add")]
        assert made == [f"ip netns add tcpwin-{end}" for end in ("sender", "router", "receiver")]


def test_batches_hold_every_command_once_and_devices_come_first() -> None:
    steps = plan(scenario(QUEUE + 'loss_percent = 1\ncross_algorithm = "reno"\n'), "stock")
    batches = [step.text for step in batched(steps)]
    written = "\n".join(batches)
    for step in steps:
        words = " ".join(step.argv[3:] if step.argv[1:2] == ("-n",) else step.argv[1:]) or step.text
        assert written.count(f"{words}\n") + batches.count(step.text) >= 1, step.text
    programs = [text.split("\n")[0] for text in batches if "-batch" in text]
    assert programs[0] == "ip -batch -"
    assert len(programs) == len(set(programs))
    kinds = [program.split()[0] for program in programs]
    assert kinds == sorted(kinds)
