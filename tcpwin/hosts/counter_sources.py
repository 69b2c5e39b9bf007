"""Distinguish counter files that continue each other from those that repeat the same counts.

In: each file's counter samples of one host. Out: sources, the best first: samples in time order that may be subtracted
from each other. Samples of different sources must not be combined, because both may have counted the same events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tcpwin.hosts.counters import falls
from tcpwin.hosts.samples import CounterSample

_BEFORE = frozenset(("before", "begin", "start", "pre", "first"))
_AFTER = frozenset(("after", "end", "stop", "post", "last"))


@dataclass(slots=True)
class CounterSource:
    """Counter samples of one source, in time order.

    Attributes:
        format: the format of its files.
        files: their names, in the order of their samples.
        samples: each comparable with the one before it.
        notes: sentences about samples that could not be compared.
    """

    format: str
    files: list[str]
    samples: list[CounterSample]
    notes: list[str] = field(default_factory=list)

    @property
    def span_ns(self) -> int | None:
        """Return the time from the first sample to the last, or None if one of them has no time."""
        times = [sample.time_ns for sample in self.samples]
        known = [time_ns for time_ns in times if time_ns is not None]
        return known[-1] - known[0] if known and len(known) == len(times) else None


def counter_sources(files: Sequence[tuple[str, str, list[CounterSample]]]) -> list[CounterSource]:
    """Join files that continue each other: of one format, consecutive in time or by name.

    Args:
        files: name, format and samples of each, in the order in which they were read.

    Returns:
        The sources, the longest time first; then those without times, the one with most samples first.
    """
    timed: list[CounterSource] = []
    untimed: dict[str, list[tuple[str, list[CounterSample]]]] = {}
    read = []
    for name, form, samples in files:
        if not samples:
            continue
        if any(sample.time_ns is None for sample in samples):
            untimed.setdefault(form, []).append((name, samples))
        else:
            read.append(CounterSource(form, [name], sorted(samples, key=_time_ns)))
    for source in sorted(read, key=lambda each: _time_ns(each.samples[0])):
        for known in timed:
            if known.format == source.format and _time_ns(known.samples[-1]) < _time_ns(source.samples[0]):
                known.files += source.files
                known.samples += source.samples
                break
        else:
            timed.append(source)
    found = [*timed, *(_without_times(form, each) for form, each in untimed.items())]
    # A single sample covers no time span, however certain its own time is.
    return sorted(found, key=lambda each: (-(each.span_ns or 0), -len(each.samples)))


def names_in_order(names: Sequence[str]) -> list[int] | None:
    """Return the positions of files whose names say which is first (before, begin, start) and last, or None."""
    ranks = [_rank(name) for name in names]
    if len(set(ranks)) != len(ranks):
        return None
    return sorted(range(len(names)), key=ranks.__getitem__)


def _without_times(form: str, files: list[tuple[str, list[CounterSample]]]) -> CounterSource:
    names = [name for name, _ in files]
    order = names_in_order(names)
    if order is not None:
        files = [files[place] for place in order]
    source = CounterSource(form, [name for name, _ in files], [sample for _, each in files for sample in each])
    if order is None:
        for (name, before), (following, after) in pairwise(files):
            if falls(before[-1], after[0]):
                source.samples = files[-1][1]
                source.notes.append(
                    f"counters fall from {name} to {following}, and neither their times nor their names say which was "
                    f"first: only those of {names[-1]} are compared"
                )
                break
    return source


def _rank(name: str) -> int:
    words = {word.lower() for word in re.split(r"[^A-Za-z]+", Path(name).name)}
    return bool(words & _AFTER) - bool(words & _BEFORE)


def _time_ns(sample: CounterSample) -> int:
    return sample.time_ns or 0
