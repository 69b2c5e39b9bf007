"""Parquet is written in batches of rows."""

import gc
import io
import threading
from pathlib import Path
from typing import IO

import polars
import pytest

from tcpwin.parquet import parquet_writer

SCHEMA = polars.Schema({"a": polars.Int64})


def frame(*values: int) -> polars.DataFrame:
    return polars.DataFrame({"a": values}, schema=SCHEMA)


def write_some(target: IO[bytes], chunks: int, interruption: BaseException | None = None) -> None:
    with parquet_writer(SCHEMA, target) as write:
        for _ in range(chunks):
            write(frame(*range(1 << 14)))
        if interruption is not None:
            raise interruption


def test_frames_become_one_file_in_order() -> None:
    file = io.BytesIO()
    with parquet_writer(SCHEMA, file) as write:
        for first in range(0, 1000, 10):
            write(frame(*range(first, first + 10)))
    assert polars.read_parquet(file.getvalue())["a"].to_list() == list(range(1000))


def test_no_frame_is_a_file_without_rows() -> None:
    file = io.BytesIO()
    with parquet_writer(SCHEMA, file):
        pass
    assert polars.read_parquet(file.getvalue()).schema == SCHEMA


def test_frames_do_not_pile_up() -> None:
    most, rows = 0, 1 << 16
    with parquet_writer(SCHEMA, io.BytesIO()) as write:
        for _ in range(24):
            write(frame(*range(rows)))
            most = max(most, sum(isinstance(each, polars.DataFrame) for each in gc.get_objects()))
    assert most < 12


def test_a_full_disk_is_the_systems_error() -> None:
    with Path("/dev/full").open("wb") as full:
        for chunks in (1, 200):
            with pytest.raises(OSError, match="No space left"):
                write_some(full, chunks)


def test_an_error_in_the_body_is_raised_and_stops_the_writer() -> None:
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        write_some(io.BytesIO(), 3, KeyboardInterrupt())
    assert threading.active_count() == before


def test_a_frame_of_another_schema_is_an_error() -> None:
    with pytest.raises(polars.exceptions.PolarsError), parquet_writer(SCHEMA, io.BytesIO()) as write:
        write(polars.DataFrame({"b": [1]}))
