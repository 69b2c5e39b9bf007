"""Recordings on a full disk contain only complete lines, or no file is created."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tcpwin.errors import OutputError
from tcpwin.hosts.collect.writer import Writer


@contextmanager
def room_for(count_bytes: int) -> Iterator[None]:
    """Limit the size of files, so that writing fails as on a full disk."""
    # Import no module meanwhile: Python would load a partially written compiled module.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count_bytes, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_all(writer: Writer, lines: list[bytes]) -> None:
    for number in range(0, len(lines), 3):
        writer.write(lines[number : number + 3])


def test_a_line_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    lines = [json.dumps({"number": number}).encode() + b"\n" for number in range(1000)]
    with room_for(4096), Writer(path, max_bytes=1 << 20, keep=1) as writer:
        writer.begin({"type": "start"})
        with pytest.raises(OutputError, match=f"^{path}: File too large$"):
            write_all(writer, lines)
    start, *rest = path.read_bytes().splitlines(keepends=True)
    assert json.loads(start) == {"type": "start"}
    assert len(rest) > 100
    assert rest == lines[: len(rest)]


def test_no_file_without_a_first_line(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "snap.jsonl", max_bytes=1 << 20, keep=1)
    with room_for(8), pytest.raises(OutputError, match="File too large"):
        writer.begin({"type": "start"})
    assert not list(tmp_path.iterdir())
