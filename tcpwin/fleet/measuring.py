"""Measure many captures into a data set: `tcpwin fleet run`.

In: sources. Out: the data set, and a summary. Captures already present are not read again; changed ones replace their
previous rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tcpwin.analysis import cores
from tcpwin.errors import ArgumentError, need
from tcpwin.fleet.dataset import Writing, writing
from tcpwin.fleet.discovery import discover
from tcpwin.fleet.schema import ON_REQUEST, SCHEMA
from tcpwin.fleet.task import Outcome, Performed, Task

Tell = Callable[[Outcome, int, int], object]
"""Called with each outcome, the number of finished captures, and their total."""


@dataclass(slots=True)
class Done:
    """Summary of a run.

    Attributes:
        captures: captures in the sources; of these `measured` now, `unchanged` since an earlier run.
        failed: unreadable captures with the reason, from this or an earlier run.
        packets, file_bytes, connections, problems: totals of those measured now.
        elapsed_ns: duration of the run.
    """

    dataset: str
    captures: int = 0
    measured: int = 0
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    packets: int = 0
    file_bytes: int = 0
    connections: int = 0
    findings: int = 0
    problems: int = 0
    elapsed_ns: int = 0

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        fields = asdict(self)
        failed = [{"name": name, "error": error} for name, error in fields.pop("failed").items()]
        return {"schema": SCHEMA, **fields, "failed": failed}


def run(
    sources: Iterable[str],
    dataset: str | os.PathLike[str],
    *,
    site: str | None = None,
    also: Sequence[str] = (),
    workers: int | None = None,
    scheduler: str | None = None,
    again: bool = False,
    tell: Tell | None = None,
) -> Done:
    """Measure every capture of the sources that is missing from the data set or has changed.

    Args:
        sources: paths and patterns, as for `discover`.
        site: site of captures whose source names none.
        also: optional tables: events, series.
        workers: processes; by default one per CPU.
        scheduler: address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers measure them in place of processes.
        again: also repeat finished ones.
        tell: called when captures are finished.

    Raises:
        SourceError: a source has no capture; the data set is of another version.
        OutputError: the data set cannot be written, or the packages that write it are not installed.
        ArgumentError: unknown table.
    """
    if unknown := set(also) - set(ON_REQUEST):
        raise ArgumentError(f"unknown table {min(unknown)}; available: {', '.join(ON_REQUEST)}")
    need("fleet", "pyarrow", extra="fleet")
    begun_ns = time.monotonic_ns()
    done = Done(os.fspath(dataset))
    found = list(discover(sources, site))
    with writing(dataset, also) as target:
        tasks = list(_left(found, target, also, again, done))
        for performed in _performed(tasks, str(target.folder.resolve()), also, workers, scheduler):
            target.take(performed)
            for outcome in performed.outcomes:
                _count(outcome, done)
                if tell is not None:
                    tell(outcome, done.measured, len(tasks))
    done.elapsed_ns = time.monotonic_ns() - begun_ns
    return done


def _performed(
    tasks: Sequence[Task], folder: str, also: Sequence[str], workers: int | None, scheduler: str | None
) -> Iterator[Performed]:
    if not tasks:
        return iter(())
    if scheduler is None:
        from tcpwin.fleet.local import perform_here

        return perform_here(tasks, folder, also, workers or cores())
    need("fleet", "distributed", extra="fleet")
    from tcpwin.fleet.cluster import perform_on

    return perform_on(scheduler, tasks, folder, also)


def _left(tasks: Iterable[Task], target: Writing, also: Sequence[str], again: bool, done: Done) -> Iterator[Task]:
    """Return the unfinished tasks."""
    for task in tasks:
        done.captures += 1
        if again or not target.is_done(task.key, task.state(also)):
            yield task
            continue
        done.unchanged += 1
        if (error := target.entries[task.key].error) is not None:
            done.failed[task.name] = error


def _count(outcome: Outcome, done: Done) -> None:
    done.measured += 1
    done.packets += outcome.packets
    done.file_bytes += outcome.file_bytes
    done.connections += outcome.rows.get("connections", 0)
    done.findings += outcome.rows.get("findings", 0)
    done.problems += outcome.problems
    if outcome.error is not None:
        done.failed[outcome.name] = outcome.error
