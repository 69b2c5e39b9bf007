"""Details of connections by an index equal those from the whole capture: every file is identical."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import WHOLE, name_of
from fastapi.testclient import TestClient
from spread import some_by_day
from web.crafted import analysed, many_connections

from tcpwin import figures
from tcpwin.limits.document import describe_finding, read_finding
from tcpwin.sources import write_headers
from tcpwin_web.jobs import opened
from tcpwin_web.jobs.detail import detail_connections, write_series_of
from tcpwin_web.jobs.drawing import FigureQuery, draw_figure, draw_pair
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.work import FileSet, StoredFile, analyze_file_set
from tcpwin_web.results import layout

PAGE = 4096
MOST = 6
"""Connections compared per capture."""


def stored_case(capture: Path, folder: Path) -> FileSet:
    """A capture as stored by the service after its analysis."""
    stored = folder / "stored"
    with capture.open("rb") as file:
        written = write_headers(file, stored, name=capture.name)
    files = [StoredFile(str(stored), capture.name, "", "capture", written.facts)]
    case = FileSet(capture.name, files, str(folder / "results"))
    analyze_file_set(case, str(folder / "results"), str(folder / "results.new"))
    return case


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_index(case: FileSet, folder: Path) -> FileSet:
    """The same case without an index, so that the whole capture is read."""
    assert case.results is not None
    other = folder / "whole"
    shutil.copytree(case.results, other, ignore=shutil.ignore_patterns(layout.INDEX))
    return replace(case, results=str(other))


@pytest.fixture
def never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if details are read from the whole capture."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the capture was read as a whole")

    monkeypatch.setattr(FileSet, "analyze", refuse)


@pytest.fixture
def lab(tmp_path: Path) -> FileSet:
    return stored_case(next(path for path in WHOLE if path.name.startswith("slow-reader")), tmp_path)


@pytest.mark.parametrize("path", some_by_day(WHOLE, of=16), ids=name_of)
def test_details_are_those_of_the_whole(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    case = stored_case(path, tmp_path)
    assert case.index is not None
    assert case.results is not None
    whole = without_index(case, tmp_path)
    count = len(whole.analyze())
    ids = list(range(count))[:: max(count // MOST, 1)]
    expected, found = tmp_path / "expected", tmp_path / "found"
    for id in ids:
        detail_connections(whole, str(expected), [id])
    spans: dict[int, tuple[int, int]] = {}
    analysis = whole.analyze()
    asked = []
    for id in ids:
        connection = analysis.connections[id]
        third_ns = connection.duration_ns // 3
        spans[id] = (connection.start_ns + third_ns, connection.start_ns + 2 * third_ns + 1)
        asked += [
            FigureQuery(name, id, theme="dark", points=100) for name in ("timeline", *figures.names("connection"))
        ]
        asked.append(FigureQuery("timeline", id, start_ns=spans[id][0], end_ns=spans[id][1]))
    drawn = [draw(whole, expected, each) for each in asked]
    pair = draw_pair(whole, whole, (ids[0], ids[-1]), "window", "a_to_b", "light")
    request.getfixturevalue("never_whole")
    for id in ids:
        detail_connections(case, str(found), [id])
    assert files_of(found) == files_of(expected)
    for id in ids:
        write_series_of(case, str(found), id)
        detailed = files_of(expected / layout.connection(id))
        assert files_of(found / layout.series(id)) == {name: detailed[name] for name in (layout.RUNS, layout.SERIES)}
    assert [draw(case, found, each) for each in asked] == drawn
    assert draw_pair(case, case, (ids[0], ids[-1]), "window", "a_to_b", "light") == pair


def draw(case: FileSet, folder: Path, asked: FigureQuery) -> str:
    try:
        return draw_figure(case, str(folder), asked)
    except JobError as error:
        return str(error)


def test_findings_are_read_as_they_were_described() -> None:
    from tcpwin.limits import Verdicts, analyze

    for path in WHOLE:
        analysis = analyze(path)
        verdicts = Verdicts(analysis, analysis.findings)
        for finding in analysis.findings:
            document = describe_finding(finding, analysis, verdicts.of(finding))
            assert describe_finding(read_finding(document), analysis, verdicts.of(finding)) == document


def test_an_index_that_does_not_fit_is_not_used(lab: FileSet) -> None:
    index = lab.index
    good = index.read_bytes()
    expected = open_connections(lab, [0])._engine.json(0)
    generator = random.Random(7)
    for data in (b"", good[:50], good[: len(good) // 2], good[:-1], good + b"\0", bytes(len(good))):
        index.write_bytes(data)
        assert opened._by_index(lab, [0], 1024) is None
    for _ in range(50):
        changed = bytearray(good)
        changed[generator.randrange(len(good))] ^= 1 << generator.randrange(8)
        index.write_bytes(changed)
        # Wrong hints about blocks to skip cause no harm: the block is read.
        found = opened._by_index(lab, [0], 1024)
        assert found is None or found._engine.json(0) == expected
        # Reading the whole capture restores a valid index.
        if generator.random() < 0.1:
            assert open_connections(lab, [0])._engine.json(0) == expected
            assert index.read_bytes() == good
    assert opened._by_index(lab, [1], 1024) is None
    index.write_bytes(good)
    assert opened._by_index(lab, [7], 1024) is None
    assert index.read_bytes() == good


def test_an_index_of_another_state_of_the_capture_is_not_used(lab: FileSet) -> None:
    stored = Path(lab.files[0].path)
    status = stored.stat()
    os.utime(stored, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert opened._by_index(lab, [0], 1024) is None
    # The status change time cannot be set.
    os.utime(stored, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert opened._by_index(lab, [0], 1024) is None
    open_connections(lab, [0])
    assert opened._by_index(lab, [0], 1024) is not None


def test_series_are_there_before_the_details(make_client: Callable[..., TestClient]) -> None:
    client = make_client()
    data = client.app.state.service.data.path  # type: ignore[attr-defined]
    id = analysed(client, many_connections(20))
    results = data / "results" / id
    prepared = json.loads((results / layout.CAPTURE).read_text())["worst"]
    other = next(each for each in range(20) if each not in prepared)
    place = f"/api/v1/captures/{id}/connections/{other}"
    first = client.get(f"{place}/series/flight").json()
    assert not (results / layout.connection(other)).exists()
    assert client.get(f"{place}/events").status_code == 200
    assert (results / layout.connection(other)).exists()
    assert client.get(f"{place}/series/flight").json() == first
    assert client.get(f"/api/v1/captures/{id}/connections/20/series/flight").status_code == 404


def test_the_index_goes_with_the_capture(make_client: Callable[..., TestClient], capture: bytes) -> None:
    client = make_client()
    data = client.app.state.service.data.path  # type: ignore[attr-defined]
    id = analysed(client, capture)
    assert client.get(f"/api/v1/captures/{id}/connections/0").status_code == 200
    assert (data / "results" / id / layout.INDEX).exists()
    assert client.delete(f"/api/v1/captures/{id}").status_code == 204
    assert not list(data.rglob(layout.INDEX + "*"))


@pytest.mark.parametrize("fits_first", some_by_day([True, False], of=2))
def test_an_index_that_finds_no_room(fits_first: bool, tmp_path: Path, small_disk: Path) -> None:
    """There is space for half of it, or for all of it but not for the results, which come first."""
    capture = tmp_path / "many.pcap"
    capture.write_bytes(many_connections(10_000))
    case = stored_case(capture, tmp_path)
    assert case.results is not None
    sizes = {name: -(-len(data) // PAGE) * PAGE for name, data in files_of(Path(case.results)).items()}
    index_bytes = sizes.pop(layout.INDEX)
    others_bytes = sum(sizes.values())
    spare_bytes = index_bytes - others_bytes // 2 if fits_first else index_bytes // 2
    room_bytes = others_bytes + 8 * PAGE + spare_bytes
    status = os.statvfs(small_disk)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(status.f_bavail * status.f_frsize - room_bytes))
    results = small_disk / "results"
    shown = analyze_file_set(case, str(results), str(small_disk / "results.new"))
    assert shown["connections"] == 10_000
    assert set(files_of(results)) == set(sizes)
    full = replace(case, results=str(results))
    assert open_connections(full, [7])._engine.json(7) == open_connections(case, [7])._engine.json(7)
