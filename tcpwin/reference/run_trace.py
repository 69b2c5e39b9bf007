"""How a run went: the sender's window, what was in flight and what was acknowledged, as its kernel said it over time.

In: the bundle of a run, or a run whose trace is shipped. Out: Trace. Its values are those of `ss` as they were sampled;
nothing is drawn or worked out between two samples. A run without samples has no trace.
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
    """A run's sender, sample by sample while it was established; all of one length.

    Attributes:
        time_ns: since the connection began: since the SYN, a round trip before the first data.
        window_bytes: the receive window that the sender had (``snd_wnd``).
        flight_bytes: sent and not acknowledged: bytes_sent − bytes_retrans − bytes_acked.
        acked_bytes: acknowledged since the begin.
    """

    time_ns: tuple[int, ...]
    window_bytes: tuple[int, ...]
    flight_bytes: tuple[int, ...]
    acked_bytes: tuple[int, ...]

    @property
    def goodput_bps(self) -> float | None:
        """From the begin to the last sample, bits per second."""
        return self.acked_bytes[-1] * 8e9 / self.time_ns[-1] if self.time_ns[-1] else None

    def mean(self, values: Sequence[int]) -> float:
        """The mean over time of one of its columns, each value until the next sample."""
        spans = [after - before for before, after in pairwise(self.time_ns)]
        total = sum(spans)
        return sum(value * span for value, span in zip(values[:-1], spans, strict=True)) / total if total else values[0]


def trace(run: Run) -> Trace | None:
    """The trace of a run, where one is shipped: the lab's own runs have one."""
    return _shipped(run.reference).get(run.name)


def read_trace(bundle: str | PathLike[str]) -> Trace:
    """The trace of the socket that sent most, from the samples in a bundle of a run.

    Raises:
        SnapshotError: it is no bundle, or has no samples of a socket that sent data, or none that says a window.
    """
    samples = sender_samples(bundle)
    if all(each.snd_wnd_bytes is None for each in samples):
        raise SnapshotError("its ss output has no send window (snd_wnd)", fspath(bundle))
    first = samples[0]
    # Data has been in flight ever since it began when the first sample is taken: the kernel says for how long.
    began_ns = (first.time_ns or 0) - (first.busy_ns or 0) - (first.minrtt_ns or 0)
    # Where ss prints the window at all, it leaves out one that is zero.
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
    """Write the traces of a reference's runs, by the runs' names, as they are shipped."""
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
