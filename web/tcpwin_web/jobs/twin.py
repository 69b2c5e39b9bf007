"""Try a change of a stored connection on a twin in the lab's kernel, as `tcpwin whatif --twin` does.

Runs in worker processes. Its needs of time and memory are checked before it starts.
A run ends when a file `CANCELLED` appears in its folder.
"""

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.lab import Scenario, check_kernel, run_needs, series_like
from tcpwin.lab.twin import describe_twin, run_twin, twin_scenarios
from tcpwin.limits import Connection
from tcpwin.paths import ChangeError, Changes, WhatIfError, fit_path, read_changes, whatif
from tcpwin.units import bytes_text, time_text
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.whatif import WhatIfQuery
from tcpwin_web.jobs.work import FileSet

PROGRESS, CANCELLED, RUNS = "progress.json", "cancelled", "runs"
PROGRESS_SECONDS = 0.2
NAME = "capture"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a twin: seconds of processor time, and memory of the hosts in its kernel."""

    seconds: float
    memory_bytes: int


def try_twin(
    file_set: FileSet, connection: int, query: WhatIfQuery, kernel: str, folder: str, limits: Limits
) -> dict[str, Any]:
    """Run the twin and the changed twin, writing progress to their folder.

    `kernel` names a Linux of the lab; empty: the one that accounts receive memory as the receiver's does.

    Raises:
        JobError: the change is invalid, no run resembles the connection, no kernel is built, or a limit is exceeded.
    """
    ends_at = time.monotonic() + limits.seconds
    analysis = open_connections(file_set, [connection])
    chosen = analysis.connections[connection]
    series = kernel or series_like(chosen)
    check_kernel(series)
    changes = _changes(chosen, query)
    scenarios = twin_scenarios(analysis, chosen, changes, name=NAME, series=series)
    _check_needs(scenarios, limits)
    place = Path(folder)
    expected_ns = [float(chosen.duration_ns), _predicted_ns(chosen, query)][: len(scenarios)]
    names = [each.name for each in scenarios]
    written_at = 0.0

    def tick(name: str, elapsed_ns: int) -> None:
        nonlocal written_at
        if (place / CANCELLED).exists():
            raise JobError("it was cancelled")
        now = time.monotonic()
        if now > ends_at:
            raise JobError(f"it took longer than the {limits.seconds:g} s that this service allows")
        if now - written_at < PROGRESS_SECONDS:
            return
        written_at = now
        number = names.index(name)
        share = (number + min(elapsed_ns / max(expected_ns[number], 1), 1.0)) / len(names)
        _write_progress(
            place, {"run": number + 1, "runs": len(names), "elapsed_ns": elapsed_ns, "share": round(share, 4)}
        )

    try:
        twin = run_twin(analysis, chosen, changes, place / RUNS, name=NAME, series=series, tick=tick)
    finally:
        shutil.rmtree(place / RUNS, ignore_errors=True)
    # Paths of bundles concern only the server.
    document = json.loads(json.dumps(describe_twin(twin)))
    for run in filter(None, (document["as_it_was"], document["changed"])):
        del run["bundle"]
    return {**document, "rows": [[name, *cells] for name, cells in twin.rows]}


def _changes(connection: Connection, query: WhatIfQuery) -> Changes:
    path = fit_path(connection)
    if path is None:
        raise JobError("the connection carried no data")
    try:
        return read_changes(
            path,
            query.settings,
            lift=query.lift,
            loss_share=query.loss_share,
            round_trip_ns=query.round_trip_ns,
            rate_bps=query.rate_bps,
        )
    except ChangeError as error:
        raise JobError(str(error)) from None


def _check_needs(scenarios: Sequence[Scenario], limits: Limits) -> None:
    """Refuse a run that would exceed the limits."""
    needs = run_needs((each, "stock") for each in scenarios)
    if needs.memory_bytes > limits.memory_bytes:
        raise JobError(
            f"its hosts need {bytes_text(needs.memory_bytes)} of memory, and this service allows "
            f"{bytes_text(limits.memory_bytes)} (TCPWIN_JOB_MEMORY_BYTES)"
        )
    if needs.processor_s > limits.seconds:
        raise JobError(
            f"it would take about {time_text(needs.processor_s * 1e9)}, and this service allows "
            f"{time_text(limits.seconds * 1e9)} (TCPWIN_JOB_SECONDS): the command line has no such limit"
        )


def _predicted_ns(connection: Connection, query: WhatIfQuery) -> float:
    """Predicted duration of the changed run by its own clock, for the progress bar."""
    with suppress(WhatIfError, ChangeError):
        found = whatif(
            connection,
            query.settings,
            lift=query.lift,
            loss_share=query.loss_share,
            round_trip_ns=query.round_trip_ns,
            rate_bps=query.rate_bps,
        )
        if found.prediction is not None:
            return found.prediction.duration_ns.likely
    return float(connection.duration_ns)


def _write_progress(place: Path, progress: dict[str, Any]) -> None:
    """Write a file so that readers see all of it."""
    new = place / f"{PROGRESS}.new"
    new.write_text(json.dumps(progress))
    new.replace(place / PROGRESS)
