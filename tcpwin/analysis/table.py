"""Columns of equal length: numpy arrays, masked where a value is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.errors import need

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


MOMENTS = frozenset(
    (
        *("time_ns", "start_ns", "end_ns", "syn_ns", "syn_ack_ns", "established_ns"),
        *("first_data_ns", "last_data_ns", "stall_at_end_start_ns"),
    )
)
"""Columns of nanoseconds since the Unix epoch; all others whose names end in ``_ns`` are durations."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A text column with repeated values.

    Attributes:
        codes: index of each row's word, shape (rows,).
        words: the texts; None stands for no text.
    """

    codes: NDArray[Any]
    words: Sequence[str | None]


class Table(Mapping[str, NDArray[Any]]):
    """Named columns. A column is a numpy array of shape (rows,); where values are missing, a masked array."""

    def __init__(self, columns: Mapping[str, NDArray[Any] | Coded]) -> None:
        self._columns = dict(columns)
        self._texts: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        if not isinstance(column, Coded):
            return column
        if name not in self._texts:
            self._texts[name] = decoded(column)
        return self._texts[name]

    def coded(self, name: str) -> NDArray[Any] | Coded:
        """Return a column in its stored form: repeated texts are codes of words."""
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def height(self) -> int:
        """The number of rows."""
        for column in self._columns.values():
            return len(column.codes if isinstance(column, Coded) else column)
        return 0

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary of plain Python values; None for a missing value."""
        columns = [_plain(column) for column in self.values()]
        for values in zip(*columns, strict=True):
            yield dict(zip(self._columns, values, strict=True))

    def to_polars(self, *, times: bool = False) -> polars.DataFrame:
        """Convert to a polars DataFrame; needs the ``tables`` extra.

        Args:
            times: return nanoseconds as Datetime (UTC) and Duration instead of integers.

        Raises:
            OutputError: polars is not installed.
        """
        need("a polars DataFrame", "polars", extra="tables")
        import polars

        frame = polars.DataFrame({name: _polars_series(polars, column) for name, column in self._columns.items()})
        if not times:
            return frame
        moment, duration = polars.Datetime("ns", "UTC"), polars.Duration("ns")
        return frame.cast({name: moment if is_moment else duration for name, is_moment in self._times()})

    def to_arrow(self, *, times: bool = False) -> pyarrow.Table:
        """Convert to an Arrow table; needs the ``arrow`` extra. `times` is as for `to_polars`.

        Raises:
            OutputError: pyarrow is not installed.
        """
        need("an Arrow table", "pyarrow", extra="arrow")
        import pyarrow

        table = pyarrow.table({name: _arrow_array(pyarrow, column) for name, column in self._columns.items()})
        if not times:
            return table
        kinds = {
            name: pyarrow.timestamp("ns", "UTC") if each else pyarrow.duration("ns") for name, each in self._times()
        }
        return table.cast(pyarrow.schema([(each.name, kinds.get(each.name, each.type)) for each in table.schema]))

    def to_pandas(self, *, times: bool = False) -> pandas.DataFrame:
        """Convert to a pandas DataFrame of Arrow's types, which allow missing values; needs the ``pandas`` extra.

        `times` is as for `to_polars`.

        Raises:
            OutputError: pandas or pyarrow is not installed.
        """
        need("a pandas DataFrame", "pandas", "pyarrow", extra="pandas")
        import pandas

        return self.to_arrow(times=times).to_pandas(types_mapper=pandas.ArrowDtype)

    def _times(self) -> Iterator[tuple[str, bool]]:
        """Yield each column of nanoseconds, and whether its values count from the epoch."""
        for name, column in self._columns.items():
            if name.endswith("_ns") and not isinstance(column, Coded) and column.dtype.kind in "iu":
                yield name, name.rpartition(".")[2] in MOMENTS

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as Arrow's C stream, for polars, DuckDB and pandas; needs the ``arrow`` extra."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table: {self.height} rows × {len(self)} columns: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self)
        body = []
        for number, row in enumerate(self.rows()):
            if number == 20:
                body.append(f"<tr><td colspan={len(self)}>… {self.height - 20} more rows</td></tr>")
                break
            cells = "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values())
            body.append(f"<tr>{cells}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _mask(column: NDArray[Any]) -> NDArray[np.bool_] | None:
    if isinstance(column, np.ma.MaskedArray) and column.mask is not np.ma.nomask:
        return np.ma.getmaskarray(column)
    return None


def _plain(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    return values


def _polars_series(polars: Any, column: NDArray[Any] | Coded) -> Any:
    if isinstance(column, Coded):
        return polars.Series(column.words, dtype=polars.String).gather(polars.Series(column.codes))
    if column.dtype == object:
        return polars.Series(column.tolist(), dtype=polars.String)
    series = polars.Series(np.ma.getdata(column))
    mask = _mask(column)
    return series if mask is None else series.set(polars.Series(mask), None)


def _arrow_array(pyarrow: Any, column: NDArray[Any] | Coded) -> Any:
    if isinstance(column, Coded):
        return pyarrow.array(column.words, pyarrow.string()).take(pyarrow.array(column.codes))
    if column.dtype == object:
        return pyarrow.array(column.tolist(), pyarrow.string(), mask=_mask(column))
    return pyarrow.array(np.ma.getdata(column), mask=_mask(column))


def decoded(column: Coded) -> NDArray[Any]:
    """Return the texts of a column as an object array, with None for missing ones."""
    texts_of: NDArray[Any] = texts(column.words)[column.codes] if column.words else texts([])
    return texts_of


def masked(values: NDArray[Any], mask: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return an array whose missing values, marked by `mask`, are masked."""
    return values if mask is None else np.ma.MaskedArray(values, mask=mask)


def texts(values: Sequence[str | None]) -> NDArray[Any]:
    """Return strings as an object array; None stays None."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
