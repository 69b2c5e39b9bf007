"""The exchanges of conversations: each request with its answer, individually and in groups.

In: a measurement whose source can be read again. Out: a table with one row for each answered request, and groups of
exchanges with their medians, tails and slowest answers. The number of rows is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from tcpwin.errors import ArgumentError
from tcpwin.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tcpwin.analysis.measurement import Measurement
    from tcpwin.analysis.table import Table

GroupName = Literal["port", "host", "connection", "path"]
GROUPS: tuple[GroupName, ...] = ("port", "host", "connection", "path")

MOST_EXCHANGES = 1 << 19
"""Maximum number of rows."""
MOST_GROUPS = 1000
"""Maximum number of groups; those with the most time come first."""
FRAMES_SHOWN = 3
FEWEST_FOR_P95 = 20
"""With fewer values, the 95th percentile by nearest rank is the maximum."""
FEW = 0.2
"""Maximum share of the answers that counts as a few slow ones."""

EXCHANGE_COLUMNS = {
    "connection": "Number of the connection.",
    "request_frame": "First segment of the request.",
    "request_end_frame": "Last segment of the request.",
    "answer_frame": "First segment of the answer.",
    "answer_end_frame": "Last segment of the answer.",
    "start_ns": "Time of the request's first segment at the capture point, in nanoseconds since the epoch.",
    "think_ns": "From when a had the last answer, or the connection was open, to when a asked.",
    "request_ns": "From the first to the last segment of the request.",
    "path_ns": "Round trip of the path: its part of the waits for the request and for the answer.",
    "work_ns": "From when b had the request to when it sent the first byte of the answer.",
    "transfer_ns": "From the first to the last segment of the answer.",
    "request_bytes": "Payload of the request.",
    "answer_bytes": "Payload of the answer.",
}
"""Columns of the table and their meanings; times are in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Exchanges of some or all connections of a capture.

    Attributes:
        table: one row for each exchange, with `EXCHANGE_COLUMNS`, in the order of the requests. ``target`` (HTTP method
            and path) is present only if requested; masked if no HTTP request was captured.
        connections: connections whose exchanges are listed.
        connections_omitted: other connections with exchanges, omitted to stay within `MOST_EXCHANGES`.
        exchanges_omitted: omitted exchanges of the listed connections.
    """

    table: Table
    connections: int
    connections_omitted: int
    exchanges_omitted: int


@dataclass(frozen=True, slots=True)
class ExchangeGroup:
    """Totals and percentiles of the exchanges with one server, between two hosts, on one connection or for one path.

    Times are in nanoseconds; percentiles use the nearest rank, so each is the time of one real exchange.

    Attributes:
        client: address of the client; None if the group may have several clients.
        server, port: the responder's address and port; the port is None for a pair of hosts.
        connection: connection number in a group by connection.
        target: HTTP method and path in a group by path; None if none was captured.
        connections, exchanges: how many the group contains.
        request_bytes, answer_bytes: total payload.
        think_ns, path_ns, work_ns, transfer_ns: sums.
        think_p50_ns, think_max_ns: time until the client sent its request.
        path_p50_ns: round trip of an exchange.
        work_p50_ns, work_p95_ns, work_max_ns: time that the server took.
        transfer_p50_ns, transfer_max_ns: duration of the answers.
        work_p50_frame, work_p95_frame, work_max_frame, think_max_frame: first frame of the answer, or of the request.
        slow_exchanges: number of answers slower than the mean, if a few of them take most of the time; else 0.
        slow_share: their share of `work_ns`.
        slow_frames: first frames of the slowest ones.
    """

    client: str | None
    server: str
    port: int | None
    connection: int | None
    target: str | None
    connections: int
    exchanges: int
    request_bytes: int
    answer_bytes: int
    think_ns: int
    path_ns: int
    work_ns: int
    transfer_ns: int
    think_p50_ns: int
    think_max_ns: int
    path_p50_ns: int
    work_p50_ns: int
    work_p95_ns: int
    work_max_ns: int
    transfer_p50_ns: int
    transfer_max_ns: int
    work_p50_frame: int
    work_p95_frame: int
    work_max_frame: int
    think_max_frame: int
    slow_exchanges: int
    slow_share: float
    slow_frames: tuple[int, ...]

    @property
    def name(self) -> str:
        """The group's display name: ``192.0.2.1 → 192.0.2.2:443``."""
        server = self.server if self.port is None else f"{_host(self.server)}:{self.port}"
        name = server if self.client is None else f"{self.client} → {server}"
        if self.connection is not None:
            return f"connection {self.connection}: {name}"
        return name if self.target is None else f"{self.target} at {name}"

    @property
    def text(self) -> str:
        """Summarise in one sentence where the time went, with the frames of the slowest exchange."""
        longest = f"{time_text(self.work_max_ns)} (frame {self.work_max_frame})"
        if self.exchanges == 1:
            return f"The server took {longest}, the round trip {time_text(self.path_ns)}."
        tail = f", p95 {time_text(self.work_p95_ns)}" if self.exchanges >= FEWEST_FOR_P95 else ""
        text = f"The server took {time_text(self.work_p50_ns)} (median){tail}, at most {longest}"
        if self.slow_exchanges:
            few = f"{self.slow_exchanges:,} of {count_text(self.exchanges, 'answer')}"
            text += f": {few} took {share_text(self.slow_share)} of its time"
        return f"{text}. Round trip {time_text(self.path_p50_ns)} each, {time_text(self.path_ns)} in all."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the sentence as plain values."""
        return {"name": self.name, **asdict(self), "slow_frames": list(self.slow_frames), "text": self.text}


@dataclass(frozen=True, slots=True)
class ExchangeSummary:
    """The exchanges of a capture, in groups.

    Attributes:
        by: the grouping key.
        groups: those with the most time first, at most `MOST_GROUPS`.
        groups_omitted: number of groups left out.
        connections, exchanges: totals of all groups.
        connections_omitted, exchanges_omitted: see `Exchanges`.
    """

    by: GroupName
    groups: tuple[ExchangeGroup, ...]
    groups_omitted: int
    connections: int
    exchanges: int
    connections_omitted: int
    exchanges_omitted: int


def list_exchanges(
    measurement: Measurement,
    connections: Iterable[int] | None = None,
    *,
    targets: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Exchanges:
    """List the exchanges of connections whose turns are known. Reads the source again.

    Args:
        connections: connection numbers; all by default.
        targets: add the column ``target``, which requires another reading.
        progress: called periodically with the number of bytes read.

    Raises:
        IndexError: unknown connection.
        SourceError: the source changed, or could be read only once.
    """
    import numpy as np

    from tcpwin.analysis.table import Coded
    from tcpwin.analysis.table import Table as MadeTable

    if connections is None:
        counts = measurement.connections.column("exchanges")
        ids = np.flatnonzero(counts)
        counts = counts[ids]
    else:
        chosen = {measurement.connections[id].id: measurement.connections[id].exchanges for id in connections}
        ids = np.array(sorted(id for id, count in chosen.items() if count), dtype=np.int64)
        counts = np.array([chosen[id] for id in ids.tolist()], dtype=np.int64)
    fitting = int(np.searchsorted(np.cumsum(counts), MOST_EXCHANGES, side="right"))
    # A single connection may exceed the limit; its first exchanges are listed.
    listed = ids[: max(fitting, 1)]
    columns, omitted = measurement._exchanges(listed.tolist(), MOST_EXCHANGES, progress)
    if targets:
        codes, words = measurement._request_targets(columns["request_frame"].tolist(), progress)
        columns["target"] = Coded(np.minimum(codes, len(words)), [*words, None])
    return Exchanges(MadeTable(columns), len(listed), len(ids) - len(listed), omitted)


def group_exchanges(measurement: Measurement, exchanges: Exchanges, by: GroupName) -> ExchangeSummary:
    """Group exchanges; a grouping by path requires exchanges listed with targets.

    Raises:
        ArgumentError: unknown group.
    """
    import numpy as np

    if by not in GROUPS:
        raise ArgumentError(f"unknown group {by}: choose from {', '.join(GROUPS)}")
    table = exchanges.table
    numbers = table["connection"].astype(np.int64)
    places, connection_of = np.unique(numbers, return_inverse=True)
    ends = [_ends(measurement, id, by) for id in places.tolist()]
    names = list(dict.fromkeys(ends))
    number_of = {name: number for number, name in enumerate(names)}
    group_of = np.array([number_of[name] for name in ends], dtype=np.int64)[connection_of]
    words: Sequence[str | None] = (None,)
    if by == "path":
        coded = table.coded("target")
        words = coded.words  # type: ignore[union-attr]
        group_of = group_of * len(words) + coded.codes  # type: ignore[union-attr]
    found, group_of = np.unique(group_of, return_inverse=True)
    keys = [(*names[code // len(words)], words[code % len(words)]) for code in found.tolist()]
    groups, omitted = _described(table, group_of, keys, connection_of, by)
    return ExchangeSummary(
        by=by,
        groups=groups,
        groups_omitted=omitted,
        connections=exchanges.connections,
        exchanges=table.height,
        connections_omitted=exchanges.connections_omitted,
        exchanges_omitted=exchanges.exchanges_omitted,
    )


def _ends(measurement: Measurement, id: int, by: GroupName) -> tuple[str, str, int, int]:
    """Return client, server, port and connection number; empty or -1 if they are not part of the group's key."""
    connection = measurement.connections[id]
    client, server, port = connection.a.address, connection.b.address, connection.b.port
    if by == "connection":
        return client, server, port, id
    return (client, server, -1, -1) if by == "host" else ("", server, port, -1)


def _described(
    table: Table,
    group_of: NDArray[np.int64],
    keys: Sequence[tuple[str, str, int, int, str | None]],
    connection_of: NDArray[np.int64],
    by: GroupName,
) -> tuple[tuple[ExchangeGroup, ...], int]:
    """Return the groups with the most time, and the number of groups omitted."""
    import numpy as np

    spent = sum(table[name] for name in ("path_ns", "work_ns", "transfer_ns"))
    totals = np.bincount(group_of, weights=spent, minlength=len(keys))
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(len(keys) + 1))
    described = []
    for group in np.argsort(-totals, kind="stable")[:MOST_GROUPS].tolist():
        rows = order[starts[group] : starts[group + 1]]
        client, server, port, connection, target = keys[group]
        described.append(
            ExchangeGroup(
                client=client or None,
                server=server,
                port=None if port < 0 else port,
                connection=None if connection < 0 else connection,
                target=target,
                connections=1 if by == "connection" else len(np.unique(connection_of[rows])),
                exchanges=len(rows),
                **_measured(table, rows),
            )
        )
    return tuple(described), len(keys) - len(described)


def _measured(table: Table, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return the sums and percentiles of a group's exchanges."""
    import numpy as np

    values = {
        name: table[name][rows]
        for name in ("think_ns", "path_ns", "work_ns", "transfer_ns", "request_bytes", "answer_bytes")
    }
    measured: dict[str, Any] = {name: int(column.sum()) for name, column in values.items()}
    middle = (len(rows) - 1) // 2
    for name in ("think_ns", "path_ns", "transfer_ns"):
        ranked = np.sort(values[name])
        measured[name.replace("_ns", "_p50_ns")] = int(ranked[middle])
        if name != "path_ns":
            measured[name.replace("_ns", "_max_ns")] = int(ranked[-1])
    work, answers = values["work_ns"], table["answer_frame"][rows]
    by_work = np.argsort(work, kind="stable")
    for name, rank in (("p50", middle), ("p95", -(-95 * len(rows) // 100) - 1), ("max", -1)):
        measured[f"work_{name}_ns"] = int(work[by_work[rank]])
        measured[f"work_{name}_frame"] = int(answers[by_work[rank]])
    measured["think_max_frame"] = int(table["request_frame"][rows][values["think_ns"].argmax()])
    slow = int((work * len(rows) > measured["work_ns"]).sum())
    share = float(work[by_work[len(rows) - slow :]].sum() / max(measured["work_ns"], 1))
    is_few = 0 < slow <= FEW * len(rows) and share > 0.5
    measured["slow_exchanges"] = slow if is_few else 0
    measured["slow_share"] = round(share, 4) if is_few else 0.0
    slowest = by_work[::-1][:FRAMES_SHOWN] if is_few else by_work[:0]
    measured["slow_frames"] = tuple(int(answers[place]) for place in slowest[:slow])
    return measured


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
