"""Samples as rows and columns.

In: socket samples, or steps of counters. Out: rows of plain values, JSON objects, and Tables of typed columns. Fields
with several values, such as `users`, are JSON text in a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tcpwin.errors import SnapshotError
from tcpwin.hosts.counters import GAUGES, MEANINGS, CounterDelta, are_increments, deltas
from tcpwin.hosts.samples import CounterSample
from tcpwin.hosts.socket import SocketSample

if TYPE_CHECKING:
    from tcpwin.analysis import Table

Kinds = Mapping[str, str]
"""Column types by name: int, uint, float, bool or str."""
HELD_SAMPLES = 8
"""Counter samples that are judged together."""
MAX_NAMES = 20_000
"""Maximum number of counters: a kernel has about 400."""
_VOLUME = (
    "TcpInSegs",
    "TcpOutSegs",
    "TcpExtTCPOrigDataSent",
    "TcpExtTCPDelivered",
    "TcpExtTCPRcvCoalesce",
    "TcpExtDelayedACKs",
    "TcpExtTCPAckCompressed",
    "TcpExtTCPKeepAlive",
)
_EXPLAINED = (*(name for name in MEANINGS if name not in _VOLUME), *_VOLUME)
"""Counters with a known meaning: signs of limits and losses first, volume last."""


def _socket_kinds() -> dict[str, str]:
    kinds: dict[str, str] = {}
    for each in fields(SocketSample):
        kind = str(each.type).removesuffix(" | None")
        kinds[each.name] = kind if kind in ("int", "float", "bool") else "str"
        if each.name == "cookie":
            kinds["cookie"] = "uint"
        if each.name == "cwnd_segments":
            kinds["cwnd_bytes"] = "int"
    return kinds


SOCKET_KINDS: Kinds = _socket_kinds()
"""The columns of socket samples: the fields of SocketSample, and `cwnd_bytes`."""


def socket_values(sample: SocketSample, names: Iterable[str] = SOCKET_KINDS) -> dict[str, Any]:
    """Return the columns of a sample as plain values, None for unknown ones."""
    return {name: _cell(getattr(sample, name)) for name in names}


def socket_object(sample: SocketSample, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return a sample as a JSON object: the named fields, null if unknown; or all known fields.

    `index` is always present, and `cwnd_bytes` if known.
    """
    if names is not None:
        return {name: _plain(getattr(sample, name)) for name in names}
    from tcpwin.hosts.document import describe_sample

    described = {"index": sample.index, **describe_sample(sample)}
    if sample.cwnd_bytes is not None:
        described["cwnd_bytes"] = sample.cwnd_bytes
    return described


def socket_table(samples: Iterable[SocketSample], names: Sequence[str] | None = None) -> Table:
    """Return samples as columns: numbers, flags and text, masked where unknown.

    Raises:
        KeyError: a sample has no such field.
    """
    kinds = SOCKET_KINDS if names is None else {name: SOCKET_KINDS[name] for name in names}
    return table_of((socket_values(sample, kinds) for sample in samples), kinds)


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One counter over one time span.

    Attributes:
        start_ns, end_ns: nanoseconds since the epoch by the host's clock; None if unknown.
        name: its name in `nstat`.
        increase: over that span; None with a single sample. A lower bound if `is_reset`.
        per_second: increase per second; None if the time is unknown.
        is_reset: whether the counter ran backwards.
        printed: the number in the last sample; None for a step between two.
        meaning: what it counts; None if unknown.
    """

    start_ns: int | None
    end_ns: int | None
    name: str
    increase: int | None
    per_second: float | None
    is_reset: bool
    printed: int | None
    meaning: str | None


COUNTER_KINDS: Kinds = {
    "start_ns": "int",
    "end_ns": "int",
    "name": "str",
    "increase": "int",
    "per_second": "float",
    "is_reset": "bool",
    "printed": "int",
    "meaning": "str",
}
"""The columns of counters."""


def counter_rows(
    delta: CounterDelta, *, is_all: bool = False, printed: Mapping[str, int] | None = None
) -> list[CounterRow]:
    """Return counters that grew or ran backwards: those with a meaning, and with `is_all` the rest.

    Signs of limits and losses come first, then volume, then unexplained ones, alphabetically.
    """
    found = []
    seconds = delta.seconds
    for name in (*_EXPLAINED, *(sorted(delta.values.keys() - MEANINGS.keys()) if is_all else ())):
        increase = delta.values.get(name, 0)
        if increase or name in delta.resets:
            found.append(
                CounterRow(
                    start_ns=delta.start_ns,
                    end_ns=delta.end_ns,
                    name=name,
                    increase=increase,
                    per_second=None if seconds is None else increase / seconds,
                    is_reset=name in delta.resets,
                    printed=None if printed is None else printed.get(name),
                    meaning=MEANINGS[name].counts if name in MEANINGS else None,
                )
            )
    return found


def sample_rows(sample: CounterSample, *, is_all: bool = False) -> list[CounterRow]:
    """Return the same for a single sample, whose numbers are increases only if marked so."""
    values = {name: value for name, value in sample.values.items() if name not in GAUGES}
    rows = counter_rows(CounterDelta(None, sample.time_ns, values, sample.resets), is_all=is_all, printed=sample.values)
    return rows if sample.is_increment else [replace(row, increase=None) for row in rows]


def plain_rows(rows: Iterable[CounterRow]) -> Iterator[dict[str, Any]]:
    """Yield counter rows as plain values by column."""
    for row in rows:
        yield {name: getattr(row, name) for name in COUNTER_KINDS}


class CounterSteps:
    """The steps between samples of one host's counters; iterate, then call `total` for their sum.

    Increments counted before the first sample are not a step. If no sample shows its kind, the first `HELD_SAMPLES` are
    judged together (see `are_increments`).

    Attributes:
        samples: their number.
        first, last: first and last sample; None without any.
        count: number of comparable steps.

    Raises:
        SnapshotError: while iterating: more than `MAX_NAMES` different counters.
    """

    def __init__(self, samples: Iterable[CounterSample], *, name: str = "counters") -> None:
        self.samples = 0
        self.count = 0
        self.first: CounterSample | None = None
        self.last: CounterSample | None = None
        self._source = iter(samples)
        self._name = name
        self._values: dict[str, int] = {}
        self._resets: set[str] = set()
        self._is_assumed = False

    def __iter__(self) -> Iterator[CounterDelta]:
        for delta in deltas(self._watched()):
            if self.samples == 1:
                continue
            self.count += 1
            for name, increase in delta.values.items():
                self._values[name] = self._values.get(name, 0) + increase
            self._resets |= delta.resets
            self._is_assumed |= delta.is_assumed
            if len(self._values) > MAX_NAMES:
                raise SnapshotError(f"more than {MAX_NAMES:,} different counters: no kernel has that many", self._name)
            yield delta

    @property
    def total(self) -> CounterDelta | None:
        """Return all steps so far as one, or None."""
        if not self.count or self.first is None or self.last is None:
            return None
        return CounterDelta(
            self.first.time_ns, self.last.time_ns, dict(self._values), frozenset(self._resets), self._is_assumed
        )

    def _watched(self) -> Iterator[CounterSample]:
        held = list(islice(self._source, HELD_SAMPLES))
        if held and all(sample.is_increment is None for sample in held):
            judged = are_increments(held)
            held = [replace(sample, is_increment=judged) for sample in held]
        else:
            judged = None
        for sample in chain(held, self._source):
            if sample.is_increment is None and judged is not None:
                sample = replace(sample, is_increment=judged)
            self.samples += 1
            self.first = self.first or sample
            self.last = sample
            yield sample


def table_of(rows: Iterable[Mapping[str, Any]], kinds: Kinds) -> Table:
    """Return rows as columns. Integer columns have 64 bits, or become floats if a number needs more."""
    from tcpwin.analysis import Table

    columns: dict[str, list[Any]] = {name: [] for name in kinds}
    for row in rows:
        for name, column in columns.items():
            column.append(row[name])
    return Table({name: _column(columns[name], kind) for name, kind in kinds.items()})


def _column(values: list[Any], kind: str) -> Any:
    import numpy as np

    from tcpwin.analysis import masked, texts

    if kind == "str":
        return texts(values)
    absent = np.array([value is None for value in values], dtype=bool)
    filled = [0 if value is None else value for value in values]
    return masked(np.array(filled, dtype=_number_type(filled, kind)), absent if absent.any() else None)


def _number_type(values: list[Any], kind: str) -> str:
    if kind not in ("int", "uint") or not values:
        return {"int": "int64", "uint": "uint64", "float": "float64", "bool": "bool"}[kind]
    least, most = min(values), max(values)
    if kind == "int" and least >= -(1 << 63) and most < 1 << 63:
        return "int64"
    return "uint64" if least >= 0 and most < 1 << 64 else "float64"


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, int | float | str):
        return value
    plain = _plain(value)
    return json.dumps(plain) if plain else None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
