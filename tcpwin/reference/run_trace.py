"""The course of a run: window, flight and acknowledged bytes over time, from the sender's kernel.

In: the bundle of a run, or a run with a bundled trace. Out: Trace. Its values are `ss` samples, without interpolation.
A run without samples has no trace.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from os import PathLike, fspath
from typing import TYPE_CHECKING, TextIO

from tcpwin.errors import SnapshotError
from tcpwin.reference.sockets import sender_samples

if TYPE_CHECKING:
    from tcpwin.reference.model import Run

_COLUMNS = ("run", "time_ms", "window_bytes", "flight_bytes", "acked_bytes")
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Trace:
    """Samples of a run's sender while established; all columns have the same length.

    Attributes:
        time_ns: time since the SYN, a round trip before the first data.
        window_bytes: the receive window known to the sender (``snd_wnd``).
        flight_bytes: sent and not acknowledged: bytes_sent − bytes_retrans − bytes_acked.
        acked_bytes: bytes acknowledged since the start.
    """

    time_ns: tuple[int, ...]
    window_bytes: tuple[int, ...]
    flight_bytes: tuple[int, ...]
    acked_bytes: tuple[int, ...]

    @property
    def goodput_bps(self) -> float | None:
        """Return the goodput from the start to the last sample, bits per second."""
        return self.acked_bytes[-1] * 8e9 / self.time_ns[-1] if self.time_ns[-1] else None

    def mean(self, values: Sequence[int]) -> float:
        """Return a column's time average, holding each value until the next sample."""
        spans = [after - before for before, after in pairwise(self.time_ns)]
        total = sum(spans)
        return sum(value * span for value, span in zip(values[:-1], spans, strict=True)) / total if total else values[0]


def trace(run: Run) -> Trace | None:
    """Return the bundled trace of a run; the lab's runs have one."""
    return _shipped(run.reference).get(run.name)


def read_trace(bundle: str | PathLike[str]) -> Trace:
    """Return the trace of the socket that sent most, from the samples in a run's bundle.

    Raises:
        SnapshotError: not a bundle, or without samples of a sending socket that include a window.
    """
    samples = sender_samples(bundle)
    if all(each.snd_wnd_bytes is None for each in samples):
        raise SnapshotError("its ss output has no send window (snd_wnd)", fspath(bundle))
    first = samples[0]
    # Data has been in flight since the start when the first sample is taken; the kernel reports for how long.
    began_ns = (first.time_ns or 0) - (first.busy_ns or 0) - (first.minrtt_ns or 0)
    # If ss prints windows at all, it omits those that are zero.
    rows = [
        (
            ((each.time_ns or 0) - began_ns) // _MS * _MS,
            each.snd_wnd_bytes or 0,
            max(0, (each.bytes_sent or 0) - (each.bytes_retrans or 0) - (each.bytes_acked or 0)),
            each.bytes_acked or 0,
        )
        for each in samples
    ]
    return _of(rows)


def write_traces(found: Mapping[str, Trace], out: TextIO) -> None:
    """Write the traces of a reference's runs as the CSV that the package contains."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, each in found.items():
        columns = zip(each.time_ns, each.window_bytes, each.flight_bytes, each.acked_bytes, strict=True)
        writer.writerows((name, time_ns // _MS, *values) for time_ns, *values in columns)


@cache
def _shipped(reference: str) -> Mapping[str, Trace]:
    file = files("tcpwin.reference").joinpath("traces", f"{reference}.csv")
    if not file.is_file():
        return {}
    rows: dict[str, list[tuple[int, ...]]] = {}
    for name, time_ms, *values in list(csv.reader(file.read_text("ascii").splitlines()))[1:]:
        rows.setdefault(name, []).append((int(time_ms) * _MS, *map(int, values)))
    return {name: _of(each) for name, each in rows.items()}


def _of(rows: Iterable[Sequence[int]]) -> Trace:
    times, windows, flights, acked = zip(*rows, strict=True)
    return Trace(times, windows, flights, acked)
