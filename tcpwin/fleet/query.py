"""SQL queries on a data set, with DuckDB.

In: a data set. Out: a connection with a view per table. Views contain only the valid files; nothing is read before a
query needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tcpwin.analysis import DIRECTIONS
from tcpwin.errors import FilterError, need
from tcpwin.fleet.dataset import Dataset
from tcpwin.fleet.schema import Column, tables

if TYPE_CHECKING:
    import duckdb

_TYPES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "str": "VARCHAR", "list": "VARCHAR[]"}
_SUBNET = """
CREATE MACRO subnet(address) AS CASE
  WHEN address NOT LIKE '%:%' THEN regexp_replace(address, '[.][0-9]+$', '.0/24')
  ELSE array_to_string(list_concat(
    [part FOR part IN string_split(split_part(address, '::', 1), ':') IF part <> ''],
    ['0' FOR place IN range(8 - len([part FOR part IN string_split(address, ':') IF part <> '']))],
    [part FOR part IN string_split(split_part(address, '::', 2), ':') IF part <> '']
  )[1:4], ':') || '::/64'
END
"""
"""The /24 of an IPv4 address, the /64 of an IPv6 address: DuckDB's address type would have to be downloaded."""
_DIRECTIONS = """
SELECT capture, day, site, id AS connection, '{side}' AS direction,
  {a}_address AS sender, {a}_port AS sender_port, {b}_address AS receiver, {b}_port AS receiver_port,
  b_port AS server_port, start_ns, duration_ns, path_rtt_ns, verdict, {side}.*
FROM connections
"""


@contextmanager
def asked(dataset: Dataset) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a data set: its tables, ``directions`` (one row per direction), and ``subnet(address)``.

    Raises:
        OutputError: DuckDB is not installed.
    """
    need("fleet", "duckdb", extra="fleet")
    import duckdb

    with duckdb.connect(":memory:") as database:
        for table, files in dataset.tables().items():
            database.execute(f"CREATE VIEW {table} AS {_rows_of(table, files)}")
        sides = (_DIRECTIONS.format(side=side, a=side[0], b=side[-1]) for side in DIRECTIONS)
        database.execute(f"CREATE VIEW directions AS {' UNION ALL '.join(sides)}")
        database.execute(_SUBNET)
        yield database


def ask(database: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Return the names of a query's columns, and iterate over its rows.

    Raises:
        FilterError: DuckDB rejects the query or cannot run it.
    """
    import duckdb

    try:
        database.execute(query)
    except duckdb.Error as error:
        raise FilterError(_sentence(error)) from None
    return [column[0] for column in database.description or ()], _fetched(database)


def _fetched(database: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    import duckdb

    try:
        while rows := database.fetchmany(1000):
            yield from rows
    except duckdb.InvalidInputException:
        # A statement without rows.
        return
    except duckdb.Error as error:
        raise FilterError(_sentence(error)) from None


def _sentence(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _rows_of(table: str, files: list[str]) -> str:
    if not files:
        columns = [Column("day", "date", ""), Column("site", "str", ""), *tables()[table]]
        named = ", ".join(f'CAST(NULL AS {_type(each)}) AS "{each.name}"' for each in columns)
        return f"SELECT {named} WHERE false"
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    types = "{'day': DATE, 'site': VARCHAR}"
    return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = true, hive_types = {types})"


def _type(column: Column) -> str:
    if column.parts:
        parts = [f'"{each.name}" {_type(each)}' for each in column.parts]
        return f"STRUCT({', '.join(parts)})"
    return "DATE" if column.kind == "date" else _TYPES[column.kind]
