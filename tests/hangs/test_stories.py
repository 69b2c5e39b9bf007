"""Crafted connections: the hang at the end is named, with its time, cost, finding and exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hangs.captures import analyze, cut
from hangs.judge import Judge, packets, read
from hangs.stories import CASES, FREE, Case
from stories.story import A_PORT, Story

import tcpwin
from tcpwin.analysis import Direction
from tcpwin.cli.program import cli
from tcpwin.limits import Severity

EACH = pytest.mark.parametrize("name", CASES)


def capture_of(case: Case, folder: Path, begin: int = 0) -> tuple[bytes, int]:
    """Return the capture from frame `begin` + 1 on, and the stall's time in nanoseconds."""
    header, records = read(case.story().write(folder))
    end_ns = records[-1][0] + round(case.goes_on_s * 1e9)
    return cut(header, records[begin:], end_ns), end_ns - records[case.since - 1][0]


def sides(analysis: tcpwin.Analysis) -> tuple[Direction, Direction, str]:
    """Return the direction that hangs, the other one, and the first one's name."""
    [connection] = analysis.connections
    both = connection.a_to_b, connection.b_to_a
    return (*both, "a_to_b") if connection.a.port == A_PORT else (*both[::-1], "b_to_a")


@EACH
def test_the_judge_says_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    header, records = read(case.story().write(tmp_path))
    judge = Judge()
    for packet in packets(header, records):
        assert packet is not None
        judge.take(packet)
    end_ns = records[-1][0] + round(case.goes_on_s * 1e9)
    [(_, stall)] = judge.stalls(end_ns)
    assert (stall.kind, stall.start_ns) == (case.kind, records[case.since - 1][0])


@EACH
def test_what_stalls_is_named(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    capture, stall_ns = capture_of(case, tmp_path)
    analysis = analyze(capture)
    data, back, way = sides(analysis)
    assert (data.stall_at_end, data.stall_at_end_ns) == (case.kind, stall_ns)
    assert (back.stall_at_end, back.stall_at_end_ns) == (None, 0)
    [connection] = analysis.connections
    items = connection.budget[way].items_ns
    item = "zero_window" if case.kind == "zero_window" else "peer_silent"
    assert items[item] == stall_ns
    assert sum(items.values()) == connection.duration_ns
    for other in ("path", "tail", "timeout", "window_full"):
        assert items[other] == 0
    assert items["application"] <= connection.duration_ns - stall_ns
    series = connection.view(buckets=1 << 12).budget(direction=way)
    assert int(series.spent_ns[item].sum()) == stall_ns


@EACH
def test_the_findings_cost_is_the_stalls_duration(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    capture, stall_ns = capture_of(case, tmp_path)
    findings = analyze(capture).findings
    [finding] = [each for each in findings if each.code == case.rule]
    assert finding.cost_ns == stall_ns
    assert finding.severity >= Severity.WARNING
    assert sum(each.cost_ns for each in findings) == stall_ns


@EACH
@pytest.mark.parametrize("command", [["check"], ["analyze", "--check"], ["analyze", "--check", "--connection", "0"]])
def test_exit_status(name: str, command: list[str], tmp_path: Path) -> None:
    capture, _ = capture_of(CASES[name], tmp_path)
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture)
    assert CliRunner().invoke(cli, [*command, str(path)], standalone_mode=False).return_value == 1


@EACH
def test_a_capture_begun_in_the_stall_lacks_nothing(name: str, tmp_path: Path) -> None:
    """No frame is missing from the capture; judge what is visible for as long as it lasted."""
    case = CASES[name]
    begin = case.since - 1 if case.kind == "zero_window" else case.since
    capture, stall_ns = capture_of(case, tmp_path, begin)
    analysis = analyze(capture)
    data, back, _ = sides(analysis)
    assert [each.missed_bytes for each in (data, back)] == [each.acked_unseen for each in (data, back)] == [0, 0]
    found = {each.code for each in analysis.findings}
    assert not found & {"TW601", "TW605"}
    if not case.blind:
        assert data.stall_at_end == case.kind
        assert 0.9 * stall_ns <= data.stall_at_end_ns <= stall_ns
        assert case.rule in found
        assert "TW604" not in found


def test_a_window_below_a_segment_stalls(tmp_path: Path) -> None:
    """b takes the 44 segments that its window allowed and reads 1,024 bytes: a waits for space for a full segment."""
    story = Story().handshake()
    story.burst("a", 44, spacing=0).wait(0.04)
    acked = story.ack("b", window=8)
    case = Case(lambda: story, "small_window", acked, "TW203", 0.4)
    capture, stall_ns = capture_of(case, tmp_path)
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture)
    analysis = analyze(capture)
    data, back, way = sides(analysis)
    assert (data.stall_at_end, data.stall_at_end_ns, back.stall_at_end) == ("small_window", stall_ns, None)
    [connection] = analysis.connections
    assert connection.budget[way].items_ns["small_window"] == stall_ns
    assert connection.verdict.limit == "receiver_application"
    [finding] = [each for each in analysis.findings if each.code == "TW203"]
    assert finding.cost_ns == stall_ns
    assert CliRunner().invoke(cli, ["check", str(path)], standalone_mode=False).return_value == 1


@pytest.mark.parametrize("name", FREE)
def test_nothing_stalls(name: str, tmp_path: Path) -> None:
    analysis = FREE[name]().analyze(tmp_path)
    assert [each.stall_at_end for each in sides(analysis)[:2]] == [None, None]
    assert not {"TW203", "TW506"} & {each.code for each in analysis.findings}


def test_a_closed_connection_ends_with_its_last_packet(tmp_path: Path) -> None:
    """Other packets of the capture prolong only the stalls, until the next timer has expired."""
    for story, goes_on_s in ((FREE["closed by both sides"](), 0), (CASES["silent peer"].story(), 30.24)):
        header, records = read(story.write(tmp_path))
        last_ns = records[-1][0]
        [connection] = analyze(cut(header, records, last_ns + 3600 * 10**9)).connections
        assert connection.end_ns == last_ns + round(goes_on_s * 10**9)
