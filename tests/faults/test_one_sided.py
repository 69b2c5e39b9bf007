"""Worse captures of the same traffic describe nothing that they do not hold: no sentence, no cost, no rank.

Each small capture is cut to either direction, thinned to a half, joined with another, and snapped with false lengths.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.cut import Record, records, snapped, thinned, write
from reference import ROOT
from spread import some_by_day
from stories.boxes import exchange, outage

import tcpwin
from tcpwin.limits import Severity

FILES = [path for name in ("lab", "wild") for path in sorted((ROOT / "captures" / name).glob("*.pcap*"))]
SOURCES = [*(path for path in FILES if records(path)[1]), "exchange", "outage"]
WAYS = ("a_to_b", "b_to_a")


def source(name: Path | str) -> tuple[bytes, list[Record]]:
    """Return the packets of a capture, or of a story over IPv6."""
    if isinstance(name, Path):
        return records(name)
    story = exchange() if name == "exchange" else outage(near="b", sender="b")
    story.lines.insert(0, "ip 6")
    with tempfile.TemporaryDirectory() as folder:
        return records(story.write(Path(folder)))


def sure(analysis: tcpwin.Analysis) -> Iterator[str]:
    """Yield what is said about connections as more than possible, with a cost or an owner."""
    for connection in analysis.connections:
        verdict = connection.verdict
        if verdict.confidence != "possible" and (verdict.owner != "nobody" or verdict.cost_ns or verdict.is_problem):
            yield verdict.text
    for each in analysis.findings:
        if each.connection is not None and each.confidence != "possible" and each.severity >= Severity.WARNING:
            yield each.text


@pytest.mark.parametrize("name", some_by_day(SOURCES, of=4))
@pytest.mark.parametrize("is_upward", [True, False])
def test_one_direction(name: Path | str, *, is_upward: bool, tmp_path: Path) -> None:
    header, packets = source(name)
    own = [each for each in packets if each.is_upward == is_upward]
    assert not list(sure(tcpwin.analyze(write(tmp_path / "own.pcap", header, own))))


@pytest.mark.parametrize("name", some_by_day(SOURCES, of=4, first=1))
def test_every_other_packet(name: Path | str, tmp_path: Path) -> None:
    """The sender's repetitions, its data and all times can only become less; nothing is certain but what was read."""
    header, packets = source(name)
    whole = tcpwin.analyze(write(tmp_path / "whole.pcap", header, packets))
    half = tcpwin.analyze(write(tmp_path / "half.pcap", header, thinned(packets, 0.5)))
    known = {frozenset((each.a, each.b)): each for each in whole.connections}
    for connection in half.connections:
        true = known[frozenset((connection.a, connection.b))]
        verdict = connection.verdict
        # Without its last ACK, a connection lasts until the capture's end, in a silence that nothing contradicts.
        if verdict.limit != "peer_silent":
            assert verdict.cost_ns <= true.duration_ns or verdict.confidence == "possible"
        for way in WAYS:
            sender = getattr(connection, way[0])
            data = next(getattr(connection, way) for way in WAYS if getattr(connection, way[0]) == sender)
            full = next(getattr(true, way) for way in WAYS if getattr(true, way[0]) == sender)
            assert data.payload_bytes <= full.payload_bytes
            assert data.retransmissions <= full.retransmissions, way
            assert data.zero_window_ns <= 1.2 * full.zero_window_ns
        if verdict.limit != true.verdict.limit and verdict.is_problem:
            assert verdict.confidence != "certain", verdict.text


@pytest.mark.parametrize("place", some_by_day(range(len(SOURCES)), of=4, first=2))
def test_joined_with_another(place: int, tmp_path: Path) -> None:
    """What comes days later, on other connections, changes nothing."""
    names = SOURCES[place], SOURCES[(place + 1) % len(SOURCES)]
    parts = [tcpwin.analyze(write(tmp_path / f"{n}.pcap", *source(name))) for n, name in enumerate(names)]
    joined = tcpwin.analyze([tmp_path / "0.pcap", tmp_path / "1.pcap"])

    def said(analysis: tcpwin.Analysis) -> list[tuple[object, ...]]:
        rows = []
        for each in analysis.connections:
            verdict = each.verdict
            found = sorted(one.code for one in analysis.findings.of(each.id))
            rows.append((each.start_ns, each.duration_ns, verdict.text, verdict.cost_ns, verdict.when_text, found))
        return sorted(rows)

    ends = [{frozenset((each.a, each.b)) for each in part.connections} for part in parts]
    if not ends[0] & ends[1]:
        assert said(joined) == sorted([*said(parts[0]), *said(parts[1])])


@pytest.mark.parametrize("name", some_by_day(SOURCES, of=4, first=3))
def test_snapped_with_false_lengths(name: Path | str, tmp_path: Path) -> None:
    """Of packets that end within the snap, only the link's padding is unknown; IP's length says the rest."""
    header, packets = source(name)
    true = tcpwin.analyze(write(tmp_path / "true.pcap", header, packets))
    told = tcpwin.analyze(write(tmp_path / "told.pcap", header, snapped(packets, 96)))
    for one, other in zip(told.connections, true.connections, strict=True):
        for way in WAYS:
            mine, full = getattr(one, way), getattr(other, way)
            assert (mine.payload_bytes, mine.missed_bytes) == (full.payload_bytes, full.missed_bytes)
        assert one.verdict.text == other.verdict.text
