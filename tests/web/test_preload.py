"""Workers import everything before they are forked, so that no request waits for imports."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tcpwin_web.jobs import ProcessExecutor
from tcpwin_web.jobs.answers import compare_file_sets, render_report
from tcpwin_web.jobs.detail import detail_connections
from tcpwin_web.jobs.drawing import FigureQuery, draw_figure, draw_pair
from tcpwin_web.jobs.work import FileSet, StoredFile, analyze_file_set


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor]:
    executor = ProcessExecutor(1, memory_bytes=1 << 30, seconds=600)
    yield executor
    executor.shutdown(cancel_futures=True)


@pytest.fixture
def case(tmp_path: Path, capture: bytes) -> FileSet:
    stored = tmp_path / "stored"
    stored.write_bytes(capture)
    (tmp_path / "details" / "0").mkdir(parents=True)
    return FileSet("a capture", [StoredFile(str(stored), "a.pcap", "", "capture")])


def imported_by(function: Callable[..., object], arguments: tuple[Any, ...]) -> set[str]:
    """Return the modules that a call in a worker imports."""
    before = set(sys.modules)
    function(*arguments)
    return set(sys.modules) - before


@pytest.mark.parametrize(
    "function",
    [analyze_file_set, detail_connections, draw_figure, draw_pair, compare_file_sets, render_report],
    ids=lambda function: function.__name__,
)
def test_a_worker_imports_next_to_nothing(
    executor: ProcessExecutor, case: FileSet, tmp_path: Path, function: Callable[..., object]
) -> None:
    arguments: dict[Callable[..., object], list[tuple[Any, ...]]] = {
        analyze_file_set: [(case, str(tmp_path / "results"), str(tmp_path / "new"))],
        detail_connections: [(case, str(tmp_path / "other"), [0])],
        draw_figure: [(case, str(tmp_path), FigureQuery("window", 0)), (case, str(tmp_path), FigureQuery("overview"))],
        draw_pair: [(case, case, (0, 0), "window", "a_to_b", "light")],
        compare_file_sets: [(case, case, 0.1)],
        render_report: [(case, form, 10) for form in ("text", "html", "pdf", "md", "json")],
    }
    for each in arguments[function]:
        found = executor.submit(imported_by, function, each).result()
        # Except for polars' own late imports, whose names change.
        assert {name for name in found if not name.startswith("polars.")} == set()


def test_a_worker_has_nothing_of_the_application(executor: ProcessExecutor) -> None:
    """The application takes three times as long to import as a worker's modules."""
    found = executor.submit(modules).result()
    assert {"polars", "tcpwin_web.jobs.work"} <= found
    assert {name.partition(".")[0] for name in found} & {
        "alembic",
        "fastapi",
        "pydantic",
        "sqlalchemy",
        "uvicorn",
    } == set()
    assert "tcpwin_web._app" not in found


def modules() -> set[str]:
    """Return all modules imported in a worker."""
    return set(sys.modules)
