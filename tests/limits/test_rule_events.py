"""Reading events for rules: many connections at a time, with a bounded number of readings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ladder
import pytest
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Case, Finding, all_rules, check, reading

OPTIONS = ("<mss 1460>", "<mss 1460>")


def timeouts(connections: int, folder: Path) -> Path:
    """Consecutive connections, each with a segment that times out."""
    story = Story()
    for number in range(connections):
        story.setting(f"port a {40_000 + number}")
        story.next, story.acked = {"a": 0, "b": 0}, {"a": 0, "b": 0}
        story.window = {"a": 64_240, "b": 65_160}
        story.handshake(options=OPTIONS, scaled=(64_240, 65_160)).wait(0.001).data("a", 1000)
        story.wait(0.3).step("a", "A", "len 1000", seq=1)
        story.wait(0.04).ack("b")
        story.wait(1.0)
    path = folder / "timeouts.pcap"
    ladder.parse(story.text, "timeouts").write_pcap(path)
    return path


def test_one_reading_serves_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = tcpwin.analyze(timeouts(12, tmp_path))
    readings = count_readings(monkeypatch)
    found = judged(analysis, "TW301")
    assert [finding.evidence.frames for finding in found] == [(4 + 6 * number, 5 + 6 * number) for number in range(12)]
    assert readings == [12]


def test_packets_read_again_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    monkeypatch.setattr(reading, "MOST_READ_PACKETS", 3 * (72 + 1000))
    analysis = tcpwin.analyze(timeouts(12, tmp_path))
    readings = count_readings(monkeypatch)
    # The first reading kept enough events to judge the other connections.
    assert len(judged(analysis, "TW301")) == 12
    assert readings == [2, 2, 2]


def test_a_large_capture_is_judged_by_events_of_the_first_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = timeouts(12, tmp_path)
    expected = judged(tcpwin.analyze(path), "TW301").found
    monkeypatch.setattr(reading, "SMALL_PACKETS", 71)
    readings = count_readings(monkeypatch)
    assert judged(tcpwin.analyze(path), "TW301").found == expected
    assert readings == []


def test_a_source_that_is_gone_is_judged_by_them_too(tmp_path: Path) -> None:
    path = timeouts(1, tmp_path)
    expected = judged(tcpwin.analyze(path), "TW301").found
    analysis = tcpwin.analyze(path)
    path.unlink()
    assert judged(analysis, "TW301").found == expected


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many connections each reading follows."""
    readings: list[int] = []
    follow = tcpwin.Analysis.follow

    def counted(self: tcpwin.Analysis, connections: list[int]) -> None:
        wanted = list(connections)
        before = set(self._details)
        follow(self, wanted)
        if set(self._details) != before:
            readings.append(len(wanted))

    monkeypatch.setattr(tcpwin.Analysis, "follow", counted)
    return readings


def test_events_of_both_readings_are_selected_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select events by name, side and cause; few events are kept completely."""
    path = timeouts(2, tmp_path)
    analysis = tcpwin.analyze(path)
    rule = all_rules()["TW301"]
    asked: list[dict[str, Any]] = [
        {},
        {"names": ("rto_retransmission", "nothing")},
        {"names": ("nothing",)},
        {"side": "a"},
        {"side": "b"},
        {"causes": ("rto", "fast")},
        {"names": ("rto_retransmission",), "side": "a", "causes": ("rto",)},
    ]
    for connection in analysis.connections:
        read = Case(analysis, rule, {}, connection, "a_to_b")
        monkeypatch.setattr(reading, "SMALL_PACKETS", 0)
        other = tcpwin.analyze(path)
        kept = Case(other, rule, {}, other.connections[connection.id], "a_to_b")
        for wanted in asked:
            names, options = wanted.get("names", ()), {k: v for k, v in wanted.items() if k != "names"}
            expected, found = read.events(*names, **options), kept.events(*names, **options)
            assert list(found) == list(expected), wanted
            assert len(found) == len(expected)
            assert list(found[:1]) == list(expected[:1])
            assert reading.count_originals(found) == reading.count_originals(expected)
        assert [event.cause for event in kept.events(causes=("rto",))] == ["rto"]
        monkeypatch.undo()


def test_a_rule_that_needs_hosts_is_skipped_without_them() -> None:
    capture = Path(__file__).parents[2] / "captures" / "lab" / "slow-reader.pcap.gz"
    bundle = capture.parents[1] / "bundles" / "slow-reader.zip"
    asked: list[int] = []

    def judge(case: Case) -> Iterator[Finding]:
        asked.append(case.connection.id)
        yield from ()

    rule = replace(all_rules()["TW404"], judge=judge, when=(("segments", ">", 0),))
    assert rule.needs_hosts
    check(tcpwin.analyze(capture), chosen=[rule])
    assert asked == []
    check(tcpwin.analyze(bundle), chosen=[rule])
    assert asked
