"""The path of a capture compared with the world that was drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import all_cases
from worlds.truths import Truth, read_truths

import tcpwin
from tcpwin.paths import describe_path, fit_path

CAPTURES = sorted((Path(__file__).parents[1] / "worlds" / "captures").glob("*.pcap.gz"))
PAYLOAD = 1448 / 1538


def truth_of(path: Path) -> Truth:
    return next(each for each in read_truths(1) if each.number == int(re.findall(r"\d+", path.name)[1]))


@all_cases("path", CAPTURES, ids=lambda each: each.name)
def test_the_path_is_the_one_that_was_drawn(path: Path) -> None:
    drawn = truth_of(path).drawn["path"]
    fitted = fit_path(tcpwin.analyze(path).connections[0])
    assert fitted is not None
    assert fitted.direction == "b_to_a"
    assert fitted.round_trip_ns.value == pytest.approx(drawn["rtt_ms"] * 1e6, rel=0.1)
    rate = drawn.get("bottleneck_mbps", drawn["rate_mbps"]) * 1e6 * PAYLOAD
    if fitted.rate_bps.value is None:
        assert fitted.rate_bps.low is not None
        assert fitted.rate_bps.low <= rate
    else:
        assert fitted.rate_bps.low is not None
        assert fitted.rate_bps.high is not None
        assert fitted.rate_bps.low <= rate <= fitted.rate_bps.high
    assert describe_path(fitted)["rate_bps"]["how"]


@pytest.mark.parametrize("path", [each for each in CAPTURES if "-040-" in each.name], ids=lambda each: each.name)
def test_losses_by_chance_are_told_from_a_queues(path: Path) -> None:
    drawn = truth_of(path).drawn["path"]
    fitted = fit_path(tcpwin.analyze(path).connections[0])
    assert fitted is not None
    assert fitted.loss_kind == "random"
    assert fitted.loss_share.value == pytest.approx(drawn["loss_percent"] / 100, rel=0.3)
    queue = fit_path(tcpwin.analyze(next(each for each in CAPTURES if "-003-sender" in each.name)).connections[0])
    assert queue is not None
    assert queue.loss_kind == "queue"


def test_a_connection_without_data_has_no_path() -> None:
    path = Path(__file__).parents[2] / "captures" / "broken" / "cut-record-header.pcap"
    assert fit_path(tcpwin.analyze(path).connections[0]) is None
