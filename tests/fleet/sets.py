"""Helpers for tests of data sets: run the command, and read its output with DuckDB."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import duckdb
from cli import command
from cli.command import CAPTURES, TCPWIN

LAB = CAPTURES / "lab"
READER = LAB / "slow-reader.pcap.gz"
LOSS = LAB / "loss-1-percent.pcap.gz"
MANY = CAPTURES / "wild" / "many-short.pcap.gz"
RUN = CAPTURES / "runs" / "loss1_cubic_sack1"


def tcpwin(*arguments: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in another process, which may start others."""
    return command.tcpwin(*arguments, env=dict(os.environ), **more)


def run_fleet(*arguments: object, status: int = 0, starts: bool = False) -> dict[str, Any]:
    """Run `tcpwin fleet run` and return its report; `starts` starts Python, where a browser runs in this process."""
    command = ("fleet", "run", *arguments, "--json")
    done = subprocess.run([TCPWIN, *command], capture_output=True, check=False) if starts else tcpwin(*command)
    assert done.returncode == status, done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def ask(dataset: Path, query: str) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows; ``{connections}`` stands for the pattern of a table."""
    tables = {
        each.name: f"read_parquet('{each}/**/*.parquet', hive_partitioning = true)"
        for each in dataset.iterdir()
        if each.is_dir() and not each.name.startswith(".")
    }
    with duckdb.connect() as database:
        return database.execute(query.format(**tables)).fetchall()


def contents(dataset: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, except for measured durations."""
    names = sorted(each.name for each in dataset.iterdir() if each.is_dir() and not each.name.startswith("."))
    return {
        name: ask(dataset, f"SELECT * {'EXCLUDE (read_ns)' if name == 'captures' else ''} FROM {{{name}}} ORDER BY ALL")
        for name in names
    }
