"""Rows as csv, JSON lines, Arrow and Parquet are equal, and never all in memory."""

from __future__ import annotations

import gc
import io
import json
from collections.abc import Iterator
from typing import Any

import polars
import pyarrow
import pytest

from tcpwin.errors import SnapshotError
from tcpwin.hosts.rows import BATCH_ROWS, write_rows

ROWS: list[dict[str, Any]] = [{"a": 1, "b": None, "c": "x,y", "d": True}, {"a": None, "b": 0.5, "c": None, "d": False}]
KINDS = {"a": "int", "b": "float", "c": "str", "d": "bool", "e": "str"}


def test_formats_hold_the_same() -> None:
    rows = [{**row, "e": None} for row in ROWS]
    text = io.StringIO()
    write_rows(rows, KINDS, "csv", text)
    assert text.getvalue() == 'a,b,c,d,e\n1,,"x,y",true,\n,0.5,,false,\n'
    text = io.StringIO()
    write_rows(rows, KINDS, "jsonl", text)
    assert [json.loads(line) for line in text.getvalue().splitlines()] == rows
    file = io.BytesIO()
    write_rows(rows, KINDS, "arrow", file)
    arrow: Any = pyarrow.ipc.open_file(io.BytesIO(file.getvalue())).read_all()
    assert arrow.to_pylist() == rows
    assert [str(each) for each in arrow.schema.types] == ["int64", "double", "string", "bool", "string"]
    file = io.BytesIO()
    write_rows(rows, KINDS, "parquet", file)
    assert polars.read_parquet(io.BytesIO(file.getvalue())).rows(named=True) == rows


def read(form: str, file: io.BytesIO) -> list[dict[str, Any]]:
    """Return the rows of a file of columns."""
    data = io.BytesIO(file.getvalue())
    if form == "arrow":
        return list(pyarrow.ipc.open_file(data).read_all().to_pylist())
    return list(polars.read_parquet(data).rows(named=True))


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_columns_have_types_also_without_a_row(form: str) -> None:
    file = io.BytesIO()
    assert write_rows([], {"a": "int", "b": "uint", "c": "str"}, form, file) == {}
    assert read(form, file) == []


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_number_beyond_64_bits_is_left_empty_and_counted(form: str) -> None:
    rows = [
        {"a": 1 << 63, "b": (1 << 64) - 1, "c": 1},
        {"a": -(1 << 63), "b": -1, "c": 0.5},
        {"a": 7, "b": 8, "c": None},
    ]
    file = io.BytesIO()
    assert write_rows(rows, {"a": "int", "b": "uint", "c": "float"}, form, file) == {"a": 1, "b": 1}
    assert read(form, file) == [
        {"a": None, "b": (1 << 64) - 1, "c": 1.0},
        {"a": -(1 << 63), "b": None, "c": 0.5},
        {"a": 7, "b": 8, "c": None},
    ]


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_text_that_is_not_unicode_is_escaped(form: str) -> None:
    file = io.BytesIO()
    write_rows([{"a": "x\ud800y"}, {"a": None}], {"a": "str"}, form, file)
    assert read(form, file) == [{"a": "x\\ud800y"}, {"a": None}]


class Row(dict[str, int]):
    """A row tracked by the garbage collector."""


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_rows_are_written_while_they_are_read(form: str) -> None:
    """Only a few batches exist at a time."""
    count = 12 * BATCH_ROWS + 5
    most = 0

    def rows() -> Iterator[Row]:
        nonlocal most
        for number in range(count):
            if number % BATCH_ROWS == 0:
                most = max(most, sum(isinstance(each, Row) for each in gc.get_objects()))
            yield Row(a=number)

    file = io.BytesIO()
    write_rows(rows(), {"a": "int"}, form, file)
    assert most <= 2 * BATCH_ROWS
    assert [row["a"] for row in read(form, file)] == list(range(count))


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_an_error_of_the_rows_comes_out_as_it_is(form: str) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"a": 1}
        raise SnapshotError("cut", "ss.txt")

    with pytest.raises(SnapshotError, match="cut"):
        write_rows(rows(), {"a": "int"}, form, io.BytesIO())
