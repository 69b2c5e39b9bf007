"""Predictions compared with lab runs of the changed world, and with the verdict's cost."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import inf, nan
from pathlib import Path

import pytest
from cases import all_cases
from worlds.changes import FILE, SEED, asked_of, every
from worlds.truths import read_truths

import tcpwin
from tcpwin.limits import life_of
from tcpwin.paths import ChangeError, WhatIfError, fit_path, read_changes
from tcpwin.paths.changes import Changes
from tcpwin.paths.model import choices

CAPTURES = sorted((Path(__file__).parents[1] / "worlds" / "captures").glob("*.pcap.gz"))
LEFT = Path(__file__).with_name("send-buffer-left.zip")
REAL = Path(__file__).parents[2] / "captures"
WITHIN = 1.25
CHANGES = [json.loads(line) for line in FILE.read_text().splitlines()]


def number_of(path: Path) -> int:
    return int(re.findall(r"\d+", path.name)[1])


@cache
def connection(path: Path, capture: str | None = None) -> tcpwin.Connection:
    analysis = tcpwin.analyze(path, capture=capture) if capture else tcpwin.analyze(path)
    return max(analysis.connections, key=lambda each: each.b_to_a.unique_bytes)


RUNS = [(path, each) for path in CAPTURES for each in CHANGES if number_of(path) == each["number"]]


def test_there_are_runs_of_changes() -> None:
    assert [(line["number"], line["asked"]) for line in CHANGES] == [
        (each.number, list(each.words)) for each in every()
    ]
    assert len(RUNS) >= 10


@pytest.mark.parametrize(("path", "run"), RUNS, ids=lambda each: each.name if isinstance(each, Path) else "")
def test_a_change_takes_as_long_as_its_run(path: Path, run: dict[str, object]) -> None:
    settings, more = asked_of(run["asked"])  # type: ignore[arg-type]
    predicted = tcpwin.whatif(connection(path), settings, **more).prediction
    assert predicted is not None
    true_ns = run["completion_ns"]
    assert isinstance(true_ns, int)
    assert 1 / WITHIN <= predicted.duration_ns.likely / true_ns <= WITHIN, run["asked"]
    assert predicted.duration_ns.low <= predicted.duration_ns.likely <= predicted.duration_ns.high


@all_cases("capture", ["sender.pcap.gz", "receiver.pcap.gz"])
@all_cases(
    ("settings", "seconds", "binds"),
    [
        ({}, 3.505, "receiver_window"),
        ({"receiver.tcp_rmem": "64M"}, 2.125, "send_buffer"),
        ({"client.net.ipv4.tcp_rmem": "4096 131072 67108864"}, 2.125, "send_buffer"),
        ({"receiver.tcp_rmem": "64M", "sender.tcp_wmem": "64M"}, 1.225, "congestion_control"),
    ],
)
def test_a_send_buffer_that_was_left_bounds_what_a_larger_window_gives(
    settings: dict[str, str], seconds: float, binds: str, capture: str
) -> None:
    """A window of 33 kB and a send buffer of 60,000 bytes over 166 ms; the seconds are from runs in the lab's
    kernel.
    """
    chosen = connection(LEFT, capture)
    if not settings:
        assert chosen.duration_ns / 1e9 == pytest.approx(seconds, rel=0.06)
        assert chosen.verdict.limit == binds
        return
    predicted = tcpwin.whatif(chosen, settings).prediction
    assert predicted is not None
    assert predicted.limit == binds
    assert predicted.duration_ns.likely / 1e9 == pytest.approx(seconds, rel=WITHIN - 1)
    assert predicted.duration_ns.low <= seconds * 1e9 <= predicted.duration_ns.high


def test_the_model_is_that_of_the_receivers_kernel() -> None:
    """From 6.6 on the buffer's share is the connection's, and tcp_adv_win_scale has no effect."""
    chosen = connection(LEFT, "sender.pcap.gz")
    path = fit_path(chosen)
    assert path is not None
    assert path.receiver.kernel == (6, 1)
    own, life = path.receiver.sizes("tcp_rmem"), life_of(chosen, path.direction)
    assert own is not None
    newer = replace(path, receiver=replace(path.receiver, kernel=(6, 12), release="6.12.117"))
    for share in (100, 243):
        seen = own[2] * share // 256
        shown = replace(life, carried=life.carried._replace(window_bytes=seen))
        [window] = {each.window_bytes for each in choices(newer, shown, Changes(rmem_max_bytes=8 * own[2]))}
        assert window == pytest.approx(8 * seen, rel=0.01)
    with pytest.raises(ChangeError, match=r"no effect from Linux 6\.6 on, and the client has 6\.12\.117"):
        read_changes(newer, {"receiver.tcp_adv_win_scale": "-2"})
    assert read_changes(path, {"receiver.tcp_adv_win_scale": "-2"}).adv_win_scale == -2


@all_cases("path", [*CAPTURES, *sorted((REAL / "lab").glob("*.pcap.gz"))], ids=lambda each: each.name)
def test_the_verdicts_limit_lifted_gains_what_the_verdict_says(path: Path) -> None:
    chosen = connection(path)
    verdict = chosen.verdict
    try:
        predicted = tcpwin.whatif(chosen, lift=[verdict.limit]).prediction
    except (WhatIfError, ChangeError):
        return
    assert predicted is not None
    restarts = life_of(chosen, verdict.direction).times_ns.get("idle_restart", 0)
    if verdict.limit != "sender_application" or not restarts:
        assert predicted.gain_ns == verdict.cost_ns
    else:
        assert verdict.cost_ns < predicted.gain_ns <= verdict.cost_ns + restarts, "no restart without a pause"


@all_cases("path", CAPTURES, ids=lambda each: each.name)
def test_no_change_is_no_other_duration_and_more_is_never_slower(path: Path) -> None:
    chosen = connection(path)
    found = tcpwin.whatif(chosen, each=True)
    assert found.prediction is None
    gains = [each.gain_ns for each in found.each]
    assert gains == sorted(gains, reverse=True)
    for name in ("receiver.tcp_rmem", "sender.tcp_wmem"):
        took = []
        for size in ("1M", "4M", "64M"):
            try:
                predicted = tcpwin.whatif(chosen, {name: size}).prediction
            except WhatIfError:
                continue
            assert predicted is not None
            took.append(predicted.duration_ns.likely)
        assert all(later <= 1.01 * sooner for sooner, later in pairwise(took)), "but for what a longer ramp takes"


def test_each_names_the_limit_that_gains_most_in_the_lab() -> None:
    right = 0
    for path in CAPTURES:
        truth = next(each for each in read_truths(SEED) if each.number == number_of(path))
        found = tcpwin.whatif(connection(path), each=True, rate_bps=None)
        if found.each:
            right += found.each[0].changes[0].removeprefix("lift ") in truth.result.alike
    assert right >= 0.75 * len(CAPTURES)


def test_what_the_capture_cannot_say_is_refused() -> None:
    with pytest.raises(WhatIfError, match="7 bytes"):
        tcpwin.whatif(connection(REAL / "wild" / "keep-alive.pcap"), {"receiver.tcp_rmem": "32M"})
    with pytest.raises(WhatIfError, match="give it with --window-scale"):
        tcpwin.whatif(connection(REAL / "lab" / "mid-connection.pcap.gz"), {"receiver.tcp_rmem": "32M"})
    slow = connection(REAL / "lab" / "slow-reader.pcap.gz")
    with pytest.raises(WhatIfError, match="give it with --rate"):
        tcpwin.whatif(slow, {"sender.tcp_wmem": "64M", "receiver.tcp_rmem": "64M"}, lift=["receiver_application"])


def test_no_buffer_helps_without_window_scaling() -> None:
    narrow = connection(REAL / "lab" / "no-window-scaling.pcap.gz")
    found = tcpwin.whatif(narrow, {"receiver.tcp_rmem": "6M"}).prediction
    assert found is not None
    assert found.gain_ns == pytest.approx(0, abs=0.01 * found.before_ns)
    assert any("stays within 65,535 bytes" in doubt for doubt in found.doubts)


@pytest.mark.parametrize("rate_bps", [20e6, 100e6, 1e9])
def test_no_prediction_exceeds_the_paths_rate(rate_bps: float) -> None:
    slow = connection(REAL / "lab" / "slow-reader.pcap.gz")
    found = tcpwin.whatif(slow, lift=["receiver_application"], rate_bps=rate_bps).prediction
    assert found is not None
    assert found.goodput_bps.low <= found.goodput_bps.likely <= found.goodput_bps.high <= rate_bps


def test_a_path_of_unknown_rate_gives_a_range_from_slow_start_to_no_gain() -> None:
    """A reader of 1.76 Mbit/s kept the path empty: 6 MB over 40 ms need 9 round trips of slow start at least."""
    slow = connection(REAL / "lab" / "slow-reader.pcap.gz")
    found = tcpwin.whatif(slow, lift=["receiver_application"]).prediction
    assert found is not None
    assert found.confidence == "possible"
    assert any("only that it carries 1.76 Mbit/s: give it with --rate" in doubt for doubt in found.doubts)
    assert found.duration_ns.low <= 10 * 40e6
    assert found.duration_ns.high >= found.before_ns
    assert found.duration_ns.likely >= 9 * 40e6
    with_rate = tcpwin.whatif(slow, lift=["receiver_application"], rate_bps=100e6).prediction
    assert with_rate is not None
    assert with_rate.confidence == "possible"
    assert with_rate.gain_ns > 0.8 * slow.verdict.cost_ns


@all_cases(
    ("settings", "more", "said"),
    [
        ({"receiver.tcp_sack": "0"}, {}, "not modelled"),
        ({"nobody.tcp_rmem": "1M"}, {}, "names no end"),
        ({"tcp_rmem": "1M"}, {}, "names no end"),
        ({"sender.tcp_rmem": "1M"}, {}, "the receiver's counts"),
        ({"receiver.tcp_rmem": "much"}, {}, "largest size"),
        ({"receiver.tcp_rmem": "8G"}, {}, "from 1 byte"),
        ({"receiver.tcp_adv_win_scale": "99"}, {}, "-31 to 31"),
        ({"sender.tcp_congestion_control": "vegas"}, {}, "not modelled"),
        ({}, {"lift": ["weather"]}, "not a limit"),
        ({}, {"loss_share": 1.0}, "below 100 %"),
        ({}, {"rate_bps": 0}, "a rate is 1 bit/s to 1 Pbit/s"),
        ({}, {"rate_bps": inf}, "a rate is 1 bit/s to 1 Pbit/s"),
        ({}, {"round_trip_ns": 1e-318}, "a round trip is 1 ns to 1 hour"),
        ({}, {"round_trip_ns": nan}, "a round trip is 1 ns to 1 hour"),
    ],
)
def test_a_change_that_is_none_is_refused_by_name(settings: dict[str, str], more: dict[str, object], said: str) -> None:
    path = fit_path(connection(CAPTURES[0]))
    assert path is not None
    with pytest.raises(ChangeError, match=re.escape(said)):
        read_changes(path, settings, **more)  # type: ignore[arg-type]


@all_cases("path", sorted((REAL / "wild").glob("*.pcap*")), ids=lambda each: each.name)
def test_whatever_the_capture_an_answer_is_a_number_or_a_reason(path: Path) -> None:
    for chosen in list(tcpwin.analyze(path).connections)[:10]:
        for settings, more in (
            ({}, {"round_trip_ns": 1e6}),
            ({}, {"loss_share": 0.01}),
            ({"sender.tcp_wmem": "1"}, {}),
        ):
            try:
                predicted = tcpwin.whatif(chosen, settings, each=True, **more).prediction  # type: ignore[arg-type]
            except WhatIfError:
                continue
            assert predicted is not None
            for found in (predicted.duration_ns, predicted.goodput_bps):
                assert 0 < found.low <= found.likely <= found.high < float("inf")
