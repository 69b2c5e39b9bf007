"""Lab captures cut at 40 places each: the reported state agrees with an independent judge."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from analysis.bundled import CAPTURES
from cases import all_cases
from hangs.captures import analyze, cut
from hangs.judge import Place, Way, places, read
from reference import LAB_RUNS

import tcpwin
from tcpwin.limits import Severity

PLACES = 40
CHECKED = 4
"""Places at which the rules are checked too."""
BUNDLED = sorted((CAPTURES / "lab").glob("*.pcap.gz"))
SLACK_NS = 1_000_000


def spread(found: Sequence[Place], most: int) -> list[Place]:
    """Return at most this many of them, evenly spaced, including the first and the last."""
    if len(found) <= most:
        return list(found)
    return [found[place * (len(found) - 1) // (most - 1)] for place in range(most)]


def choose(found: Sequence[Place]) -> list[Place]:
    """Return places, half of them in stalls of each kind if there are enough, the others without a stall."""
    by_kind: dict[str, list[Place]] = {}
    for place in found:
        for kind in {stall.kind for _, stall in place.stalls if place.is_sure}:
            by_kind.setdefault(kind, []).append(place)
    chosen = [place for each in by_kind.values() for place in spread(each, PLACES // 2 // len(by_kind))]
    return chosen + spread([place for place in found if not place.stalls], PLACES - len(chosen))


def stalls_of(analysis: tcpwin.Analysis) -> dict[Way, tuple[str, int]]:
    found = {}
    for connection in analysis.connections:
        ends = [(ipaddress.ip_address(end.address).packed, end.port) for end in (connection.a, connection.b)]
        for data, way in ((connection.a_to_b, ends), (connection.b_to_a, ends[::-1])):
            if data.stall_at_end is not None:
                found[way[0], way[1]] = (data.stall_at_end, data.stall_at_end_ns)
    return found


def cut_everywhere(path: Path) -> Counter[str]:
    """Cut a capture at its places; return how many were in a stall of each kind."""
    header, records = read(path)
    chosen = choose(places(header, records))
    assert len(chosen) == PLACES
    seen: Counter[str] = Counter()
    for number, place in enumerate(chosen):
        analysis = analyze(cut(header, records[: place.packets], place.end_ns))
        judged = stalls_of(analysis)
        true = {way: (stall.kind, stall.duration_ns) for way, stall in place.stalls}
        where = f"{path.name} cut after {place.packets} packets"
        assert {way: kind for way, (kind, _) in judged.items()} == {way: kind for way, (kind, _) in true.items()}, where
        assert all(abs(judged[way][1] - ns) < SLACK_NS for way, (_, ns) in true.items()), where
        seen.update(kind for kind, _ in true.values())
        if number % (PLACES // CHECKED):
            continue
        findings = [each for each in analysis.findings if each.code in ("TW203", "TW506")]
        assert len(findings) == len(judged), where
        assert sorted(each.cost_ns for each in findings) == sorted(ns for _, ns in judged.values()), where
        assert not judged or (analysis.findings.worst or 0) >= Severity.WARNING, where
    return seen


@all_cases("path", BUNDLED, ids=lambda path: path.name, of=6)
def test_cuts_of_a_bundled_capture(path: Path) -> None:
    cut_everywhere(path)


def test_bundled_captures_have_places_in_a_stall() -> None:
    """Without them the test above would prove little."""
    seen = cut_everywhere(CAPTURES / "lab" / "zero-window-stall.pcap.gz")
    assert seen["zero_window"] == PLACES // 2


@pytest.mark.parametrize(
    ("step", "least"), [(8, 10), pytest.param(1, 40, marks=pytest.mark.nightly)], ids=["some", "all"]
)
def test_cuts_of_the_labs_captures_at_both_ends(step: int, least: int) -> None:
    paths = sorted(LAB_RUNS.glob("*/*.pcap.gz"))
    assert len(paths) >= 40
    seen: Counter[str] = Counter()
    # The receiver's captures of some runs, the sender's of others.
    for path in (path for place, path in enumerate(paths) if (place // 2 + place) % step == 0):
        seen += cut_everywhere(path)
    assert seen["zero_window"] >= least
    assert seen["unacknowledged"] >= least


@all_cases("path", BUNDLED, ids=lambda path: path.name, of=6, first=1)
def test_a_capture_begun_anywhere_lacks_nothing(path: Path) -> None:
    """The lab's captures lost no frame: wherever one begins, none is reported missing."""
    header, records = read(path)
    for place in range(12):
        analysis = analyze(cut(header, records[place * len(records) // 12 :]))
        for connection in analysis.connections:
            for data in (connection.a_to_b, connection.b_to_a):
                assert (data.missed_bytes, data.acked_unseen) == (0, 0), place
