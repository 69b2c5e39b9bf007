"""Tables as rows, polars and Arrow have the same values, and None where a value is missing."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow
import pytest
from analysis.bundled import READABLE, WHOLE, analyze, name_of, rows_of
from cases import all_cases

import tcpwin

# Limits of the capture file formats.
ROW_TYPES = {
    "frame": polars.UInt64,
    "time_ns": polars.Int64,
    "connection": polars.UInt32,
    "direction": polars.String,
    "src": polars.String,
    "sport": polars.UInt16,
    "dst": polars.String,
    "dport": polars.UInt16,
    "seq": polars.UInt32,
    "ack": polars.UInt32,
    "length": polars.UInt32,
    "flags": polars.UInt16,
    "window_raw": polars.UInt16,
    "window": polars.UInt32,
    "shift": polars.UInt8,
    "bytes_in_flight": polars.UInt32,
    "pipe": polars.UInt32,
    "rtt_ns": polars.UInt64,
    "events": polars.String,
}
FIELD_TYPES = {"int": polars.Int64, "float": polars.Float64, "bool": polars.Boolean, "str": polars.String}
ARROW_TYPES = {
    polars.UInt64: pyarrow.uint64(),
    polars.Int64: pyarrow.int64(),
    polars.UInt32: pyarrow.uint32(),
    polars.UInt16: pyarrow.uint16(),
    polars.UInt8: pyarrow.uint8(),
    polars.Float64: pyarrow.float64(),
    polars.Boolean: pyarrow.bool_(),
    polars.String: pyarrow.string(),
}


def arrow_types(types: dict[str, Any]) -> dict[str, pyarrow.DataType]:
    return {name: ARROW_TYPES[kind] for name, kind in types.items()}


@all_cases("path", READABLE, ids=name_of, of=6)
def test_segments_as_polars_and_arrow(path: Path) -> None:
    rows = rows_of(path)
    table = analyze(path).segments()
    assert list(table) == list(ROW_TYPES)
    assert table.height == len(rows)
    frame = table.to_polars()
    assert frame.schema == ROW_TYPES
    assert frame.rows(named=True) == rows
    arrow = table.to_arrow()
    assert arrow.to_pylist() == rows
    if rows:
        types = arrow_types(ROW_TYPES)
        assert {field.name: field.type for field in arrow.schema} == types


@all_cases("path", WHOLE, ids=name_of, of=6, first=1)
def test_connections_as_polars_and_arrow(path: Path) -> None:
    from tcpwin import _engine

    connections = analyze(path).connections
    rows = list(connections.table().rows())
    assert [row["id"] for row in rows] == list(range(len(connections)))
    types = {name: FIELD_TYPES[kind] for name, kind, _ in _engine.fields("connection")}
    for group in ("a_to_b", "b_to_a"):
        types |= {f"{group}.{name}": FIELD_TYPES[kind] for name, kind, _ in _engine.fields("direction")}
    kinds = {"share": "float", "is_problem": "bool"}
    for row in _engine.verdict_fields():
        kind = "int" if row["name"].endswith("_ns") else kinds.get(row["name"], "str")
        types[f"verdict.{row['name']}"] = FIELD_TYPES[kind]
    frame = connections.to_polars()
    assert frame.schema == types
    assert frame.rows(named=True) == rows
    arrow = connections.to_arrow()
    assert arrow.to_pylist() == rows
    assert {field.name: field.type for field in arrow.schema} == arrow_types(types)
    chosen = ["b_to_a.goodput_bps", "a_address", "id"]
    assert connections.to_polars(chosen).equals(frame.select(chosen))
    assert connections.to_arrow(chosen).equals(arrow.select(chosen))
    with pytest.raises(KeyError, match="nonsense"):
        connections.to_polars(["id", "nonsense"])


def test_missing_values_are_masked_and_never_a_number() -> None:
    [path] = [path for path in WHOLE if path.name == "mid-connection.pcap.gz"]
    table = analyze(path).segments()
    window = table["window"]
    assert isinstance(window, np.ma.MaskedArray)
    assert window.mask.all()
    assert {row["window"] for row in rows_of(path)} == {None}
    assert table.to_polars()["window"].null_count() == len(rows_of(path))
    assert table.to_arrow()["window"].null_count == len(rows_of(path))


def test_named_columns_only() -> None:
    connections = analyze(WHOLE[0]).connections
    table = connections.table(["b_to_a.segments", "id"])
    assert list(table) == ["b_to_a.segments", "id"]
    assert len(table) == 2
    assert repr(table) == "<Table: 1 rows × 2 columns: b_to_a.segments, id>"
    assert list(table.rows()) == [{"b_to_a.segments": connections[0].b_to_a.segments, "id": 0}]


@all_cases("path", WHOLE, ids=name_of)
def test_columns_taken_together_are_the_fields_of_each_connection(path: Path) -> None:
    analysis = analyze(path)
    rows = list(analysis.connections.table(analysis.connections.measured_names).rows())
    assert len(rows) == len(analysis.connections)
    for id, row in enumerate(rows):
        told = dict(analysis._engine.connection(id))
        for group in ("a_to_b", "b_to_a"):
            fields = analysis._engine.direction(id, group == "a_to_b")
            del fields["window_scale_evidence"]
            told |= {f"{group}.{name}": value for name, value in fields.items()}
        assert row == told


def test_texts_that_are_the_same_are_one_string() -> None:
    [path] = [path for path in WHOLE if path.name == "many-short.pcap.gz"]
    connections = analyze(path).connections
    for name in ("a_address", "b_address", "close", "a_to_b.window_scale_state", "closed_first"):
        texts = connections.column(name).tolist()
        assert len(texts) > 60
        assert len({id(text) for text in texts}) == len(set(texts))


@pytest.mark.parametrize("name", ["nonsense", "a_to_b.nonsense", "nonsense.segments"])
def test_an_unknown_column_is_named(name: str) -> None:
    with pytest.raises(KeyError, match="no column nonsense"):
        analyze(WHOLE[0]).connections.table(["id", name])


def test_table_without_columns() -> None:
    table = tcpwin.Table({})
    assert table.height == 0
    assert list(table.rows()) == []
    assert table.to_polars().shape == (0, 0)


def test_html_shows_twenty_rows_and_escapes_markup() -> None:
    texts = np.empty(30, dtype=object)
    texts[:] = ["<script>alert(1)</script>"] + ["b"] * 28 + [None]
    html = tcpwin.Table({"<i>": texts})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<th>&lt;i&gt;</th>" in html
    assert html.count("<tr><td>") == 20
    assert "… 10 more rows" in html


def test_capture_without_tcp_gives_empty_tables() -> None:
    [path] = [path for path in READABLE if path.name == "only-a-header.pcap"]
    analysis = analyze(path)
    assert analysis.segments().to_polars().shape == (0, len(ROW_TYPES))
    assert analysis.segments().to_polars().schema == ROW_TYPES
    assert analysis.segments().to_arrow().num_rows == 0
    assert analysis.connections.to_polars().height == 0
    assert analysis.connections.column("a_to_b.segments").shape == (0,)
