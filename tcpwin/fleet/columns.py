"""Table rows as columns, joined for several captures and converted to Arrow once.

In: columns of an analysis, or one value for all rows. Out: Arrow tables in the data set's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpwin.fleet.schema import arrow_schema, tables

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table and one day.

    Attributes:
        height: number of rows.
        columns: columns by name; for `captures` the values of its only row; or an Arrow table.
    """

    height: int
    columns: Mapping[str, Any] | pyarrow.Table

    def where(self, is_chosen: NDArray[np.bool_]) -> Rows:
        """Return a selection of rows."""
        return Rows(int(is_chosen.sum()), {name: _chosen(each, is_chosen) for name, each in self.columns.items()})


def to_arrow(table: str, parts: Sequence[Rows]) -> pyarrow.Table:
    """Return all rows of several captures."""
    import pyarrow

    schema = arrow_schema(table)
    if isinstance(parts[0].columns, pyarrow.Table):
        return pyarrow.concat_tables([part.columns for part in parts])
    if table == "captures":
        return pyarrow.Table.from_pylist(
            [{name: part.columns.get(name) for name in schema.names} for part in parts], schema
        )
    heights = [part.height for part in parts]
    arrays = []
    for column in tables()[table]:
        kind = schema.field(column.name).type
        given = [part.columns[column.name] for part in parts]
        if column.parts:
            fields = list(kind)
            inner = [_array([each[field.name] for each in given], field.type, heights) for field in fields]
            arrays.append(pyarrow.StructArray.from_arrays(inner, fields=fields))
        else:
            arrays.append(_array(given, kind, heights))
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def _array(parts: Sequence[Any], kind: Any, heights: Sequence[int]) -> Any:
    """Return a column of all parts as an Arrow array."""
    import numpy as np
    import pyarrow

    from tcpwin.analysis import Coded

    first = parts[0]
    if isinstance(first, str | int):
        if all(each == first for each in parts):
            return pyarrow.repeat(pyarrow.scalar(first, kind), sum(heights))
        return pyarrow.array(parts, kind).take(np.repeat(np.arange(len(parts)), heights))
    if isinstance(first, Coded):
        words: list[str | None] = []
        codes = []
        for each in parts:
            codes.append(each.codes.astype(np.int64) + len(words))
            words += each.words
        return pyarrow.array(words, kind).take(pyarrow.array(np.concatenate(codes)))
    if any(each.dtype == object for each in parts):
        return pyarrow.array([value for each in parts for value in each.tolist()], kind)
    values = np.concatenate([np.ma.getdata(each) for each in parts]) if len(parts) > 1 else np.ma.getdata(first)
    mask = None
    if any(isinstance(each, np.ma.MaskedArray) for each in parts):
        mask = np.concatenate([np.ma.getmaskarray(each) for each in parts])
    return pyarrow.array(values, kind, mask=mask)


def _chosen(column: Any, is_chosen: NDArray[np.bool_]) -> Any:
    from tcpwin.analysis import Coded

    if isinstance(column, str | int):
        return column
    if isinstance(column, Mapping):
        return {name: _chosen(each, is_chosen) for name, each in column.items()}
    return Coded(column.codes[is_chosen], column.words) if isinstance(column, Coded) else column[is_chosen]
