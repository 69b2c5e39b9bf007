"""Analyse a stored capture in a worker process and write its results.

Results are written to a separate folder and then moved into place: readers see all of them or none. Does not access
the database.
"""

import contextlib
import errno
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpwin.analysis import Capture
from tcpwin.hosts import SnapshotFile, describe_host
from tcpwin.limits import Analysis, Connection, Verdicts, analyze, describe_finding, plain
from tcpwin.render import WHOLE, FindingViews, full_verdict, glance, group_findings, quality_remarks, view_capture
from tcpwin.sources import HeadersSource, SelectedSource, Selection, Source
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.results import columns, layout, queries
from tcpwin_web.results.host_pairs import group_by_hosts

SHOWN_GROUPS, WORST_FINDINGS = 20, 3
"""Kinds of findings on a capture's page, and findings of each."""
PREPARED = 4
"""Worst connections whose details are prepared with the analysis."""
PROGRESS_SECONDS = 0.1
PLACE_ATTEMPTS = 100
"""Attempts to move results into place while another worker writes into the old ones."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a capture in the form workers take."""

    path: str
    name: str
    label: str
    kind: str
    facts: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class FileSet:
    """Files that are analysed together.

    Attributes:
        window_scales: given by hand, by address.
        selection: the packets to analyse; None for all.
        results: the folder of its results, if there are any.
    """

    name: str
    files: Sequence[StoredFile] = field(default_factory=tuple)
    results: str | None = None
    window_scales: Mapping[str, int] | None = None
    selection: Selection | None = None

    @property
    def source(self) -> Source:
        """Its captures, or the selected packets of them."""
        captures = [each for each in self.files if each.kind == "capture"]
        if not captures:
            raise JobError("no capture among the files: snapshots alone cannot be analysed here")
        facts = [each.facts for each in captures if each.facts is not None]
        source = HeadersSource([each.path for each in captures], facts, name=self.name)
        return source if self.selection is None else SelectedSource(source, self.selection)

    @property
    def index(self) -> Path | None:
        """The index of its packets, if there is one."""
        path = None if self.results is None else Path(self.results) / layout.INDEX
        return path if path is not None and path.exists() else None

    def analyze(self, progress: Callable[[int], object] | None = None, *, index: Path | None = None) -> Analysis:
        """Read and measure all packets.

        Args:
            index: write an index of the packets to this path; by default use the existing one.
        """
        source = self.source
        snapshots = [
            (each.label or each.name, SnapshotFile(Path(each.path), name=each.name))
            for each in self.files
            if each.kind == "snapshot"
        ]
        analysis = analyze(
            source,
            snapshots=snapshots,
            window_scales=self.window_scales,
            index=index or self.index,
            progress=progress,
        )
        analysis.notes = (*(note for each in self.files for note in each.notes), *analysis.notes)
        return analysis


def analyze_file_set(file_set: FileSet, folder: str, unfinished: str) -> dict[str, Any]:
    """Write a capture's results to a temporary folder and move them into place; return its columns in lists."""
    place, new = Path(folder), Path(unfinished)
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    index = new / layout.INDEX
    analysis = file_set.analyze(_progress_writer(new / layout.PROGRESS), index=index)
    try:
        shown = _write(file_set, analysis, new)
    except Exception:
        # The disk may be full: drop the index, which only saves time, in favour of the results.
        if not index.exists():
            raise
        index.unlink()
        shown = _write(file_set, analysis, new)
    # Twins do not depend on the analysis.
    if (place / layout.TWINS).is_dir():
        shutil.copytree(place / layout.TWINS, new / layout.TWINS, dirs_exist_ok=True)
    put_in_place(new, place)
    return shown


def put_in_place(new: Path, place: Path) -> None:
    """Replace a folder of results, into which another worker may still be writing."""
    old = layout.replaced(new)
    for left in reversed(range(PLACE_ATTEMPTS)):
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            place.rename(old)
        try:
            new.rename(place)
        except OSError as error:
            if not left or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            break
    shutil.rmtree(old, ignore_errors=True)


def _write(file_set: FileSet, analysis: Analysis, new: Path) -> dict[str, Any]:
    findings, summary = analysis.findings, analysis.summary
    (new / layout.ENGINE).write_text(json.dumps(analysis.totals()))
    columns.write_connections(analysis, new / layout.CONNECTIONS)
    columns.write_findings(analysis, new / layout.FINDINGS)
    worst_verdict, verdicts = analysis.verdict, Verdicts(analysis, findings)
    verdict = worst_verdict and plain(full_verdict(worst_verdict))
    severity = None if findings.worst is None else str(findings.worst)
    worst = queries.list_connections(new, limit=PREPARED, columns=["id"]).rows.get_column("id").to_list()
    document = {
        "name": file_set.name,
        "connections": len(analysis),
        "capture": _described_capture(analysis),
        "selection": _selected(analysis),
        "quality": _quality(analysis.capture),
        "summary": {
            "text": summary.text,
            "carried": summary.carried,
            "caveat": summary.caveat,
            "serious": summary.serious,
            "worst": [describe_finding(each, analysis, verdicts.of(each)) for each in summary.worst],
            "problems": {limit: len(ids) for limit, ids in summary.problems.items()},
        },
        "problem_count": len(analysis.problems),
        "verdict": verdict,
        "findings": {"counts": dict(findings.counts), "kept": len(findings), "worst": severity},
        "worst": worst,
        "taken_at": _taken_at(analysis.connections[worst[0]]) if worst else None,
        "hosts": [plain(describe_host(host)) for host in analysis.hosts],
        "notes": list(analysis.notes),
    }
    (new / layout.CAPTURE).write_text(json.dumps(document))
    _write_view(analysis, worst, new / layout.VIEW)
    (new / layout.PROGRESS).unlink(missing_ok=True)
    pairs, all_pairs = group_by_hosts(new)
    return {
        "pairs": pairs,
        "host_pairs": all_pairs,
        "packets": analysis.capture.packets,
        "connections": len(analysis),
        "findings": sum(findings.counts.values()),
        "severity": severity,
        "summary": summary.text,
        "problems": len(analysis.problems),
        "verdict": verdict,
        "results_version": layout.VERSION,
    }


def _write_view(analysis: Analysis, worst: Sequence[int], path: Path) -> None:
    """Write the content of a capture's page: the answer, its worst connection, and the costliest kinds of findings."""
    answer = view_capture(analysis)
    view = FindingViews(analysis, analysis.findings)
    groups = group_findings(analysis.findings)
    document = {
        "answer": answer,
        "glance": glance(analysis.connections[worst[0]]) if worst and answer.verdict else None,
        "total_groups": len(groups),
        "groups": [
            {
                "count": each.count,
                "connections": each.connections,
                "total": each.total,
                "title": each.title,
                "worst": [
                    {**describe_finding(one, analysis, view.verdict(one)), "view": view(one)}
                    for one in each.findings[:WORST_FINDINGS]
                ],
            }
            for each in groups[:SHOWN_GROUPS]
        ],
    }
    path.write_text(json.dumps(plain(document)))


def _taken_at(connection: Connection) -> str | None:
    """Return which end of a connection the capture was taken at; None if it is neither or unknown."""
    side = (connection.verdict.direction or "a_to_b")[0]
    if connection.vantage not in ("a", "b"):
        return None
    return "sender" if connection.vantage == side else "receiver"


def _selected(analysis: Analysis) -> dict[str, Any] | None:
    if analysis.selection is None:
        return None
    capture = analysis.capture
    return {"text": str(analysis.selection), "packets": capture.packets - capture.packets_left_out}


def _quality(capture: Capture) -> list[str]:
    """Return remarks that weaken the numbers, except damage, which is reported with each file."""
    damage = len(capture.warnings)
    return quality_remarks(capture)[damage:] or ([] if damage else [WHOLE])


def _described_capture(analysis: Analysis) -> dict[str, Any]:
    capture = analysis.capture
    sums = {
        name: getattr(capture, name)
        for name in ("packets", "packets_snapped", "time_backwards", "interface_drops", "duration_ns")
    }
    return {**plain(capture), **sums, "first_time_ns": capture.first_time_ns, "last_time_ns": capture.last_time_ns}


def _progress_writer(path: Path) -> Callable[[int], None]:
    """Return a callback that writes the bytes read so far to a file, visible to all who share the data folder."""
    written = 0.0

    def write(bytes_read: int) -> None:
        nonlocal written
        now = time.monotonic()
        if now - written >= PROGRESS_SECONDS:
            written = now
            path.write_text(str(bytes_read))

    return write
