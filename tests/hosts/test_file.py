"""Files in practice: compressed, in other encodings, truncated, binary, huge, from a pipe."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

import pytest
from cases import all_cases
from hosts.truth_files import ANY_TEXT, TRUTH
from hypothesis import given

from tcpwin.errors import SnapshotError
from tcpwin.hosts import Bundle, SnapshotFile
from tcpwin.hosts.windows_host import WindowsSample

TEXT = "Receive Window Auto-Tuning Level : normal\nECN Capability : disabled\nÜberlast : x\n"
VALUES = {"Receive Window Auto-Tuning Level": "normal", "ECN Capability": "disabled", "Überlast": "x"}
EXPECTED = [WindowsSample(None, 1, "normal", VALUES)]


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-32"),
        TEXT.encode("latin-1"),
        TEXT.replace("\n", "\r\n").encode(),
        ("\r\n" + TEXT.rstrip("\n")).replace("\n", "\r\n").encode("utf-16"),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT[:30].encode()) + gzip.compress(TEXT[30:].encode()),
    ],
    ids=["utf-8", "bom", "utf-16", "utf-16-be", "utf-32", "latin-1", "crlf", "powershell", "gzip", "two-gzip-parts"],
)
def test_encodings_and_compression(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_bytes(data)
    for source in (data, path, str(path), io.BytesIO(data)):
        file = SnapshotFile(source)
        assert file.format == "netsh"
        assert [sample.values for sample in file] == [VALUES]
        assert (file.unknown.count, file.notes) == (0, set())


def test_a_file_is_read_again_each_time() -> None:
    file = SnapshotFile(TEXT.encode(), name="x")
    assert list(file) == list(file) == EXPECTED
    assert (file.name, repr(file)) == ("x", "<SnapshotFile x: netsh>")


@all_cases(
    ("data", "message"),
    [
        (b"", "text: empty"),
        (b"\n \r\n\t\n", "text: only blank lines"),
        (b"ab\0c", "text: binary, not text: it contains zero bytes"),
        (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "text: binary, not text: it contains zero bytes"),
        (gzip.compress(b""), "text: empty"),
        (gzip.compress(TEXT.encode())[:9], "text: compressed with gzip and damaged from the start"),
        (b"\x1f\x8b", "text: compressed with gzip and damaged from the start"),
        (b"\x28\xb5\x2f\xfd....", "text: compressed by zstd; only gzip is supported: decompress it first"),
        (b"\x04\x22\x4d\x18....", "text: compressed by lz4; only gzip is supported: decompress it first"),
    ],
)
def test_unreadable_files_give_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(SnapshotError) as error:
        SnapshotFile(data)
    assert str(error.value) == message


def test_a_text_of_no_format() -> None:
    with pytest.raises(SnapshotError, match=r"^text: not a known snapshot format \(.*netsh.*\)$"):
        SnapshotFile(b"Dear all\n")


def test_a_format_that_does_not_exist() -> None:
    with pytest.raises(SnapshotError, match=r"^text: unknown snapshot format ssh; available: "):
        SnapshotFile(b"x\n", format="ssh")


def test_a_folder_and_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"a folder, not a file$"):
        SnapshotFile(tmp_path)
    with pytest.raises(FileNotFoundError):
        SnapshotFile(tmp_path / "none")


def test_a_file_opened_as_text() -> None:
    with pytest.raises(SnapshotError, match="in binary mode"):
        SnapshotFile(cast("IO[bytes]", io.StringIO(TEXT)))


def test_gzip_that_is_cut_gives_what_was_there() -> None:
    generator = random.Random(7)
    rows = "".join(f"{generator.random()} : enabled\n\n" for _ in range(2000))
    whole = gzip.compress(TEXT.encode() + b"\n" + rows.encode())
    file = SnapshotFile(whole[: len(whole) // 2])
    assert list(file) == EXPECTED
    assert 100 < file.unknown.count < 2000
    assert file.notes == {"the compressed data is truncated or damaged; only the part before the damage was read"}
    file = SnapshotFile(whole[:-8])  # Only the checksum is missing.
    assert list(file) == EXPECTED
    assert file.unknown.count == 2000


def test_gzip_with_a_wrong_checksum_gives_all() -> None:
    data = bytearray(gzip.compress(TEXT.encode()))
    data[-5] ^= 1
    file = SnapshotFile(bytes(data))
    assert list(file) == EXPECTED
    assert len(file.notes) == 1


def test_the_size_of_an_unpacked_file_can_be_limited() -> None:
    """The file has 20 samples of 100,000 bytes; the limit is within the fourth, so three are returned."""
    sample = TEXT.encode() + b" " * (100_000 - len(TEXT.encode()) - 16) + b"\n"
    text = b"".join(b"### %d\n" % (1795288970 + number) + sample for number in range(20))
    assert len(text) == 20 * 100_000
    data = gzip.compress(text)
    file = SnapshotFile(data, max_inflated_bytes=350_000)
    samples = iter(file)
    assert [next(samples) for _ in range(3)] == [
        WindowsSample((1795288970 + number) * 1_000_000_000, 5 * number + 2, "normal", VALUES) for number in range(3)
    ]
    with pytest.raises(SnapshotError) as error:
        next(samples)
    assert str(error.value) == "text: compressed, and unpacks to more than 350,000 bytes"
    for limit in (len(text), None):
        assert len(list(SnapshotFile(data, max_inflated_bytes=limit))) == 20
    with pytest.raises(SnapshotError):
        list(SnapshotFile(data, max_inflated_bytes=len(text) - 1))
    assert len(list(SnapshotFile(text, max_inflated_bytes=1))) == 20  # It is not compressed.


def test_a_compressed_member_of_a_bundle_is_limited_too(tmp_path: Path) -> None:
    """The limit is the larger of 200 times its size and its share of 64 MiB."""
    part = f"{TEXT}{' ' * 1_000_000}\n".encode()
    with gzip.open(tmp_path / "netsh.txt.gz", "wb", compresslevel=9) as out:
        for _ in range(70):
            out.write(part)
    (tmp_path / "short.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    with Bundle.open(tmp_path) as bundle:
        long, short = bundle.snapshots
        assert long.size_bytes * 200 < 32 << 20
        with pytest.raises(SnapshotError) as error:
            list(bundle.snapshot(long))
        assert str(error.value) == "netsh.txt.gz: compressed, and unpacks to more than 33,554,432 bytes"
        assert list(bundle.snapshot(short)) == EXPECTED


def test_times_behind_samples_in_a_file_longer_than_its_head() -> None:
    sample = TEXT + "Padding : x\n" * 400
    text = "".join(f"{sample}Time: {1795288970 + number}\n" for number in range(40))
    assert len(text) > 2 << 16
    file = SnapshotFile(text.encode())
    assert [each.time_ns for each in file] == [(1795288970 + number) * 1_000_000_000 for number in range(40)]
    assert file.notes == {"a time follows each sample, with no separator in between: it applies to the lines before it"}


def test_a_stream_is_read_once() -> None:
    stream = io.BytesIO(TEXT.encode())
    file = SnapshotFile(stream)
    assert list(file) == EXPECTED
    with pytest.raises(SnapshotError, match=r"^stream: a stream that was already read$"):
        list(file)
    assert not stream.closed


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    file = SnapshotFile("-")
    assert (file.name, list(file)) == ("standard input", EXPECTED)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    long = gzip.compress((TEXT + "\n" * 200_000).encode(), 0)
    writer = threading.Thread(target=path.write_bytes, args=(long,))
    writer.start()
    file = SnapshotFile(path)
    assert list(file) == EXPECTED
    writer.join()


def test_the_year_of_a_file_is_that_of_its_last_change(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text("".join(f"Nov 21 19:22:50 {line}\n" for line in TEXT.splitlines()), encoding="utf8")
    changed = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    os.utime(path, (changed, changed))
    file = SnapshotFile(path)
    assert list(file) == [WindowsSample(1795288970_000_000_000, 1, "normal", VALUES)]
    assert file.notes == {
        "the times have no year: 2026 is assumed, from when the file was written",
        "the times name no time zone: they are read as UTC",
    }


class EndlessLine(io.RawIOBase):
    """A line of 30 MiB, never completely in memory."""

    left_bytes = 30 << 20

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self.left_bytes)
        buffer[:size] = b"x" * size
        self.left_bytes -= size
        return size


def peak_bytes(samples: Iterator[Any]) -> tuple[int, int]:
    """Return the number of samples, and the peak memory of reading them."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in samples)
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.gz"
    sample = f"{TEXT}Padding : {'x' * 3000}\n".encode()
    part = b"".join(b"### %d\n" % number + sample for number in range(1795288970, 1795289070))
    peaks = []
    for parts in (1, 100):
        with gzip.open(path, "wb", compresslevel=1) as out:
            for _ in range(parts):
                out.write(part)
        count, peak = peak_bytes(iter(SnapshotFile(path)))
        assert count == 100 * parts
        peaks.append(peak)
    assert len(part) * 100 > 30_000_000
    assert peaks[1] < peaks[0] + 300_000 < 2_000_000


def test_one_endless_line_takes_little_memory() -> None:
    file = SnapshotFile(io.BufferedReader(EndlessLine()), format="netsh")
    count, peak = peak_bytes(iter(file))
    assert (count, file.unknown.count) == (0, 30)
    assert peak < 20 << 20


@given(ANY_TEXT)
def test_any_text_is_read_or_refused(text: str) -> None:
    for data in (text.encode(), gzip.compress(text.encode()), text.encode("utf-16"), zlib.compress(text.encode())):
        with suppress(SnapshotError):
            list(SnapshotFile(data))


def test_every_format_gives_its_truths_from_a_stream_too() -> None:
    path = TRUTH / "netsh" / "windows-7-heuristics.txt"
    with path.open("rb") as stream:
        assert list(SnapshotFile(stream)) == list(SnapshotFile(path))
