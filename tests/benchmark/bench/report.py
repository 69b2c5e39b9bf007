"""Rows and runs → text, Markdown and JSON."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from .captures import MIB, Capture
from .rows import Row, Runs

ROW_HEADER = ("measure", "median", "min–max", "must", "aim", "holds")
RUN_HEADER = ("capture", "tool", "runs", "CPU s", "M packets per CPU s", "peak MiB")


def render_text(rows: Sequence[Row], runs: Runs, captures: Mapping[str, Capture]) -> str:
    """Render both tables, aligned for a terminal."""
    return "\n\n".join(_align(table) for table in _tables(rows, runs, captures))


def render_markdown(rows: Sequence[Row], runs: Runs, captures: Mapping[str, Capture]) -> str:
    """Render both tables as in the README."""
    return "\n\n".join(_markdown(table) for table in _tables(rows, runs, captures))


def render_rows(rows: Sequence[Row], *, as_markdown: bool) -> str:
    """Render only the table of rows, as Markdown or aligned for a terminal."""
    table = [ROW_HEADER, *(_row_cells(row) for row in rows)]
    return _markdown(table) if as_markdown else _align(table)


def render_json(rows: Sequence[Row], runs: Runs, captures: Mapping[str, Capture], versions: Mapping[str, str]) -> str:
    """Render every measured run."""
    document = {
        "machine": describe_machine(),
        "versions": dict(versions),
        "captures": {
            name: {"packets": capture.packets, "connections": capture.connections} for name, capture in captures.items()
        },
        "runs": [
            {"tool": tool, "capture": capture, "round": index + 1, **asdict(run)}
            for (tool, capture), series in runs.items()
            for index, run in enumerate(series)
        ],
        "rows": [
            {**asdict(row), "value": row.value, "holds": row.holds, "reaches_aim": row.reaches_aim} for row in rows
        ],
    }
    return json.dumps(document, indent=1)


def judge(program: str, rows: Sequence[Row]) -> int:
    """Report missed bounds on stderr; return exit status 1 if there are any."""
    missed = [row.name for row in rows if row.holds is False]
    for name in missed:
        print(f"{program}: missed: {name}", file=sys.stderr)
    return 1 if missed else 0


def describe_machine() -> dict[str, str | int]:
    """Return CPU, cores and kernel."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {"processor": model, "cores": os.cpu_count() or 1, "kernel": platform.release()}


def _tables(rows: Sequence[Row], runs: Runs, captures: Mapping[str, Capture]) -> list[list[Sequence[str]]]:
    return [
        [ROW_HEADER, *(_row_cells(row) for row in rows)],
        [RUN_HEADER, *(_run_cells(key, series, captures) for key, series in sorted(_by_capture(runs)))],
    ]


def _by_capture(runs: Runs) -> list[tuple[tuple[str, str], tuple[float, float, int]]]:
    """Return ((capture, tool), (median CPU, highest peak, number of runs))."""
    return [
        (
            (capture, tool),
            (median(run.cpu_s for run in series), max(run.peak_bytes for run in series) / MIB, len(series)),
        )
        for (tool, capture), series in runs.items()
    ]


def _row_cells(row: Row) -> list[str]:
    def show(value: float | None) -> str:
        return "–" if value is None else _number(value, row.unit)

    verdict = {True: "yes", False: "**no**", None: "–"}[row.holds]
    if row.reaches_aim is not None:
        verdict += ", aim too" if row.reaches_aim else ", aim not"
    verdict = verdict.removeprefix("–, ")
    extent = f"{show(min(row.values))} – {show(max(row.values))}"
    return [row.name, show(median(row.values)), extent, _bound(row.must, row.unit), _bound(row.aim, row.unit), verdict]


def _number(value: float, unit: str) -> str:
    if unit == "ratio":
        return f"1/{1 / value:.1f}" if 0 < value < 0.5 else f"{value:.2f}"
    return f"{value:.1f} {unit}" if unit in ("MiB", "ms") else f"{value:.0f} {unit}".rstrip()


def _bound(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "ratio":
        return f"≤ 1/{1 / value:.3g}" if value < 0.5 else f"≤ {value:g}"
    return f"≤ {value:.0f} {unit}".rstrip()


def _run_cells(key: tuple[str, str], figures: tuple[float, float, int], captures: Mapping[str, Capture]) -> list[str]:
    name, tool = key
    cpu_s, peak_mib, count = figures
    speed = f"{captures[name].packets / cpu_s / 1e6:.3g}" if name in captures and cpu_s > 0 else "–"
    return [name, tool, str(count), f"{cpu_s:.3f}", speed, f"{peak_mib:.0f}"]


def _markdown(table: Sequence[Sequence[str]]) -> str:
    header, *lines = table
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *lines))


def _align(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cells[column]) for cells in table) for column in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) for cells in table]
    return "\n".join(line.rstrip() for line in lines)
