"""Overview of a data set: `tcpwin fleet show`.

In: a database connection. Out: tables of plain values, the costliest first. A problem and its limit are the verdict's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpwin.fleet.query import ask

if TYPE_CHECKING:
    import duckdb

GROUPS = {
    "limit": "'all'",
    "pair": "a_address || ' → ' || b_address",
    "subnet": "subnet(a_address) || ' → ' || subnet(b_address)",
    "port": "b_port",
    "hour": "hour(make_timestamp_ns(start_ns))",
    "day": "CAST(day AS VARCHAR)",
    "site": "site",
    "kernel": "(SELECT nullif(array_to_string([each FOR each IN kernels IF each <> ''], ', '), '') FROM captures"
    " WHERE captures.capture = connections.capture)",
}
"""Groupings of connections as SQL; hours are in UTC, kernels are those of the capture's hosts."""
_LIMITS = """
WITH parts AS (
  SELECT {group} AS place, coalesce(verdict.also, verdict.limit) AS named, count(*) AS connections,
    count(*) FILTER (verdict.is_problem) AS problems,
    coalesce(sum(verdict.lost_ns) FILTER (verdict.is_problem), 0)::BIGINT AS lost_ns
  FROM connections GROUP BY ALL
)
SELECT place AS "{name}", sum(connections)::BIGINT AS connections, sum(problems)::BIGINT AS problems,
  sum(lost_ns)::BIGINT AS lost_ns, arg_max(named, (lost_ns, problems)) FILTER (problems > 0) AS "limit"
FROM parts GROUP BY place ORDER BY lost_ns DESC, connections DESC, place LIMIT {limit}
"""
_BY_LIMIT = """
SELECT coalesce(verdict.also, verdict.limit) AS "limit", count(*) AS connections,
  count(*) FILTER (verdict.is_problem) AS problems,
  coalesce(sum(verdict.lost_ns) FILTER (verdict.is_problem), 0)::BIGINT AS lost_ns
FROM connections GROUP BY 1 ORDER BY lost_ns DESC, connections DESC, "limit" LIMIT {limit}
"""
_WORST = """
SELECT name AS capture, id AS connection, a_address || ':' || a_port AS a, b_address || ':' || b_port AS b,
  coalesce(verdict.also, verdict.limit) AS "limit", verdict.lost_ns AS lost_ns, verdict.text AS text, verdict.fix AS fix
FROM connections JOIN captures USING (capture) WHERE verdict.is_problem
ORDER BY verdict.lost_ns DESC, name, id LIMIT {limit}
"""
_ERRORS = "SELECT name, error FROM captures WHERE error IS NOT NULL ORDER BY name LIMIT {limit}"
_TOTALS = """
SELECT count(*) AS captures, count(error) AS unreadable, coalesce(sum(packets), 0)::BIGINT AS packets,
  coalesce(sum(connections), 0)::BIGINT AS connections, coalesce(sum(problems), 0)::BIGINT AS problems,
  min(first_time_ns) AS first_time_ns, max(last_time_ns) AS last_time_ns
FROM captures
"""


def totals(database: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the data set's totals."""
    (told,) = _rows(database, _TOTALS)
    return told


def limits_by(database: duckdb.DuckDBPyConnection, group: str, limit: int) -> list[dict[str, Any]]:
    """Return connections, problems and lost time by one of `GROUPS`, with the costliest limit of each."""
    query = _BY_LIMIT if group == "limit" else _LIMITS
    return _rows(database, query.format(group=GROUPS[group], name=group, limit=limit))


def worst_connections(database: duckdb.DuckDBPyConnection, limit: int) -> list[dict[str, Any]]:
    """Return the connections with a problem that lost most time."""
    return _rows(database, _WORST.format(limit=limit))


def unreadable(database: duckdb.DuckDBPyConnection, limit: int) -> list[dict[str, Any]]:
    """Return the unreadable captures with the reason."""
    return _rows(database, _ERRORS.format(limit=limit))


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    names, rows = ask(database, query)
    return [dict(zip(names, row, strict=True)) for row in rows]
