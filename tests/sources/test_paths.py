"""Captures named by paths: one, several in time order, and unreadable ones."""

import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from analysis.bundled import READABLE, UNREADABLE, WHOLE, analyze, name_of, plain_bytes, rows_of
from cases import all_cases
from spread import some_by_day

import tcpwin
from tcpwin.sources import PathSource

PCAPS = [path for path in WHOLE if ".pcap" in path.suffixes]


def split_records(data: bytes) -> tuple[bytes, list[bytes]]:
    """The file header and the records of a little-endian pcap."""
    header, records, at = data[:24], [], 24
    assert struct.unpack("<I", header[:4])[0] in (0xA1B2C3D4, 0xA1B23C4D)
    while at < len(data):
        [length] = struct.unpack_from("<I", data, at + 8)
        records.append(data[at : at + 16 + length])
        at += 16 + length
    return header, records


def same(one: tcpwin.Analysis, other: tcpwin.Analysis) -> None:
    """Check that everything except the file's name is equal."""
    assert list(one.segments().rows()) == list(other.segments().rows())
    assert len(one) == len(other)
    for first, second in zip(one, other, strict=True):
        assert first.fields == second.fields
        assert (first.a_to_b, first.b_to_a) == (second.a_to_b, second.b_to_a)
    assert one.capture.packets == other.capture.packets
    assert one.capture.first_time_ns == other.capture.first_time_ns
    assert one.capture.last_time_ns == other.capture.last_time_ns


def test_path_as_text_and_as_path() -> None:
    path = WHOLE[0]
    same(tcpwin.analyze(str(path)), tcpwin.analyze(path))
    assert tcpwin.analyze(path).name == tcpwin.analyze(str(path)).name == str(path)


def cut_between_times(records: list[bytes], count: int) -> list[list[bytes]]:
    """Split into about equal parts; packets of the same time stay together, because several files do not give their
    order.
    """
    cuts = [0]
    for number in range(1, count):
        at = max(number * len(records) // count, cuts[-1] + 1)
        while at < len(records) and records[at][:8] == records[at - 1][:8]:
            at += 1
        cuts.append(at)
    return [records[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(records)], strict=True)]


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("path", some_by_day(PCAPS), ids=name_of)
def test_consecutive_files_are_the_whole(path: Path, count: int, tmp_path: Path, tool: Callable[[str], str]) -> None:
    header, records = split_records(plain_bytes(path, tool))
    parts = []
    for number, own in enumerate(cut_between_times(records, count)):
        part = tmp_path / f"{number}.pcap"
        part.write_bytes(header + b"".join(own))
        parts.append(part)
    joined = tcpwin.analyze(parts)
    same(joined, analyze(path))
    assert joined.name == f"{count} files"
    assert [file.file for file in joined.capture.files] == [str(part) for part in parts]
    # Files are sorted by time, in whatever order they are named.
    same(tcpwin.analyze(parts[::-1]), analyze(path))


@pytest.mark.parametrize("path", some_by_day(PCAPS, first=1), ids=name_of)
def test_interleaved_files_are_the_whole(path: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Put every third packet into one file, as captures of several queues or interfaces do."""
    header, records = split_records(plain_bytes(path, tool))
    owners: list[int] = []
    for number, record in enumerate(records):
        is_same_time = number > 0 and record[:8] == records[number - 1][:8]
        owners.append(owners[-1] if is_same_time else (number + 1) % 3)
    parts = []
    for number in range(3):
        part = tmp_path / f"{number}.pcap"
        own = [record for record, owner in zip(records, owners, strict=True) if owner == number]
        assert own
        part.write_bytes(header + b"".join(own))
        parts.append(part)
    same(tcpwin.analyze(parts), analyze(path))


def test_files_of_several_kinds_together() -> None:
    paths = [path for path in WHOLE if path.parent.name == "wild"]
    assert {path.suffix for path in paths} == {".pcap", ".pcapng", ".gz", ".zst", ".lz4"}
    together = tcpwin.analyze(paths)
    assert together.capture.packets == sum(analyze(path).capture.packets for path in paths)
    times = [row["time_ns"] for row in together.segments().rows()]
    assert len(times) == sum(analyze(path).capture.segments for path in paths)
    inversions = sum(later < earlier for earlier, later in pairwise(times))
    assert inversions == sum(analyze(path).capture.time_backwards for path in paths)


def test_an_empty_list_has_no_packets() -> None:
    analysis = tcpwin.analyze([])
    assert (len(analysis), analysis.capture.packets) == (0, 0)
    with pytest.raises(tcpwin.SourceError, match="no capture given"):
        PathSource([])


@all_cases("path", UNREADABLE, ids=name_of)
def test_no_capture_is_an_error_that_names_it(path: Path) -> None:
    with pytest.raises(tcpwin.CaptureError) as raised:
        tcpwin.analyze(path)
    assert raised.value.file == str(path)
    assert raised.value.message
    assert str(raised.value).startswith(f"{path}: {raised.value.message}")
    assert isinstance(raised.value, tcpwin.TcpwinError)
    said = {"empty.pcap": "empty file", "text.pcap": "looks like a text file"}.get(path.name, "")
    assert said in raised.value.message
    with pytest.raises(tcpwin.CaptureError) as among_others:
        tcpwin.analyze([WHOLE[0], path])
    assert among_others.value.file == str(path)


def test_missing_files_and_folders_without_captures_are_errors(tmp_path: Path) -> None:
    with pytest.raises(tcpwin.CaptureError, match=r"absent\.pcap: No such file or directory"):
        tcpwin.analyze(tmp_path / "absent.pcap")
    with pytest.raises(tcpwin.CaptureError):
        tcpwin.analyze("a\0b.pcap")
    with pytest.raises(tcpwin.SnapshotError, match="no capture in this bundle"):
        tcpwin.analyze(tmp_path)


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_without_permission(closed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "closed.pcap"
        path.write_bytes(WHOLE[0].read_bytes())
        path.chmod(0 if closed == "file" else 0o644)
        Path(folder).chmod(0o755 if closed == "file" else 0)
        with as_nobody(), pytest.raises(tcpwin.CaptureError, match=r"closed\.pcap: Permission denied"):
            tcpwin.analyze(path)
        Path(folder).chmod(0o700)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Become another user for a while, because root may read anything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("ask", ["segments", "series", "follow"])
def test_file_that_changed_between_passes(tmp_path: Path, ask: str) -> None:
    path = tmp_path / "growing.pcap"
    data = next(path for path in WHOLE if path.name == "keep-alive.pcap").read_bytes()
    path.write_bytes(data)
    analysis = tcpwin.analyze(path)
    with path.open("ab") as file:
        file.write(data[24:])
    asks = {
        "segments": lambda: analysis.segments(),
        "series": lambda: analysis.connections[0].series("flight"),
        "follow": lambda: analysis.follow([0]),
    }
    with pytest.raises(tcpwin.SourceError, match=r"growing\.pcap changed since it was analysed; analyse it again"):
        asks[ask]()
    path.unlink()
    with pytest.raises(tcpwin.SourceError, match="changed since it was analysed"):
        asks[ask]()


def test_same_length_other_bytes_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "rewritten.pcap"
    data = next(path for path in WHOLE if path.name == "keep-alive.pcap").read_bytes()
    path.write_bytes(data)
    analysis = tcpwin.analyze(path)
    path.write_bytes(data[:-1] + b"x")
    os.utime(path, ns=(0, analysis.capture.first_time_ns or 0))
    with pytest.raises(tcpwin.SourceError, match="changed since it was analysed"):
        analysis.segments()


@pytest.mark.parametrize("name", [b"\xff\xfe.pcap", b"new\nline.pcap", b"quote\"'<b>.pcap", "é→.pcap".encode()])
def test_odd_file_names(tmp_path: Path, name: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_bytes(next(path for path in WHOLE if path.name == "keep-alive.pcap").read_bytes())
    analysis = tcpwin.analyze(path)
    assert analysis.capture.packets == 21
    assert analysis.name == f"{tmp_path}/{name.decode('utf8', 'replace')}"
    assert analysis.capture.files[0].file == analysis.name
    assert len(list(analysis.segments().rows())) == 21
    analysis.to_json().encode()
    repr(analysis).encode()


def test_every_bundled_capture_is_looked_at() -> None:
    assert len(PCAPS) >= 15
    assert len(READABLE) + len(UNREADABLE) >= 40
    assert all(rows_of(path) for path in WHOLE)
