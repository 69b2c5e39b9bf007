"""`tcpwin nstat`: how much the counters of the network stack grew, and what they count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.ss import (
    Output,
    choose_output,
    describe_file,
    open_snapshots,
    output_options,
    warn_of,
    write_document,
    write_lines,
    write_table,
)
from tcpwin.errors import SnapshotError

if TYPE_CHECKING:
    from tcpwin.snapshots import CounterSample, SnapshotFile
    from tcpwin.snapshots._counters import CounterDelta
    from tcpwin.snapshots._table import CounterRow, CounterSteps

SCHEMA = "tcpwin/nstat/1"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option("--each", "is_each", is_flag=True, help="Every step from sample to sample, not their sum.")
@click.option("--all", "is_all", is_flag=True, help="Also counters that are not explained here.")
@output_options
def nstat(
    files: tuple[str, ...], is_each: bool, is_all: bool, as_json: bool, form: str | None, out: str | None
) -> None:
    """Show how much counters grew between the first sample and the last, per second, and what they count.

    FILE is output of nstat, text or JSON, /proc/net/netstat and snmp, a table of counters (CSV), or what `tcpwin snap`
    wrote; several files are of one host, in order of time: before.txt after.txt. - is standard input.
    """
    from tcpwin.snapshots._table import CounterSteps

    output = choose_output(form, as_json, out, files)
    reading = _Reading(open_snapshots(files))
    steps = CounterSteps(iter(reading), name=reading.name)
    if is_each:
        _write_steps(reading, steps, is_all, output)
    else:
        for _ in steps:
            pass
        _write_total(reading, steps, is_all, output)
    reading.warn()


class _Reading:
    """The counter samples of some files, one file after the other."""

    def __init__(self, files: list[SnapshotFile]) -> None:
        self._files = files
        self._samples = [0] * len(files)
        self.name = files[0].name

    def __iter__(self) -> Iterator[CounterSample]:
        from tcpwin.snapshots import CounterSample

        for place, file in enumerate(self._files):
            for sample in file:
                if isinstance(sample, CounterSample):
                    self._samples[place] += 1
                    yield sample
        if not any(self._samples):
            more = f"and none in {len(self._files) - 1} more" if len(self._files) > 1 else self._files[0].format
            raise SnapshotError(f"no counters of the network stack in it ({more})", self.name)

    def facts(self) -> list[dict[str, Any]]:
        """The files as objects of the JSON document."""
        return [describe_file(file, count) for file, count in zip(self._files, self._samples, strict=True)]

    def warn(self) -> None:
        """Say on stderr what was not understood."""
        for file, count in zip(self._files, self._samples, strict=True):
            if not count:
                from tcpwin.cli._main import complain

                complain(f"warning: {file.name}: no counters of the network stack in it ({file.format})")
            warn_of(file)


def _write_total(reading: _Reading, steps: CounterSteps, is_all: bool, output: Output) -> None:
    from tcpwin.report._counters import render_sample, render_total
    from tcpwin.snapshots._table import COUNTER_KINDS, counter_rows, plain_rows, sample_rows

    total, last = steps.total, steps.last
    if last is None or (total is None and steps.samples > 1):
        raise SnapshotError("its samples have no counter in common, or count from different times", reading.name)
    if total is not None:
        rows = counter_rows(total, is_all=is_all, printed=last.values)
    else:
        rows = sample_rows(last, is_all=is_all)
    if output.form == "table":
        lines = (
            render_sample(last, rows, is_all=is_all)
            if total is None
            else render_total(total, rows, samples=steps.samples, is_all=is_all)
        )
        write_lines(list(lines), output)
    elif output.form == "json":
        objects = [_explained(row) for row in rows]
        write_document(SCHEMA, "counters", objects, lambda: _facts(reading, steps), output)
    else:
        write_table(plain_rows(rows), COUNTER_KINDS, output)


def _write_steps(reading: _Reading, steps: CounterSteps, is_all: bool, output: Output) -> None:
    from tcpwin.report._counters import render_step, render_steps_end
    from tcpwin.snapshots._table import COUNTER_KINDS, counter_rows, plain_rows

    checked = _checked(reading, steps)
    if output.form == "table":
        lines = (line for step in checked for line in render_step(step, counter_rows(step, is_all=is_all)))
        # A generator: what it says is known once the steps were read.
        end = render_steps_end(steps)
        write_lines(chain(lines, end), output)
    elif output.form == "json":
        objects = (_step_object(step, counter_rows(step, is_all=is_all)) for step in checked)
        write_document(SCHEMA, "steps", objects, lambda: _facts(reading, steps), output)
    else:
        rows = (row for step in checked for row in plain_rows(counter_rows(step, is_all=is_all)))
        write_table(rows, COUNTER_KINDS, output)


def _checked(reading: _Reading, steps: CounterSteps) -> Iterator[CounterDelta]:
    """The steps; there has to be one."""
    yield from steps
    if not steps.count:
        what = "it has one sample" if steps.samples == 1 else "its samples have no counter in common"
        raise SnapshotError(f"no step from sample to sample: {what}", reading.name)


def _explained(row: CounterRow) -> dict[str, Any]:
    """A counter as an object of the JSON document."""
    from tcpwin.snapshots._counters import MEANINGS

    meaning = MEANINGS.get(row.name)
    said = {name: value for name, value in asdict(row).items() if name not in ("start_ns", "end_ns")}
    return {
        **said,
        "source": None if meaning is None else meaning.source,
        "since": None if meaning is None else meaning.since,
    }


def _step_object(step: CounterDelta, rows: list[CounterRow]) -> dict[str, Any]:
    """A step as an object of the JSON document."""
    return {
        "start_ns": step.start_ns,
        "end_ns": step.end_ns,
        "is_assumed": step.is_assumed,
        "counters": [
            {name: getattr(row, name) for name in ("name", "increase", "per_second", "is_reset")} for row in rows
        ],
    }


def _facts(reading: _Reading, steps: CounterSteps) -> dict[str, Any]:
    """The end of the JSON document."""
    first, last, total = steps.first, steps.last, steps.total
    return {
        "samples": steps.samples,
        "is_increment": None if last is None else last.is_increment,
        "is_assumed": total is not None and total.is_assumed,
        "start_ns": None if first is None or steps.samples == 1 else first.time_ns,
        "end_ns": None if last is None else last.time_ns,
        "seconds": None if total is None else total.seconds,
        "resets": [] if total is None else sorted(total.resets),
        "files": reading.facts(),
    }
