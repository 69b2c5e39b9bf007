"""The loads of `serve.py` against a real service with captures of a few kilobytes; arithmetic by hand."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import browser, crowd, loads, tools
from bench.report import render_rows
from bench.served import Served, ServiceError, serve
from reference import ROOT
from web.crafted import many_connections

# They show faults of the benchmark, not of the product.
pytestmark = pytest.mark.nightly

TCPWIN = shlex.split(tools.own_tcpwin())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(TCPWIN, tmp_path_factory.mktemp("served"), TCPWIN_WORKERS="2") as running:
        yield running


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.pcap"
    file.write_bytes(many_connections(10))
    return file


def test_a_percentile_is_the_nearest_rank() -> None:
    values = [float(number) for number in range(20, 0, -1)]
    assert [loads.percentile(values, share) for share in (0.05, 0.5, 0.95, 1.0)] == [1, 10, 19, 20]
    assert loads.percentile([7.0], 0.95) == 7


def test_this_pythons_command_is_measured_whatever_the_path() -> None:
    done = subprocess.run([*TCPWIN, "--version"], env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tcpwin ")


def test_the_first_page_is_compared_with_a_bare_upload_and_the_command(
    served: Served, small: Path, tmp_path: Path
) -> None:
    wall, own, cpu = loads.first_page(served, TCPWIN, small, tmp_path, 2)
    assert (len(wall.values), wall.must, own.must, cpu.must) == (2, 1.5, None, None)
    assert min(*wall.values, *own.values) > 0
    assert (tmp_path / "sunk").read_bytes() == small.read_bytes()


def test_connections_are_timed_in_a_browser(served: Served) -> None:
    short = ROOT / "captures" / "wild" / "many-short.pcap.gz"
    paint, task, zoom, *first = browser.connections(served, short, 3)
    assert [row.must for row in (paint, task, zoom)] == [1000, 200, 300]
    assert min(paint.value, zoom.value, *(row.value for row in first)) > 0


def test_pages_and_series_are_timed_by_the_services_own_clock(served: Served, small: Path) -> None:
    first, *_ = loads.pages(served, small, 3, 1)
    assert (first.must, f"of {len(loads.PAGES)} with 3 captures stored" in first.name) == (50, True)
    *_, cpu = loads.pages(served, small, 1, 1)[:3]
    assert cpu.values[0] > 0
    of_each = loads.pages(served, small, 2, 1)[3:]
    assert sorted(row.name.split("`")[1] for row in of_each) == sorted(loads.PAGES)
    assert {row.must for row in of_each} == {150}
    assert [row.value for row in of_each] == sorted((row.value for row in of_each), reverse=True)
    assert of_each[-1].value > 0
    span, unopened, _, opened, *more = loads.series(served, small, 2)
    assert (span.must, unopened.must, len(opened.values)) == (150, 150, 2)
    assert min(each.value for each in (span, unopened, opened, *more)) > 0


def test_uploads_at_once_are_different_files_and_all_arrive(served: Served, small: Path, tmp_path: Path) -> None:
    errors, peak = loads.uploads_at_once(served, small, tmp_path, 4, 1000)
    assert (errors.value, errors.holds) == (0, True)
    assert peak.values[0] > 0
    parts = {file.read_bytes() for file in tmp_path.glob("part-*.pcap")}
    assert len(parts) == 4
    assert "| 4 uploads of 0.001 MB at once: errors | 0 | 0 – 0 | ≤ 0 | – | yes |" in render_rows(
        [errors], as_markdown=True
    )


def test_who_comes_at_once_with_attackers_is_served(served: Served, small: Path, tmp_path: Path) -> None:
    page, errors, free, *_ = crowd.attacked(served, small, tmp_path, 1000, crowd.Crowd(6, 8, 5, 4))
    assert (page.must, errors.must, free.must) == (1000, 0, 5)
    assert errors.value == 0
    assert page.value > 0


def test_a_refused_upload_is_an_error_and_no_number(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "nonsense.pcap"
    file.write_bytes(b"nonsense")
    with pytest.raises(ServiceError, match="422"):
        served.upload(file)
