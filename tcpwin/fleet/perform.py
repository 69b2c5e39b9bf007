"""Measure captures, and write their rows into the staging folder of a data set.

In: a group of tasks. Out: their outcomes. A problem with a capture becomes a row; a problem with the data set is
raised.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpwin.errors import OutputError, TcpwinError
from tcpwin.fleet.columns import Rows
from tcpwin.fleet.rows import day_of, rows_of
from tcpwin.fleet.staging import Staged
from tcpwin.fleet.task import Outcome, Performed, Task

if TYPE_CHECKING:
    from tcpwin.limits import Analysis

CAPTURE_COLUMNS = (
    *("packets", "segments", "not_tcp", "unread", "malformed", "first_time_ns", "last_time_ns", "duration_ns"),
    *("interface_drops", "packets_snapped", "missed_bytes", "capture_duplicates", "connections_without_syn"),
    *("connections_one_way", "connections_sampled"),
)
"""Attributes of `Capture` with a column of the same name."""


def perform(
    tasks: Sequence[Task], folder: str, also: Sequence[str] = (), failure: str | None = None, threads: int = 1
) -> Performed:
    """Measure captures whose rows share files.

    Args:
        tasks: tasks of one site.
        folder: the data set's folder, which must be visible on the machine that runs this.
        also: optional tables.
        failure: why no process could finish them; nothing is read then.
        threads: threads that share a large capture's connections.

    Raises:
        OutputError: the rows cannot be written.
    """
    staged = Staged(tasks, Path(folder), also)
    try:
        return staged.finish([_perform(task, staged, also, failure, threads) for task in tasks])
    except BaseException:
        staged.discard()
        raise


def _perform(task: Task, staged: Staged, also: Sequence[str], failure: str | None, threads: int) -> Outcome:
    begun_ns = time.monotonic_ns()
    values: dict[str, Any] = {"files": len(task.files), "snapshots": len(task.snapshots)}
    values["file_bytes"] = sum(each.size_bytes for each in task.files)
    is_passing = failure is not None
    try:
        if failure or task.failure:
            raise TcpwinError(failure or task.failure)
        with _measured(task, threads) as analysis:
            for table, day, rows in rows_of(analysis, task.key, also):
                staged.add(table, day, rows)
            values |= _describe(analysis)
    except OutputError:
        raise
    except (TcpwinError, OSError, MemoryError) as error:
        staged.drop()
        is_passing = is_passing or not isinstance(error, TcpwinError)
        values["error"] = str(error) or "there is not enough memory to read it"
    values |= {"capture": task.key, "name": task.name, "tcpwin_version": _version()}
    values["read_ns"] = time.monotonic_ns() - begun_ns
    staged.add("captures", day_of(values.get("first_time_ns")), Rows(1, values))
    counts, paths = staged.keep()
    return Outcome(
        key=task.key,
        state=task.state(also),
        name=task.name,
        site=task.site,
        rows=counts,
        paths=paths,
        packets=values.get("packets", 0),
        file_bytes=values["file_bytes"],
        problems=values.get("problems", 0),
        error=values.get("error"),
        is_passing=is_passing,
        warnings=tuple(values.get("warnings", ())),
        replaces=task.replaces,
    )


@cache
def _version() -> str:
    return version("tcpwin")


@contextmanager
def _measured(task: Task, threads: int) -> Iterator[Analysis]:
    """Yield a task's analysis; its temporary copies last as long as the `with` statement."""
    from tcpwin.fleet.objects import fetched
    from tcpwin.limits import analyze
    from tcpwin.sources import is_address

    how: dict[str, Any] = {"events": task.is_small, "threads": threads if task.is_large else 1}
    if task.member is not None:
        yield analyze(task.files[0].path, capture=task.member, **how)
        return
    if any(is_address(each.path) for each in task.files):
        with fetched(task) as (paths, beside):
            yield analyze(paths, snapshots=beside, **how)
        return
    snapshots = [(each.label, each.path) if each.label else each.path for each in task.snapshots]
    yield analyze([each.path for each in task.files], snapshots=snapshots, **how)


def _describe(analysis: Analysis) -> dict[str, Any]:
    """Return the columns of a readable capture."""
    capture = analysis.capture
    worst = analysis.worst(1)
    return {
        **{name: getattr(capture, name) for name in CAPTURE_COLUMNS},
        "warnings": [*map(str, capture.warnings), *analysis.notes, *analysis.findings.failed],
        "hosts": [host.label for host in analysis.hosts],
        "kernels": ["" if host.kernel is None else host.kernel.release for host in analysis.hosts],
        "connections": len(analysis),
        "problems": len(analysis.problems),
        "findings": len(analysis.findings),
        "worst_connection": worst[0].id if worst else None,
        "summary": analysis.summary.text,
    }
