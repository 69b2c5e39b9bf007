"""`tcpwin nstat`: the growth of the network stack's counters, and their meanings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import Output, choose_output, complain, write_document, write_lines, write_table
from tcpwin.cli.snapshot_files import (
    as_far_as_it_goes,
    describe_file,
    only_option,
    open_snapshots,
    output_options,
    warn_of,
)
from tcpwin.errors import SnapshotError

if TYPE_CHECKING:
    from tcpwin.hosts import CounterDelta, CounterRow, CounterSample, CounterSteps, SnapshotFile

SCHEMA = "tcpwin/nstat/1"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option("--each", "is_each", is_flag=True, help="Show each step between samples instead of the total.")
@click.option("--all", "is_all", is_flag=True, help="Show counters without an explanation, too.")
@only_option
@output_options
def nstat(
    files: tuple[str, ...],
    is_each: bool,
    is_all: bool,
    only: str | None,
    as_json: bool,
    form: str | None,
    out: str | None,
) -> None:
    """Show the growth of counters between the first and the last sample, the rate per second, and their meanings.

    FILE is nstat output (text or JSON), /proc/net/netstat or snmp, a CSV table of counters, a recording of `tcpwin
    snap`, or a bundle of one host with such files: a folder, .zip or .tar.gz. Several files must be from one host; they
    are sorted by time, otherwise by "before" and "after" in their names. - reads standard input.
    """
    from tcpwin.hosts import CounterSteps

    output = choose_output(form, as_json, out, files)
    found = open_snapshots(files, what="counters", only=only, one_host=True)
    reading = _Reading(_by_one_clock(found) if len(files) == 1 else found)
    steps = CounterSteps(iter(reading), name=reading.name)
    if is_each:
        _write_steps(reading, steps, is_all, output)
    else:
        for _ in steps:
            pass
        _write_total(reading, steps, is_all, output)
    reading.warn()


class _Reading:
    """The counter samples of some files, in time order if all of them have times, otherwise file by file.

    A time earlier than a preceding sample's is dropped, because no rate can be derived from it.
    """

    def __init__(self, files: list[SnapshotFile]) -> None:
        self.name = files[0].name
        self._files = _in_order(files)
        self._samples = [0] * len(files)
        self._is_backwards = False
        self._ended: list[str] = []

    def __iter__(self) -> Iterator[CounterSample]:
        from tcpwin.hosts import CounterSample

        latest_ns: int | None = None
        before: tuple[SnapshotFile, CounterSample] | None = None
        for place, file in enumerate(self._files):
            for sample in as_far_as_it_goes(file, self._ended, is_alone=len(self._files) == 1):
                if not isinstance(sample, CounterSample):
                    continue
                if before is not None and before[0] is not file:
                    _check_following(*before, file, sample, latest_ns)
                before = file, sample
                self._samples[place] += 1
                if sample.time_ns is not None and latest_ns is not None and sample.time_ns < latest_ns:
                    self._is_backwards = True
                    sample = replace(sample, time_ns=None)
                latest_ns = latest_ns if sample.time_ns is None else sample.time_ns
                yield sample
        if not any(self._samples):
            more = f"and none in {len(self._files) - 1} more" if len(self._files) > 1 else self._files[0].format
            raise SnapshotError(f"contains no counters of the network stack ({more})", self.name)

    def facts(self) -> list[dict[str, Any]]:
        """Return the files as objects of the JSON document."""
        return [describe_file(file, count) for file, count in zip(self._files, self._samples, strict=True)]

    def warn(self) -> None:
        """Report on stderr what was not understood."""
        warn_of(self._files, self._samples, "counters of the network stack", self._ended)
        if self._is_backwards:
            complain("note: the samples are not in time order: times earlier than a preceding one are ignored")


def _by_one_clock(files: list[SnapshotFile]) -> list[SnapshotFile]:
    """Return a bundle's files with times if only some have them: the others hold the same counters without times."""
    if len(files) < 2:
        return files
    firsts = [_first_of(file) for file in files]
    timed = [file for file, first in zip(files, firsts, strict=True) if first and first.time_ns is not None]
    if timed and len(timed) < sum(first is not None for first in firsts):
        timed_ids = {id(file) for file in timed}
        left_out = [file.name for file, first in zip(files, firsts, strict=True) if first and id(file) not in timed_ids]
        complain(f"note: omitted, as they have no times: {', '.join(left_out)}")
        return timed
    return files


def _in_order(files: list[SnapshotFile]) -> list[SnapshotFile]:
    """Sort files by their first times, or by before and after in their names; otherwise keep the given order."""
    if len(files) < 2 or any(file.is_stream for file in files):
        # A pipe can be read only once, so do not read its times ahead.
        return files
    from tcpwin.hosts import names_in_order

    firsts = [_first_of(file) for file in files]
    counting = [place for place, first in enumerate(firsts) if first is not None]
    times = {place: first.time_ns for place, first in enumerate(firsts) if first is not None}
    if all(time_ns is not None for time_ns in times.values()):
        ordered = sorted(counting, key=lambda place: times[place] or 0)
    else:
        named = names_in_order([files[place].name for place in counting])
        ordered = counting if named is None else [counting[each] for each in named]
    return [files[place] for place in (*ordered, *(place for place in range(len(files)) if place not in times))]


def _first_of(file: SnapshotFile) -> CounterSample | None:
    from tcpwin.hosts import CounterSample

    return next((sample for sample in file if isinstance(sample, CounterSample)), None)


def _check_following(
    before: SnapshotFile, last: CounterSample, file: SnapshotFile, first: CounterSample, latest_ns: int | None
) -> None:
    """Reject a difference of files counted at the same time, or in an unknown order."""
    from tcpwin.hosts import falls

    if (last.time_ns is None) is not (first.time_ns is None):
        raise SnapshotError(f"its samples and those of {before.name} have no order: only one has times", file.name)
    if first.time_ns is not None and latest_ns is not None and first.time_ns < latest_ns:
        raise SnapshotError(f"its samples are of the same time as those of {before.name}: show each alone", file.name)
    if first.time_ns is None and first.is_increment is False and falls(last, first):
        raise SnapshotError(
            f"counts fall from {before.name} to it, and no time says which was first: give the earlier one first",
            file.name,
        )


def _write_total(reading: _Reading, steps: CounterSteps, is_all: bool, output: Output) -> None:
    from tcpwin.hosts import COUNTER_KINDS, counter_rows, plain_rows, sample_rows
    from tcpwin.render import render_sample, render_total

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
    from tcpwin.hosts import COUNTER_KINDS, counter_rows, plain_rows
    from tcpwin.render import render_step, render_steps_end

    checked = _checked(reading, steps)
    if output.form == "table":
        lines = (line for step in checked for line in render_step(step, counter_rows(step, is_all=is_all)))
        # A generator: its facts are known once the steps have been read.
        end = render_steps_end(steps)
        write_lines(chain(lines, end), output)
    elif output.form == "json":
        objects = (_step_object(step, counter_rows(step, is_all=is_all)) for step in checked)
        write_document(SCHEMA, "steps", objects, lambda: _facts(reading, steps), output)
    else:
        rows = (row for step in checked for row in plain_rows(counter_rows(step, is_all=is_all)))
        write_table(rows, COUNTER_KINDS, output)


def _checked(reading: _Reading, steps: CounterSteps) -> Iterator[CounterDelta]:
    """Return the steps; raise an error if there are none."""
    yield from steps
    if not steps.count:
        what = "it has one sample" if steps.samples == 1 else "its samples have no counter in common"
        raise SnapshotError(f"no step from sample to sample: {what}", reading.name)


def _explained(row: CounterRow) -> dict[str, Any]:
    """Return a counter as an object of the JSON document."""
    from tcpwin.hosts import MEANINGS

    meaning = MEANINGS.get(row.name)
    named = {name: value for name, value in asdict(row).items() if name not in ("start_ns", "end_ns")}
    return {
        **named,
        "source": None if meaning is None else meaning.source,
        "since": None if meaning is None else meaning.since,
    }


def _step_object(step: CounterDelta, rows: list[CounterRow]) -> dict[str, Any]:
    """Return a step as an object of the JSON document."""
    return {
        "start_ns": step.start_ns,
        "end_ns": step.end_ns,
        "is_assumed": step.is_assumed,
        "counters": [
            {name: getattr(row, name) for name in ("name", "increase", "per_second", "is_reset")} for row in rows
        ],
    }


def _facts(reading: _Reading, steps: CounterSteps) -> dict[str, Any]:
    """Return the end of the JSON document."""
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
