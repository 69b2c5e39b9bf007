"""Captures from open files: seekable, pipes, in memory; nothing is left open or behind."""

import gc
import io
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import CAPTURES, READABLE, WHOLE, analyze, name_of, plain_bytes, rows_of
from cases import all_cases
from spread import some_by_day

import tcpwin
from tcpwin.sources import FileSource, PathSource, resolve

SMALL = next(path for path in WHOLE if path.name == "http-download.pcapng")


class Unseekable(io.RawIOBase):
    """A stream like a socket: bytes arrive in odd pieces and only once."""

    def __init__(self, data: bytes, piece_bytes: int = 777) -> None:
        self._data = io.BytesIO(data)
        self._piece_bytes = piece_bytes

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._data.read(min(size, self._piece_bytes) if size >= 0 else -1)


class ReadOnly:
    """A minimal stream with only `read`."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._data.read(size)


def rows(analysis: tcpwin.Analysis) -> list[dict[str, Any]]:
    return list(analysis.segments().rows())


@pytest.fixture
def open_files() -> Iterator[Callable[[], int]]:
    """Count this process's open file descriptors; the number must be the same at the end."""

    def count() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    yield count
    assert count() == before


@all_cases("path", READABLE, ids=name_of, of=3, first=2)
def test_open_file(path: Path) -> None:
    with path.open("rb") as file:
        analysis = tcpwin.analyze(file)
        assert rows(analysis) == rows_of(path)
        assert rows(analysis) == rows_of(path)
        assert analysis.name == str(path)
        assert analysis.capture.warnings == analyze(path).capture.warnings


@pytest.mark.parametrize("path", some_by_day(READABLE, first=1), ids=name_of)
def test_stream_that_cannot_seek_is_read_twice(path: Path, open_files: Callable[[], int]) -> None:
    analysis = tcpwin.analyze(Unseekable(path.read_bytes()))  # type: ignore[arg-type]
    assert rows(analysis) == rows_of(path)
    assert rows(analysis) == rows_of(path)
    for connection in analysis.worst(1):
        expected = analyze(path).connections[connection.id].series("flight")
        assert connection.series("flight").max.tolist() == expected.max.tolist()
    assert analysis.name == "stream"
    assert open_files() > 0


@pytest.mark.parametrize("kind", [io.BytesIO, ReadOnly, Unseekable])
def test_bytes_in_memory(kind: Callable[[bytes], Any]) -> None:
    analysis = tcpwin.analyze(kind(SMALL.read_bytes()))
    assert rows(analysis) == rows_of(SMALL)
    assert rows(analysis) == rows_of(SMALL)


def test_pipe() -> None:
    data = next(path for path in WHOLE if path.name == "slow-reader.pcap.gz").read_bytes()
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as file:
        analysis = tcpwin.analyze(file)
        thread.join()
    # The pipe is closed and gone; the data read is kept.
    assert len(rows(analysis)) == 4586
    assert analysis.connections[0].events


def test_stream_begins_at_the_files_position(tool: Callable[[str], str]) -> None:
    file = io.BytesIO(b"a prefix of no meaning" + plain_bytes(SMALL, tool))
    file.seek(22)
    analysis = tcpwin.analyze(file)
    assert rows(analysis) == rows_of(SMALL)
    assert rows(analysis) == rows_of(SMALL)


def test_stream_read_once_says_so() -> None:
    analysis = tcpwin.analyze(FileSource(Unseekable(SMALL.read_bytes()), name="a pipe", keep=False))  # type: ignore[arg-type]
    assert analysis.capture.packets == 95
    with pytest.raises(tcpwin.SourceError, match="a pipe can be read only once"):
        analysis.segments()


def test_damaged_stream_keeps_what_was_before() -> None:
    path = next(path for path in READABLE if path.name == "cut-block.pcapng")
    analysis = tcpwin.analyze(Unseekable(path.read_bytes()))  # type: ignore[arg-type]
    [warning] = analysis.capture.warnings
    assert (warning.kind, warning.byte_offset, warning.file) == ("truncated", 596, "stream")
    assert rows(analysis) == rows_of(path)


def test_stream_without_a_capture(open_files: Callable[[], int]) -> None:
    with pytest.raises(tcpwin.CaptureError, match=r"^stream: not a pcap or pcapng file"):
        tcpwin.analyze(io.BytesIO(b"GET / HTTP/1.1\r\n\r\n"))
    with pytest.raises(tcpwin.CaptureError, match=r"^stream: empty file"):
        tcpwin.analyze(Unseekable(b""))  # type: ignore[arg-type]
    assert open_files() > 0


def test_text_stream_says_what_is_wrong() -> None:
    with pytest.raises(tcpwin.CaptureError, match="read"):
        tcpwin.analyze(io.StringIO("text"))  # type: ignore[arg-type]


def test_stream_that_fails_midway_keeps_what_was_before() -> None:
    class Failing(ReadOnly):
        def read(self, size: int, /) -> bytes:
            data = super().read(min(size, 4000))
            if not data:
                raise OSError("the cable was pulled")
            return data

    analysis = tcpwin.analyze(Failing(SMALL.read_bytes()))  # type: ignore[arg-type]
    assert analysis.capture.segments == 95
    [warning] = analysis.capture.warnings
    assert "the cable was pulled" in warning.message


@pytest.mark.parametrize("make", [io.BytesIO, Unseekable])
def test_no_descriptor_or_temporary_file_stays(
    make: Callable[[bytes], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: Callable[[], int]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = open_files()
    for _ in range(5):
        analysis = tcpwin.analyze(make(SMALL.read_bytes()))
        analysis.connections[0].series("flight")
        analysis.segments()
        del analysis
    assert open_files() == before
    assert list(tmp_path.iterdir()) == []


def test_paths_leave_nothing_open(open_files: Callable[[], int]) -> None:
    before = open_files()
    for path in WHOLE[:4]:
        tcpwin.analyze(path).segments()
    with pytest.raises(tcpwin.CaptureError):
        tcpwin.analyze([WHOLE[0], "/nonexistent"])
    assert open_files() == before


def test_a_file_given_open_is_left_open() -> None:
    with SMALL.open("rb") as file:
        analysis = tcpwin.analyze(file)
        del analysis
        gc.collect()
        assert not file.closed


@all_cases("value", [None, 17, 3.5, object(), ["a.pcap", 17], [17], {1: "a.pcap"}])
def test_objects_that_are_no_sources_are_errors(value: Any) -> None:
    with pytest.raises(tcpwin.SourceError):
        tcpwin.analyze(value)


def test_a_source_is_taken_as_it_is() -> None:
    source = PathSource([SMALL])
    assert resolve(source) is source
    assert source.size_bytes == SMALL.stat().st_size
    assert rows(tcpwin.analyze(source)) == rows_of(SMALL)


@pytest.mark.parametrize("can_seek", [True, False])
def test_a_system_that_reads_at_one_place_only(can_seek: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, too, files are read again whether or not they can seek."""
    monkeypatch.delattr("os.pread")
    monkeypatch.delattr("os.pwrite")
    path = CAPTURES / "wild" / "keep-alive.pcap"
    with path.open("rb") as file:
        if not can_seek:
            monkeypatch.setattr("tcpwin.sources.source._can_seek", lambda _: False)
        found = tcpwin.analyze(file)
        assert found.connections[0].events == tcpwin.analyze(path).connections[0].events
