"""One capture used by several: threads, forks, and files that are closed, moved, touched or replaced."""

from __future__ import annotations

import copy
import gzip
import io
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import WHOLE, rows_of
from cases import all_cases
from ladder import parse

import tcpwin
from tcpwin.sources.source import SEEN_BYTES

LONG = next(path for path in WHOLE if path.name == "slow-reader.pcap.gz")
SMALL = next(path for path in WHOLE if path.name == "keep-alive.pcap")
SCENARIOS = Path(__file__).parents[1] / "scenarios"
THREADS = 6
OPENED: list[Any] = []
CHANGED = "changed since it was analysed"


def temporary(data: bytes) -> Any:
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - closed after the test
    file.write(data)
    file.seek(0)
    OPENED.append(file)
    return file


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Seekable:
    """A seekable object that is neither a system file nor in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def seekable(self) -> bool:
        return True

    def seek(self, place: int) -> int:
        return self._data.seek(place)

    def tell(self) -> int:
        return self._data.tell()

    def read(self, size: int, /) -> bytes:
        return self._data.read(size)


class Stream:
    """An object with only `read`, a few bytes per call."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._data.read(min(size, 5_000))


def unpacked(data: bytes) -> Any:
    return gzip.GzipFile(fileobj=io.BytesIO(data))


KINDS = [temporary, io.BytesIO, Seekable, Stream, unpacked]


def row_count(table: Any) -> int:
    return sum(1 for _ in table.rows())


def results_of(analysis: tcpwin.Analysis) -> list[Any]:
    """Return the results of second readings, of all packets and of one connection."""
    return [list(analysis.segments().rows()), analysis.connections[0].view(buckets=50).series("flight").max.tolist()]


@all_cases("make", KINDS)
def test_threads_read_one_open_file(make: Callable[[bytes], Any]) -> None:
    analysis = tcpwin.analyze(make(LONG.read_bytes()))
    expected = results_of(tcpwin.analyze(LONG))
    barrier = threading.Barrier(THREADS)

    def ask(_: int) -> list[Any]:
        barrier.wait()
        return results_of(analysis)

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(each == expected for each in pool.map(ask, range(THREADS)))


@pytest.mark.parametrize("make", [temporary, io.BytesIO])
def test_threads_analyse_one_open_file(make: Callable[[bytes], Any]) -> None:
    """Each runs a separate analysis; the file's position is unchanged."""
    file = make(LONG.read_bytes())
    barrier = threading.Barrier(THREADS)

    def ask(_: int) -> int:
        barrier.wait()
        return sum(row_count(tcpwin.analyze(file).segments()) for _ in range(3))

    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(ask, range(THREADS))) == {3 * len(rows_of(LONG))}
    assert file.tell() == 0


@all_cases("make", KINDS)
def test_the_child_of_a_fork_reads_on(make: Callable[[bytes], Any]) -> None:
    """While another thread of the parent reads, and both at once."""
    analysis = tcpwin.analyze(make(LONG.read_bytes()))
    expected = results_of(analysis)
    done = threading.Event()

    def go_on() -> None:
        while not done.is_set():
            analysis.segments()

    reader = threading.Thread(target=go_on)
    reader.start()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            os._exit(int(results_of(analysis) != expected))
        children.append(child)
    assert results_of(analysis) == expected
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    done.set()
    reader.join()


def test_a_stream_continues_in_the_process_that_began() -> None:
    from tcpwin.sources import FileSource

    stream = Stream(SMALL.read_bytes())
    source = FileSource(stream, name="a stream")  # type: ignore[arg-type]
    begun: Any = source.open()
    assert begun.read(100) == SMALL.read_bytes()[:100]
    child = os.fork()
    if child == 0:
        try:
            tcpwin.analyze(source)
        except tcpwin.TcpwinError as error:
            os._exit(int("a stream can only be read further by the process that began reading it" not in str(error)))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The next reader begins where the last one stopped.
    assert list(tcpwin.analyze(source).segments().rows()) == rows_of(SMALL)


@pytest.mark.parametrize("make", [temporary, lambda _: SMALL.open("rb"), lambda _: SMALL.open("rb", buffering=0)])
def test_a_closed_file_of_the_system_is_read_on(make: Callable[[bytes], Any]) -> None:
    with make(SMALL.read_bytes()) as file:
        analysis = tcpwin.analyze(file)
        descriptor = file.fileno()
    # A new file with the same descriptor number is unrelated.
    other = os.open(LONG, os.O_RDONLY)
    assert other == descriptor
    assert list(analysis.segments().rows()) == rows_of(SMALL)
    assert analysis.connections[0].events
    os.close(other)


@pytest.mark.parametrize("make", [io.BytesIO, unpacked])
def test_a_closed_file_in_memory_says_so(make: Callable[[bytes], Any]) -> None:
    file = make(LONG.read_bytes())
    analysis = tcpwin.analyze(file)
    file.close()
    with pytest.raises(tcpwin.SourceError, match="was closed: keep it open"):
        analysis.segments()
    with pytest.raises(tcpwin.SourceError, match="is closed: pass an open file"):
        tcpwin.analyze(file)


def test_a_file_others_continue_to_read_counts_as_the_same() -> None:
    with SMALL.open("rb") as file:
        analysis = tcpwin.analyze(file)
        assert file.tell() == 0
        file.seek(5)
        assert list(analysis.segments().rows()) == rows_of(SMALL)
        assert file.tell() == 5


def long_capture(folder: Path) -> Path:
    """A capture of which not all bytes are compared."""
    path = folder / "long.pcap"
    data = SMALL.read_bytes()
    path.write_bytes(data[:24] + data[24:] * (2 * SEEN_BYTES // len(data)))
    assert path.stat().st_size > SEEN_BYTES
    return path


def short_capture(folder: Path) -> Path:
    return Path(shutil.copy(SMALL, folder / "short.pcap"))


def rename_and_back(path: Path) -> None:
    path.rename(path.with_suffix(".away")).rename(path)


def copy_and_back(path: Path) -> None:
    shutil.copy2(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


SAME = {
    "another mode": lambda path: path.chmod(0o600),
    "a second name": lambda path: os.link(path, path.with_suffix(".link")),
    "renamed and back": rename_and_back,
    "a copy with its times": copy_and_back,
}


@pytest.mark.parametrize("make", [short_capture, long_capture])
@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_an_edit_that_changes_no_byte_is_not_a_change(
    change: Callable[[Path], object], make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path)
    analysis = tcpwin.analyze(path)
    expected = list(analysis.segments().rows())
    change(path)
    assert list(analysis.segments().rows()) == expected


def test_a_short_file_that_was_only_touched_is_the_same(tmp_path: Path) -> None:
    path = short_capture(tmp_path)
    analysis = tcpwin.analyze(path)
    os.utime(path)
    assert list(analysis.segments().rows()) == rows_of(SMALL)


@pytest.mark.parametrize("make", [short_capture, long_capture])
@pytest.mark.parametrize("by", ["another file", "other bytes in it"])
def test_another_file_of_the_same_size_and_time(make: Callable[[Path], Path], by: str, tmp_path: Path) -> None:
    path = make(tmp_path)
    analysis = tcpwin.analyze(path)
    status, data = path.stat(), bytearray(path.read_bytes())
    # The sequence number of the first packet: the same number of packets at the same times.
    data[24 + 16 + 14 + 20 + 4] ^= 0x40
    other = path.with_suffix(".other") if by == "another file" else path
    other.write_bytes(data)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    with pytest.raises(tcpwin.SourceError, match=CHANGED):
        analysis.segments()


@pytest.mark.parametrize("by", ["another file", "other bytes in it"])
def test_an_index_is_of_one_file(by: str, tmp_path: Path) -> None:
    """Another file of the same size and time is read as a whole, not at the index's places."""
    path, index = short_capture(tmp_path), tmp_path / "index"
    tcpwin.analyze(path, index=index)
    status, data, before = path.stat(), bytearray(path.read_bytes()), index.read_bytes()
    data[24 + 16 + 14 + 20 + 4] ^= 0x40
    other = path.with_suffix(".other") if by == "another file" else path
    other.write_bytes(data)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    analysis = tcpwin.analyze(path, index=index)
    assert index.read_bytes() != before
    with_index = [list(each.segments().rows()) for each in analysis.connections]
    assert with_index == [list(each.segments().rows()) for each in tcpwin.analyze(path).connections]


def test_connections_of_one_four_tuple_are_read_again(tmp_path: Path) -> None:
    """All together and each alone: a refused SYN in between changes nothing."""
    path = tmp_path / "challenged.pcap"
    parse((SCENARIOS / "connection-syn-challenged-twice.ladder").read_text()).write_pcap(path)
    analysis = tcpwin.analyze(path)
    analysis.follow(range(len(analysis)))
    assert [row_count(each.segments()) for each in analysis] == [9, 1, 1]


def test_copies_are_the_analysis_itself() -> None:
    analysis = tcpwin.analyze(SMALL)
    [first] = analysis.connections
    stored = {"analysis": analysis, "connection": first, "direction": first.a_to_b}
    for copied in (copy.deepcopy(stored), copy.copy(stored)):
        assert copied["analysis"] is analysis
        assert copied["connection"].id == first.id
        assert copied["direction"].acked_bytes == first.a_to_b.acked_bytes
    assert copy.copy(analysis) is analysis


@pytest.mark.parametrize("part", ["analysis", "connection"])
def test_a_source_read_once_cannot_be_pickled(part: str) -> None:
    with SMALL.open("rb") as file:
        analysis = tcpwin.analyze(file)
    of = {"analysis": analysis, "connection": analysis.connections[0]}
    with pytest.raises(TypeError, match=r"cannot be pickled: unpickling reads the capture again.*to_json"):
        pickle.dumps(of[part])


@pytest.mark.parametrize("kind", ["path", "text", "bytes", "several"])
def test_a_pickled_analysis_asks_its_question_again(kind: str) -> None:
    given: Any = {"path": SMALL, "text": str(SMALL), "bytes": SMALL.read_bytes(), "several": [SMALL, SMALL]}[kind]
    analysis = tcpwin.analyze(given, start=0.01, window_scales=None, buckets=64)
    again, first = pickle.loads(pickle.dumps((analysis, analysis.connections[0])))
    assert again is not analysis
    assert again.to_json() == analysis.to_json()
    assert first._analysis is again, "one reading for all that is pickled together"
    assert first.verdict == analysis.connections[0].verdict
    assert first.series("flight").last.tolist() == analysis.connections[0].series("flight").last.tolist()


def test_a_pickled_analysis_is_of_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / SMALL.name
    path.write_bytes(SMALL.read_bytes())
    monkeypatch.chdir(tmp_path)
    analysis = tcpwin.analyze(SMALL.name)
    monkeypatch.chdir("/")
    stored = pickle.dumps(analysis)
    assert len(pickle.loads(stored)) == len(tcpwin.analyze(SMALL))
    path.write_bytes(SMALL.read_bytes() + b"\0")
    with pytest.raises(tcpwin.SourceError, match="changed since it was analysed"):
        pickle.loads(stored)
    path.unlink()
    with pytest.raises(tcpwin.SourceError, match="No such file"):
        pickle.loads(stored)


def test_a_pickled_analysis_has_its_snapshots() -> None:
    bundle = SMALL.parents[1] / "bundles" / "slow-reader.zip"
    analysis = tcpwin.analyze(bundle)
    again = pickle.loads(pickle.dumps(analysis))
    assert len(again.hosts) == len(analysis.hosts) > 0
    assert again.to_json() == analysis.to_json()
