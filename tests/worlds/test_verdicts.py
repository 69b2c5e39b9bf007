"""Verdicts on drawn worlds, from packets alone at either end, against the gains of lifting each limit.

Uses ``captures/seed-S-NUMBER-END.pcap.gz`` of the unchanged runs and the truths in this folder. Each run was made by
`tcpwin lab worlds`; its capture has one connection, whose server sends.
"""

import re
from pathlib import Path

import pytest
from cases import all_cases
from worlds.owners import changed_by, expected_owners, gains_of, is_fix_right
from worlds.truths import Truth, read_truths

import tcpwin

CAPTURES = sorted(Path(__file__).with_name("captures").glob("*.pcap.gz"))
PAYLOAD = 1448 / (1448 + 66 + 24)
"""Payload's share of a frame's time on the link, with the headers of Ethernet, IP and TCP and the link's overhead."""


def truth_of(path: Path) -> Truth:
    seed, number = map(int, re.findall(r"\d+", path.name)[:2])
    return next(truth for truth in read_truths(seed) if truth.number == number)


def ids(path: Path) -> str:
    return path.name.removesuffix(".pcap.gz")


def test_there_are_captures_of_both_ends() -> None:
    names = {ids(path).rsplit("-", 1)[0] for path in CAPTURES}
    assert len(names) >= 5
    assert len(CAPTURES) == 2 * len(names)


@all_cases("path", CAPTURES, ids=ids)
def test_the_limit_is_one_whose_lifting_gains_most(path: Path) -> None:
    result = truth_of(path).result
    verdict = tcpwin.analyze(path).connections[0].verdict
    assert verdict.limit in result.alike
    assert verdict.direction == "b_to_a"
    assert verdict.owner in expected_owners(result)
    assert is_fix_right(changed_by(verdict), result.alike, gains_of(result), result.base.completion_ns)


@all_cases("path", [path for path in CAPTURES if truth_of(path).result.limit == "path_rate"], ids=ids)
def test_the_rate_of_the_path_is_the_bottlenecks(path: Path) -> None:
    """The slowest point is a queue in the router, or else the sender's card."""
    drawn = truth_of(path).drawn["path"]
    slowest_mbps = drawn.get("bottleneck_mbps", drawn["rate_mbps"])
    data = tcpwin.analyze(path).connections[0].b_to_a
    assert data.path_rate_bps == pytest.approx(slowest_mbps * 1e6 * PAYLOAD, rel=0.1)


@pytest.mark.parametrize("path", [path for path in CAPTURES if "-003-" in path.name], ids=ids)
def test_a_standing_queue_is_measured(path: Path) -> None:
    """A round trip can wait at most for the queue that the router can hold."""
    drawn = truth_of(path).drawn["path"]
    data = tcpwin.analyze(path).connections[0].b_to_a
    longest_ns = drawn["queue_bytes"] * 8e3 / drawn["bottleneck_mbps"]
    assert 0.1 * longest_ns < data.queue_mean_ns <= data.queue_max_ns <= 1.1 * longest_ns


@all_cases("path", CAPTURES, ids=ids)
def test_the_senders_algorithm_is_right_or_unknown(path: Path) -> None:
    reported = tcpwin.analyze(path).connections[0].b_to_a.sender_algorithm
    drawn = truth_of(path).drawn["sysctl"]["net.ipv4.tcp_congestion_control"]
    shown = {"seed-1-003-sender": "cubic", "seed-1-040-sender": "reno"}
    assert reported == shown.get(ids(path))
    assert reported in (None, drawn)


def test_what_a_limit_cost_is_what_its_lift_gained() -> None:
    """Within a factor of 1.5, or a tenth of the time, in eight of ten."""
    near = []
    for path in CAPTURES:
        truth = truth_of(path).result
        verdict = tcpwin.analyze(path).connections[0].verdict
        gained_ns = max(each.gain_ns for each in truth.gains if each.lift.limit == verdict.limit)
        is_like = gained_ns / 1.5 <= verdict.cost_ns <= gained_ns * 1.5
        near.append(is_like or abs(verdict.cost_ns - gained_ns) <= 0.1 * truth.base.completion_ns)
    assert sum(near) >= 0.8 * len(near)


def test_a_window_that_fills_its_path_is_no_certain_limit() -> None:
    """Three segments over a path that two fill: a faster path gains time, a larger window nothing."""
    path = Path(__file__).with_name("captures") / "unsure" / "seed-4-015-sender.pcap.gz"
    truth = truth_of(path)
    assert truth.result.limit == "path_rate"
    assert "receiver_window" not in truth.result.alike
    verdict = tcpwin.analyze(path).connections[0].verdict
    assert (verdict.limit, verdict.confidence) == ("receiver_window", "possible")


@pytest.mark.parametrize("counted", [False, True], ids=["packets alone", "with the kernel's counts"])
def test_the_kernels_waits_for_the_window_may_be_the_readers(counted: bool) -> None:
    """Its chronograph counts whatever keeps the window small; the packets show that the reader does."""
    path = Path(__file__).with_name("captures") / "kernel" / "seed-4-050-sender.pcap.gz"
    samples = [path.with_name("seed-4-050-ss_sender.txt")] if counted else []
    connection = tcpwin.analyze(path, snapshots=samples).connections[0]
    assert (connection.budget["b_to_a"].kernel is not None) == counted
    assert truth_of(path).result.alike == ["receiver_application"]
    assert connection.verdict.limit == "receiver_application"
