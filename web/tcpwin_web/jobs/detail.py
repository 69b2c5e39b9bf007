"""Write the details of single connections of a stored capture into files that requests read.

Runs in worker processes. Readers see all files of a connection or none.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tcpwin import figures
from tcpwin.analysis import DIRECTIONS, EVENT_FIELDS, View
from tcpwin.figures import SKETCH_BUCKETS, draw_life, draw_sketch
from tcpwin.hosts import describe_joined
from tcpwin.limits import Analysis, Connection, algorithms_of, describe_algorithms, plain, role_of
from tcpwin.reference import compare, describe_comparison
from tcpwin.render import full_verdict, overview
from tcpwin.units import count_text
from tcpwin_web.jobs.drawing import OVERVIEW, TIMELINE, store_figures
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.work import FileSet
from tcpwin_web.results import columns, layout, queries

BUCKETS = 1 << 16
"""Buckets of a stored series: a connection with fewer segments keeps every sample at any zoom."""
MOST_ROWS = 4_000_000
"""Maximum number of segments for a stored table."""
SKETCHED = 100
"""Connections sketched together with the capture: the first page of its table."""
REFERENCE_PREFIX = "reference-"
_OF_THE_LAB = "reference-runs"
"""Name prefix of figures that compare a connection with a reference on shared axes."""


def is_compared(figure: str, comparison: Mapping[str, Any]) -> bool:
    """Whether a figure shows a run that the comparison found."""
    if figure == _OF_THE_LAB:
        return bool(comparison["lab"] and comparison["lab"]["found"])
    return figure.startswith(REFERENCE_PREFIX) and bool(comparison["nearest"])


def prepare_capture(file_set: FileSet, folder: str, ids: Sequence[int]) -> None:
    """Write what people open first: the figure of all connections, and these connections."""
    analysis = file_set.analyze()
    if len(analysis) > 1:
        store_figures(analysis, [OVERVIEW], Path(folder))
    _detail(analysis, Path(folder), ids)
    first = queries.list_connections(Path(folder), limit=SKETCHED, columns=["id"]).rows
    _store_sketches(sketched(analysis, first.get_column("id").to_list()), Path(folder))


def sketch_connections(file_set: FileSet, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return windows and flights of connections that were not sketched with the capture."""
    return sketched(open_connections(file_set, ids), ids)


def sketched(analysis: Analysis, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return sketches by connection number, of the direction of the verdict."""
    known = [id for id in ids if id < len(analysis)]
    views = analysis.views(known, buckets=SKETCH_BUCKETS)
    return {
        id: plain(draw_sketch(view, analysis.connections[id].verdict.direction or "a_to_b"))
        for id, view in zip(known, views, strict=True)
    }


def _store_sketches(found: dict[int, dict[str, Any]], folder: Path) -> None:
    new = folder / f"{layout.SKETCHES}.{os.getpid()}"
    new.write_text(json.dumps(found))
    new.replace(folder / layout.SKETCHES)


def detail_connections(file_set: FileSet, folder: str, ids: Sequence[int]) -> None:
    """Write all details of these connections, from their packets."""
    _detail(open_connections(file_set, ids), Path(folder), ids)


def write_series_of(file_set: FileSet, folder: str, id: int) -> None:
    """Write only the series of a connection, without figures and segment table."""
    analysis = open_connections(file_set, [id], buckets=BUCKETS)
    with _written(Path(folder) / layout.series(id)) as new:
        columns.write_series(_views(analysis, [id])[0], new)


def _detail(analysis: Analysis, place: Path, ids: Sequence[int]) -> None:
    for id, view in zip(ids, _views(analysis, ids), strict=True):
        with _written(place / layout.connection(id)) as new:
            _write(analysis.connections[id], view, new)


def _views(analysis: Analysis, ids: Sequence[int]) -> Sequence[View]:
    for id in ids:
        if not 0 <= id < len(analysis):
            raise JobError(f"the capture has {count_text(len(analysis), 'connection')}, numbered from 0")
    analysis.follow(ids)
    return analysis.views(ids, buckets=BUCKETS)


@contextlib.contextmanager
def _written(final: Path) -> Iterator[Path]:
    """Yield a folder to write into, which is then moved into place as a whole."""
    new = final.with_name(f"{final.name}.{os.getpid()}")
    # Left by a process that was killed and had the same id.
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    yield new
    try:
        new.replace(final)
    except OSError:
        # Another worker was faster; its files are the same.
        shutil.rmtree(new, ignore_errors=True)


def _write(connection: Connection, view: View, folder: Path) -> None:
    columns.write_series(view, folder)
    verdict = connection.verdict
    budget = {
        name: {"items_ns": dict(each.items_ns), "kernel": plain(each.kernel) if each.kernel else None}
        for name, each in connection.budget.items()
    }
    snapshots = [plain(describe_joined(each)) for each in connection.snapshots]
    document = {
        **connection.to_dict(),
        "roles": {side: role_of(connection, side) for side in ("a", "b")},
        "verdict": plain(full_verdict(verdict)),
        "budget": budget,
        "algorithm": describe_algorithms(algorithms_of(connection)),
        "stalls": [plain(stall) for stall in view.stalls],
        "percentiles": {
            side: {name: plain(view.percentiles(name, direction=side)) for name in ("receive_window", "flight", "pipe")}
            for side in DIRECTIONS
        },
        "round_trips": {side: plain(view.round_trips(direction=side)) for side in DIRECTIONS},
        "comparison": describe_comparison(compare(connection, verdict=verdict)),
        "snapshot_count": len(snapshots),
    }
    (folder / layout.CONNECTION).write_text(json.dumps(document))
    (folder / layout.VIEW).write_text(json.dumps(plain(overview(connection))))
    (folder / layout.SNAPSHOTS).write_text(json.dumps(snapshots))
    (folder / layout.LIFE).write_text(json.dumps({side: plain(draw_life(view, side)) for side in DIRECTIONS}))
    events = [{name: getattr(event, name) for name in EVENT_FIELDS} for event in view.events]
    (folder / layout.EVENTS).write_text(json.dumps(events))
    if connection.a_to_b.segments + connection.b_to_a.segments <= MOST_ROWS:
        columns.write_segments(connection, folder)
    kinds = [figures.get(name) for name in figures.names("connection")]
    alone = [kind.name for kind in kinds if not kind.has_time_axis]
    beside = [kind.name for kind in kinds if is_compared(kind.name, document["comparison"])]
    store_figures(connection, [TIMELINE, *alone, *beside], folder)
