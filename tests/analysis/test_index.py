"""Connections read through an index equal those read from the whole capture, in every value."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ladder
import numpy as np
import pytest
from analysis.bundled import BROKEN, WHOLE, name_of, plain_bytes
from craft.odd import block, enhanced, odd_capture
from reference import REFERENCE_CAPTURES
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import raw
from spread import some_by_day

import tcpwin
from tcpwin import _engine
from tcpwin.errors import TcpwinError
from tcpwin.sources import write_headers

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.ladder"))
ALONE = 12
"""Connections of a capture that are read individually; all are read together."""
COMPARED = 100
"""Number of connections compared."""
MOST_ROWS = 300
SCALARS = {int, float, str, bool, type(None)}
SHARES = [0.0, 0.05, 0.5, 0.95, 1.0]


def plain(value: Any) -> Any:
    """Convert arrays and their containers to comparable values."""
    if type(value) is np.ndarray and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [each if type(each) in SCALARS else plain(each) for each in value]
    return value


def told_by_details(details: _engine.Details, id: int) -> dict[str, Any]:
    """Return everything that a second reading measures of a connection."""
    told: dict[str, Any] = {
        "events": details.events(id),
        "event_columns": details.event_columns(id),
        "stalls": details.stalls(id),
        "stall_columns": details.stall_columns(id),
        "rows": details.rows(id),
    }
    for side in (True, False):
        told |= {(side, name): details.series(id, side, name) for name in _engine.SERIES_NAMES}
        told |= {
            (side, name, "shares"): details.percentiles(id, side, name, SHARES)
            for name in ("receive_window", "flight", "pipe")
        }
        told[side, "round_trips"] = details.round_trips(id, side, SHARES)
        told[side, "budget"] = details.budget(id, side)
    return plain(told)


def told_by_result(result: _engine.Result, id: int) -> dict[str, Any]:
    """Return everything that a first reading measures of a connection."""
    first = result.first_events(id, None, [], [])
    told: dict[str, Any] = {
        "json": result.json(id),
        "fields": result.connection(id),
        "began": result.began_with_initiator(id),
        "reset_frame": result.reset_frame(id),
        "first_events": [first.values(place) for place in range(len(first))],
    }
    for side in (True, False):
        told[side] = (
            result.direction(id, side),
            result.episodes(id, side),
            result.pauses(id, side),
            result.idle_frames(id, side),
            result.scale_evidence(id, side),
        )
    return told


def check(capture: Path, index: Path) -> int:
    """Compare reading by an index with reading the whole capture; return the number of connections."""
    source = [str(capture)]
    whole = _engine.analyze(source)
    count = len(whole)
    indexed = _engine.analyze(source, index=index)
    assert [indexed.json(id) for id in range(count)] == [whole.json(id) for id in range(count)]
    assert index.exists()
    facts, counters = whole.facts(), whole.counters()
    few = list(range(count))[:: max(count // ALONE, 1)]
    # All connections (looked up in a bitmap), a few (compared one by one), and each one alone.
    for group in [set(range(count)), set(few[:3]), *({id} for id in few)]:
        opened = _engine.reopen(source, index, group, facts=facts, counters=counters, rows=MOST_ROWS)
        assert (len(opened), opened.facts(), opened.counters()) == (count, facts, counters)
        compared = sorted(group)[:: max(len(group) // COMPARED, 1)]
        for id in compared:
            assert told_by_result(opened, id) == told_by_result(whole, id)
        for span in spans_of(whole, few[len(few) // 2]) if len(group) > 1 else [{}]:
            expected = whole.follow(source, group, rows=MOST_ROWS, **span)
            readings = [
                whole.follow(source, group, rows=MOST_ROWS, index=str(index), **span),
                opened.follow(source, group, rows=MOST_ROWS, index=str(index), **span),
                opened.follow(source, group, rows=MOST_ROWS, **span),
                *([] if span else [opened.details()]),
            ]
            for id in compared:
                told = told_by_details(expected, id)
                for details in readings:
                    assert details.is_same
                    assert told_by_details(details, id) == told
    for id in few:
        (rows, _), (found, is_same) = whole.segments(source, id), whole.segments(source, id, index=str(index))
        assert is_same
        assert plain(found) == plain(rows)
    return count


def spans_of(whole: _engine.Result, id: int) -> Iterable[dict[str, int]]:
    """Return the whole span of a connection, and its middle."""
    fields = whole.connection(id)
    third_ns = fields["duration_ns"] // 3
    return ({}, {"start_ns": fields["start_ns"] + third_ns, "end_ns": fields["end_ns"] - third_ns, "buckets": 8})


def as_stored(capture: Path, folder: Path) -> Path:
    """Return the capture as the service stores it: headers, in pcapng."""
    stored = folder / "stored"
    with capture.open("rb") as file:
        write_headers(file, stored)
    return stored


def is_plain(analysis: tcpwin.Analysis, stored: Path) -> bool:
    """Return whether an index is possible: one uncompressed file with one section, in which all packets have times."""
    [facts] = analysis.capture.files
    if facts.compression:
        return False
    return facts.format != "pcapng" or stored.read_bytes().count(bytes.fromhex("0a0d0d0a")) == 1


@pytest.mark.parametrize("path", [*some_by_day(BROKEN, of=6), *some_by_day(WHOLE, of=12, first=1)], ids=name_of)
def test_bundled_captures(path: Path, tmp_path: Path, tool: Any) -> None:
    stored = as_stored(path, tmp_path)
    if len(tcpwin.analyze(stored)):
        check(stored, tmp_path / "stored.index")
    raw = tmp_path / "raw"
    raw.write_bytes(plain_bytes(path, tool) if path in WHOLE else path.read_bytes())
    analysis = tcpwin.analyze(raw)
    if len(analysis) and is_plain(analysis, raw):
        check(raw, tmp_path / "raw.index")


@pytest.mark.parametrize("part", some_by_day(range(8), of=8))
def test_ladders(part: int, tmp_path: Path) -> None:
    for number, path in enumerate(SCENARIOS[part::8]):
        capture = tmp_path / f"{number}.pcap"
        ladder.parse(path.read_text(encoding="utf8"), path.stem).write_pcap(capture)
        assert check(capture, tmp_path / f"{number}.index") > 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_odd_captures(seed: int, tmp_path: Path) -> None:
    capture = tmp_path / "odd.pcapng"
    capture.write_bytes(odd_capture(seed))
    analysis = tcpwin.analyze(capture)
    quality = analysis.capture
    assert quality.files[0].packets_skipped > 50
    assert quality.fragments_pending > 50
    assert quality.datagrams_incomplete > 0
    assert quality.capture_duplicates > 20
    assert max(connection.epoch for connection in analysis) > 3
    assert check(capture, tmp_path / "odd.index") > 20
    check(as_stored(capture, tmp_path), tmp_path / "stored.index")


@pytest.mark.parametrize(
    "kind", some_by_day(["two sections", "no time", "gzip", "two files", "absent folder", "few segments"], of=3)
)
def test_captures_without_an_index_are_read_as_a_whole(kind: str, tmp_path: Path) -> None:
    data = odd_capture(0)
    if kind == "two sections":
        data += data
    elif kind == "no time":
        packet = raw(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=7, dport=8))
        data += block(3, struct.pack("<I", len(packet)) + packet + bytes(-len(packet) % 4))
    elif kind == "gzip":
        data = gzip.compress(data)
    elif kind == "few segments":
        datagram = enhanced(0, 0, raw(Ether() / IP(src="10.0.0.9", dst="10.0.0.8") / UDP(sport=5, dport=6)))
        data += datagram * 300_000
    paths = [tmp_path / name for name in ("one", "two")[: 1 + (kind == "two files")]]
    for path in paths:
        path.write_bytes(data)
    index = tmp_path / ("absent/index" if kind == "absent folder" else "index")
    analysis = tcpwin.analyze(paths, index=index)
    assert not index.exists()
    assert [path for path in tmp_path.rglob("*") if path not in paths] == []
    whole = tcpwin.analyze(paths)
    for id in (0, len(whole) - 1):
        found, expected = analysis.connections[id], whole.connections[id]
        assert told_by_details(found.view()._details, id) == told_by_details(expected.view()._details, id)
        assert found.segments().to_polars().equals(expected.segments().to_polars())


REFERENCE = sorted(path for path in (REFERENCE_CAPTURES / "real").rglob("*") if path.is_file())


@pytest.mark.usefixtures("reference_captures")
@pytest.mark.parametrize("part", some_by_day(range(6), of=6))
def test_reference_captures(part: int, tmp_path: Path) -> None:
    checked = 0
    for number, path in enumerate(REFERENCE[part::6]):
        place = tmp_path / str(number)
        place.mkdir()
        try:
            stored = as_stored(path, place)
        except TcpwinError:
            continue
        if len(tcpwin.analyze(stored)):
            checked += check(stored, place / "stored.index")
        analysis = tcpwin.analyze(path)
        if len(analysis) and is_plain(analysis, path):
            check(path, place / "raw.index")
    assert checked
