"""All connections of a capture, as a sequence and as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tcpwin import _engine
from tcpwin.analysis.connection import MeasuredConnection

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

    from tcpwin.analysis.measurement import Measurement
    from tcpwin.analysis.table import Coded, Table

    Judge = Callable[[int, int | None], Mapping[str, NDArray[Any]]]


_VERDICT = "verdict."

C = TypeVar("C", bound=MeasuredConnection, covariant=True)


class Connections(Sequence[C]):
    """The connections of a capture, in the order of their first segments.

    A column of all connections is ``connections.column("b_to_a.zero_window_ns")`` or, from the verdicts,
    ``connections.column("verdict.limit")``; :meth:`table` has all of them.
    """

    def __init__(self, analysis: Measurement, kind: Callable[[Any, int], C], judge: Judge | None = None) -> None:
        """Create the sequence.

        Args:
            kind: makes a connection of the analysis and its number.
            judge: makes the columns of verdicts, if the connections have any.
        """
        self._analysis = analysis
        self._kind = kind
        self._judge = judge

    def __len__(self) -> int:
        return len(self._analysis._engine)

    @overload
    def __getitem__(self, index: int) -> C: ...
    @overload
    def __getitem__(self, index: slice) -> list[C]: ...
    def __getitem__(self, index: int | slice) -> C | list[C]:
        if isinstance(index, slice):
            return [self._kind(self._analysis, id) for id in range(*index.indices(len(self)))]
        id = index + len(self) if index < 0 else index
        if not 0 <= id < len(self):
            raise IndexError(f"no connection {index}: the capture has {len(self)}")
        return self._kind(self._analysis, id)

    @property
    def column_names(self) -> list[str]:
        """Return all column names: those of `measured_names`, then those that begin with ``verdict.``."""
        verdicts = [] if self._judge is None else [row["name"] for row in _engine.verdict_fields()]
        return self.measured_names + [f"{_VERDICT}{name}" for name in verdicts]

    @property
    def measured_names(self) -> list[str]:
        """Return the connection's columns, then those that begin with ``a_to_b.`` and ``b_to_a.``."""
        names = [name for name, _, _ in _engine.fields("connection")]
        fields = [name for name, _, _ in _engine.fields("direction")]
        return names + [f"{group}.{name}" for group in ("a_to_b", "b_to_a") for name in fields]

    def column(self, name: str) -> NDArray[Any]:
        """Return one field of all connections, shape (len(self),); masked where a connection has no value.

        Raises:
            KeyError: unknown column.
        """
        from tcpwin.analysis.table import Coded, decoded

        column = self._columns([name])[0]
        return decoded(column) if isinstance(column, Coded) else column

    def table(self, names: Sequence[str] | None = None, *, start: int = 0, stop: int | None = None) -> Table:
        """Return the named columns, or all, of the connections from `start` up to but not including `stop`.

        One walk over the connections reads all columns and shares equal strings: twenty columns of a million
        connections take less than a second. Columns of verdicts take a few seconds more, because the rules run.

        Raises:
            KeyError: unknown column.
        """
        from tcpwin.analysis.table import Table

        names = names or self.column_names
        return Table(dict(zip(names, self._columns(names, start, stop), strict=True)))

    def _columns(self, names: Sequence[str], start: int = 0, stop: int | None = None) -> list[NDArray[Any] | Coded]:
        from tcpwin.analysis.table import Coded, masked

        judged = [name for name in names if name.startswith(_VERDICT)] if self._judge is not None else []
        measured = [name for name in names if name not in judged]
        columns = self._analysis._engine.columns([_place_of(name) for name in measured], start, stop)
        found: dict[str, NDArray[Any] | Coded] = {
            name: Coded(values, mask) if isinstance(mask, list) else masked(values, mask)
            for name, (values, mask) in zip(measured, columns, strict=True)
        }
        if self._judge is not None and judged:
            verdicts = self._judge(start, stop)
            for name in judged:
                found[name] = verdicts[name.removeprefix(_VERDICT)]
        return [found[name] for name in names]

    def to_polars(self, columns: Sequence[str] | None = None, *, times: bool = False) -> polars.DataFrame:
        """Return the named columns, or all, as a polars DataFrame; needs the ``tables`` extra.

        `times` is as for `Table.to_polars`.

        Raises:
            KeyError: unknown column.
            OutputError: a package is not installed.
        """
        return self.table(columns).to_polars(times=times)

    def to_arrow(self, columns: Sequence[str] | None = None, *, times: bool = False) -> pyarrow.Table:
        """Return the named columns, or all, as an Arrow table; needs the ``arrow`` extra.

        `times` is as for `Table.to_polars`.

        Raises:
            KeyError: unknown column.
            OutputError: a package is not installed.
        """
        return self.table(columns).to_arrow(times=times)

    def to_pandas(self, columns: Sequence[str] | None = None, *, times: bool = False) -> pandas.DataFrame:
        """Return the named columns, or all, as a pandas DataFrame; needs the ``pandas`` extra.

        `times` is as for `Table.to_polars`.

        Raises:
            KeyError: unknown column.
            OutputError: a package is not installed.
        """
        return self.table(columns).to_pandas(times=times)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all columns as Arrow's C stream, for ``pyarrow.table(analysis.connections)`` and DuckDB."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Connections: {len(self)}>"

    def _repr_html_(self) -> str:
        shown = ["id", "a_address", "a_port", "b_address", "b_port", "duration_ns", "close"]
        shown += [f"{g}.{n}" for g in ("a_to_b", "b_to_a") for n in ("payload_bytes", "zero_window_ns")]
        return self.table(shown)._repr_html_()


def _place_of(name: str) -> tuple[str, str]:
    """Split a column's name into group and field."""
    group, dot, field = name.partition(".")
    if not dot:
        return "connection", name
    if group not in ("a_to_b", "b_to_a"):
        raise KeyError(f"no column {name}: a direction is a_to_b or b_to_a")
    return group, field
