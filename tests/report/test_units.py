"""The report's numbers equal the fields."""

import re
from copy import copy
from pathlib import Path

import pytest
from analysis.bundled import WHOLE, analyze, name_of
from cases import all_cases

from tcpwin import Connection
from tcpwin.limits import LIMIT_NAMES, role_of
from tcpwin.render import render, view_verdict
from tcpwin.render.text.summary import render_verdict
from tcpwin.render.view.timing import render_timing

SCALES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
RATES = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
TIMES = {"µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}


def value_of(text: str, units: dict[str, float]) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * units[unit]


def near(text: str, units: dict[str, float]) -> object:
    """Approximate the value of a text with three digits."""
    return pytest.approx(value_of(text, units), rel=0.006, abs=0.6 * min(units.values()))


def compare_verdict(connection: Connection, block: str) -> None:
    """Compare the lines on a connection's limit with its verdict."""
    verdict = connection.verdict
    headline = (
        r"^    (?:[\w ]+: l|L)imited by .*? \((<?)(\d+) % of the time, (\w+)\)(?: and .*? \((<?\d+) %\))?\.(?: |$)"
    )
    limited = re.search(headline, block, re.MULTILINE)
    assert bool(limited) == (verdict.limit not in ("none", "capture"))
    if limited:
        assert verdict.share == pytest.approx(int(limited[2]) / 100, abs=0.0101 if limited[1] else 0.0051)
        assert limited[3] == verdict.confidence
        assert bool(limited[4]) == (verdict.second_limit is not None)
        assert verdict.cost_ns <= verdict.share * connection.duration_ns * (1 + 1e-9) + 1
        assert verdict.cost_low_ns <= verdict.cost_ns <= verdict.cost_high_ns
    direction = connection.a_to_b if verdict.direction == "a_to_b" else connection.b_to_a
    if closed := re.search(r"(\S+ \S+) at zero window \([\w ]+, ([\d,]+) times?\)", block):
        assert direction.zero_window_ns == near(closed[1], TIMES)
        assert direction.zero_window_episode_count == int(closed[2].replace(",", ""))
    for whole, parts in re.findall(r" (?:for|waited) (\S+ \S+): (\S+ \S+ [^;\n]* \+ [^;\n]*)", block):
        # Parts printed as a sum add up, within three digits.
        own = [value_of(" ".join(part.split()[:2]), TIMES) for part in parts.split(" + ")]
        assert sum(own) == pytest.approx(value_of(whole, TIMES), rel=0.01)
    also = re.search(
        r"^    What can be fixed: .* cost (\S+ \S+) \((<?\d+) % of the connection\)\.$", block, re.MULTILINE
    )
    assert bool(also) == (verdict.also is not None and verdict.also != verdict.second_limit)
    if also:
        assert verdict.also_ns == near(also[1], TIMES)
    cost = re.search(r"^    Cost(?: \((.*?)\))?: (?:about|up to) (\S+ [^\s:]+)", block, re.MULTILINE)
    assert bool(cost) == (verdict.is_problem and not also)
    assert not cost or cost[1] == (verdict.also and LIMIT_NAMES[verdict.also])
    fix = re.search(r"^    Fix(?: \((.*?)\))?: (.*)$", block, re.MULTILINE)
    assert (fix and fix[2]) == (verdict.fix if verdict.is_problem else None)
    assert not fix or fix[1] == (verdict.also and LIMIT_NAMES[verdict.also])
    if cost:
        assert verdict.named_ns == near(cost[2], TIMES)
    if left := re.search(r"it would have taken (?:as little as )?(\S+ \S+) instead of (\S+ \S+)$", block, re.MULTILINE):
        # The three add up as printed, to the last digit of the largest.
        assert connection.duration_ns - verdict.cost_ns == pytest.approx(
            value_of(left[1], TIMES), rel=0.006, abs=0.011 * connection.duration_ns
        )
        assert connection.duration_ns == near(left[2], TIMES)
        assert verdict.lost_ns >= verdict.cost_ns
    evidence = re.search(
        r"^    Evidence(?: \([\w ]+\))?: (?:.*; )?frame\.number in \{([\d, ]+)\}"
        r"(?: \((?:[^)]*; )?rule (\w+) [\w-]+\))?$",
        block,
        re.MULTILINE,
    )
    assert bool(evidence) == bool(verdict.frames)
    if evidence:
        assert [int(frame) for frame in evidence[1].split(", ")] == list(dict.fromkeys(verdict.frames))
        assert evidence[2] == verdict.code


@all_cases("path", WHOLE, ids=name_of)
def test_numbers_of_the_text_are_the_fields(path: Path) -> None:
    text = render(analyze(path), limit=100)
    compared = 0
    for block in text.split("\n\n"):
        head = re.match(r"#(\d+)  \w+ (\S+) → \w+ (\S+)   (\S+ \S+), ", block)
        if not head:
            continue
        connection = analyze(path).connections[int(head[1])]
        assert (head[2], head[3]) == (str(connection.a), str(connection.b))
        assert connection.duration_ns == near(head[4], TIMES)
        for sender, told in re.findall(r"^    (\w+) → \w+  (.*(?:\n       .*)*)", block, re.MULTILINE):
            direction = connection.a_to_b if sender == role_of(connection, "a") else connection.b_to_a
            acked = re.search(
                r"^(\S+ \S+) acknowledged(?: at| in (\S+ \S+))?(?: \(?(\S+ [^\s)]+?)\)?)?"
                r"(?:, ([\d,]+) segments?)?(?:, nothing in the last \S+ \S+)?, ([\d,]+) retransmission",
                told,
            )
            assert acked, told
            assert direction.acked_bytes == near(acked[1], SCALES)
            assert (direction.goodput_bps is None) == (acked[3] is None and acked[4] is None)
            if acked[4]:
                assert direction.data_segments == int(acked[4])
            if acked[3]:
                assert direction.goodput_bps == near(acked[3], RATES)
            if acked[2]:
                assert direction.acked_bytes * 8e9 / direction.goodput_bps == near(acked[2], TIMES)
            assert direction.retransmissions == int(acked[5].replace(",", ""))
            if window := re.search(r"window of the \w+: (\S+ \S+) to (\S+ \S+), mean (\S+ \S+), (.*)", told):
                assert direction.receive_window_min_bytes == near(window[1], SCALES)
                assert direction.receive_window_max_bytes == near(window[2], SCALES)
                assert direction.receive_window_mean_bytes == near(window[3], SCALES)
                assert window[4] == str(direction.window_scale)
            if flight := re.search(r"in flight: (?:mean (\S+ \S+), )?at most (\S+ [kMG]?B)", told):
                assert direction.flight_mean_bytes == (
                    near(flight[1], SCALES) if flight[1] else pytest.approx(0, abs=1)
                )
                assert direction.flight_max_bytes == near(flight[2], SCALES)
            if trip := re.search(r"round trip: least (\S+ \S+), smoothed (\S+ \S+), RTO (\S+ \S+); (.*)", told):
                is_whole_path = direction.view in ("receiver", "between")
                is_told = trip[4] in ("captured near the receiver", "captured in between")
                assert is_told == (is_whole_path and connection.a.address != connection.b.address)
                assert (connection.path_rtt_ns if is_whole_path else direction.rtt_min_ns) == near(trip[1], TIMES)
                smoothed_ns = direction.sender_rtt_smoothed_ns if is_whole_path else direction.rtt_smoothed_ns
                assert smoothed_ns == near(trip[2], TIMES)
                assert direction.rto_ns == near(trip[3], TIMES)
            if pauses := re.search(r"pauses: (\d+) longer than the RTO with nothing in flight, (\S+ \S+) in all", told):
                assert direction.idle_gaps == int(pauses[1])
                assert direction.idle_ns == near(pauses[2], TIMES)
            if recovery := re.search(r"loss recovery: (?:([\d,]+) times?, )?(\S+ \S+) in all", told):
                assert direction.recoveries == int((recovery[1] or "0").replace(",", ""))
                assert direction.recovery_ns == near(recovery[2], TIMES)
            if delays := re.search(
                r"messages: ([\d,]+), first byte sent to last byte arrived: "
                r"median (\S+ \S+), p95 (\S+ \S+), p99 (\S+ \S+)",
                told,
            ):
                assert direction.messages == int(delays[1].replace(",", ""))
                assert direction.message_delay_p50_ns == near(delays[2], TIMES)
                assert direction.message_delay_p95_ns == near(delays[3], TIMES)
                assert direction.message_delay_p99_ns == near(delays[4], TIMES)
            compared += 1
        said = render_verdict(view_verdict(connection.verdict))
        assert text.count(said[0]) >= 1
        compare_verdict(connection, "\n".join(f"    {line}" for line in said))
    assert compared


def test_messages_whose_delays_are_not_known_have_one_word_for_it() -> None:
    connection = next(analyze(path) for path in WHOLE if path.name.startswith("idle-restart")).connections[0]
    unknown = dict.fromkeys(("message_delay_p50_ns", "message_delay_p95_ns", "message_delay_p99_ns"))
    direction = copy(connection.b_to_a)
    for name, value in unknown.items():
        object.__setattr__(direction, name, value)
    lines = render_timing(connection, direction)
    assert f"messages: {connection.b_to_a.messages}, first byte sent to last byte arrived: unknown" in lines
