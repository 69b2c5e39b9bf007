"""`tcpwin packets`: one table in three formats."""

import csv
import io
import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import polars
import pytest
from analysis.bundled import READABLE, name_of, rows_of
from cli.command import CUT_BLOCK, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TCPWIN, refused, tcpwin
from live import HANG_S
from spread import some_by_day

TEXTS = {"direction", "src", "dst", "events"}
COLUMNS = [
    "frame",
    "time_ns",
    "connection",
    "direction",
    "src",
    "sport",
    "dst",
    "dport",
    "seq",
    "ack",
    "length",
    "flags",
    "window_raw",
    "window",
    "shift",
    "bytes_in_flight",
    "pipe",
    "rtt_ns",
    "events",
]


def from_csv(data: bytes) -> list[dict[str, Any]]:
    rows = csv.DictReader(io.StringIO(data.decode()))
    assert rows.fieldnames == COLUMNS
    return [
        {name: value if name in TEXTS else int(value) if value else None for name, value in row.items()} for row in rows
    ]


def from_jsonl(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize("path", some_by_day(READABLE), ids=name_of)
def test_formats_hold_the_same(path: Path, tmp_path: Path) -> None:
    rows = rows_of(path)
    assert from_csv(tcpwin("packets", path).stdout) == rows
    assert from_jsonl(tcpwin("packets", "--format", "jsonl", path).stdout) == rows
    out = tmp_path / "out.parquet"
    done = tcpwin("packets", path, "-o", out)
    assert (done.returncode, done.stdout) == (0, b"")
    frame = polars.read_parquet(out)
    assert frame.columns == COLUMNS
    assert frame.rows(named=True) == rows


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("out.csv", from_csv),
        ("out.jsonl", from_jsonl),
        ("out.JSONL", from_jsonl),
        ("out", from_csv),
        ("out.txt", from_csv),
    ],
)
def test_name_of_the_output_gives_the_format(name: str, read: Any, tmp_path: Path) -> None:
    out = tmp_path / name
    done = tcpwin("packets", "-o", out, KEEP_ALIVE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert read(out.read_bytes()) == rows_of(KEEP_ALIVE)


def test_named_format_comes_before_the_name(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert tcpwin("packets", "--format", "csv", "-o", out, KEEP_ALIVE).returncode == 0
    assert from_csv(out.read_bytes()) == rows_of(KEEP_ALIVE)
    other = tmp_path / "out.csv"
    assert tcpwin("packets", "--format", "parquet", "-o", other, KEEP_ALIVE).returncode == 0
    assert polars.read_parquet(other).rows(named=True) == rows_of(KEEP_ALIVE)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_one_connection(form: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{form}"
    assert tcpwin("packets", "--connection", 7, "-o", out, MANY_SHORT).returncode == 0
    expected = [row for row in rows_of(MANY_SHORT) if row["connection"] == 7]
    assert expected
    if form == "parquet":
        assert polars.read_parquet(out).rows(named=True) == expected
    else:
        assert {"csv": from_csv, "jsonl": from_jsonl}[form](out.read_bytes()) == expected
    assert "no connection 65: the capture has 65" in refused("packets", "--connection", 65, "-o", out, MANY_SHORT)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_some_columns(form: str, tmp_path: Path) -> None:
    out, wanted = tmp_path / f"out.{form}", ["frame", "src", "window", "events"]
    assert tcpwin("packets", "--columns", "events,frame,window,src", "-o", out, KEEP_ALIVE).returncode == 0
    expected = [{name: row[name] for name in wanted} for row in rows_of(KEEP_ALIVE)]
    if form == "csv":
        found = list(csv.DictReader(io.StringIO(out.read_text())))
        assert found == [{n: "" if v is None else str(v) for n, v in row.items()} for row in expected]
    elif form == "jsonl":
        assert from_jsonl(out.read_bytes()) == expected
    else:
        assert polars.read_parquet(out).rows(named=True) == expected


def test_unknown_columns_are_refused() -> None:
    assert "unknown column nonsense: choose from frame, time_ns" in refused(
        "packets", "--columns", "frame,nonsense", KEEP_ALIVE, status=2
    )
    assert "name at least one" in refused("packets", "--columns", ",", KEEP_ALIVE, status=2)


def test_parquet_from_standard_input(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert tcpwin("packets", "-o", out, "-", input=SLOW_READER.read_bytes()).returncode == 0
    assert polars.read_parquet(out).height == 4586


def test_parquet_of_a_cut_file_warns(tmp_path: Path) -> None:
    done = tcpwin("packets", "-o", tmp_path / "out.parquet", CUT_BLOCK)
    assert done.returncode == 0
    assert done.stderr.decode().endswith("(at byte 596)\n")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_output_that_cannot_be_written(form: str, tmp_path: Path) -> None:
    out = tmp_path / "absent" / f"out.{form}"
    text = refused("packets", "-o", out, KEEP_ALIVE)
    assert str(out) in text
    assert "No such file or directory" in text
    refused("packets", "-o", tmp_path, KEEP_ALIVE, status=2)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("link", ["same", "hard", "symbolic"])
def test_the_capture_itself_is_refused_as_output(link: str, form: str, tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(KEEP_ALIVE.read_bytes())
    out = capture if link == "same" else tmp_path / "link"
    if link == "hard":
        os.link(capture, out)
    elif link == "symbolic":
        out.symlink_to(capture)
    text = refused("packets", "--format", form, "-o", out, capture, status=2)
    assert "is also an input file" in text
    assert capture.read_bytes() == KEEP_ALIVE.read_bytes()


def test_standard_input_is_refused_as_output(tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(KEEP_ALIVE.read_bytes())
    with capture.open("rb") as file:
        text = refused("packets", "-", "-o", capture, status=2, stdin=file)
    assert "is also an input file" in text
    assert capture.read_bytes() == KEEP_ALIVE.read_bytes()


def test_an_output_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"x" * 1_000_000)
    assert tcpwin("packets", "-o", out, KEEP_ALIVE).returncode == 0
    assert from_csv(out.read_bytes()) == rows_of(KEEP_ALIVE)


def test_rows_are_those_of_tshark(tool: Any) -> None:
    """Compare frame, time and header fields with tshark."""
    fields = ["frame.number", "frame.time_epoch", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.window_size_value"]
    command = [tool("tshark"), "-r", SLOW_READER, "-T", "fields", *(word for name in fields for word in ("-e", name))]
    lines = subprocess.run(command, capture_output=True, check=True, timeout=HANG_S, text=True).stdout.splitlines()
    told = [line.split("\t") for line in lines]
    rows = from_csv(tcpwin("packets", SLOW_READER).stdout)
    assert len(told) == len(rows) == 4586
    for row, (frame, time, seq, ack, length, window) in zip(rows, told, strict=True):
        seconds, fraction = time.split(".")
        time_ns = int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
        assert (row["frame"], row["time_ns"]) == (int(frame), time_ns)
        assert (row["seq"], row["length"], row["window_raw"]) == (int(seq), int(length), int(window))
        # Without the ACK flag the field has no meaning: tshark omits it or shows its raw value.
        assert row["ack"] == int(ack or 0) or not row["flags"] & 0x10


@pytest.mark.nightly
def test_memory_of_parquet_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """As a whole table, 500,000 more rows took about 100 MB more."""
    short, long = (write_ping_pong(tmp_path, count) for count in (100_000, 600_000))
    assert peak_kib("packets", long, "-o", tmp_path / "out.parquet") < 40_000 + peak_kib(
        "packets", short, "-o", tmp_path / "short.parquet"
    )
    # With the least and largest value of each group, polars reads only one of them.
    found = polars.scan_parquet(tmp_path / "out.parquet").filter(polars.col("frame") == 599_999).collect()
    assert found["length"].to_list() == [10]
    frame = polars.read_parquet(tmp_path / "out.parquet")
    assert frame["frame"].to_list() == list(range(1, 600_001))
    assert frame["length"].sum() == 600_000 * 10


def write_ping_pong(folder: Path, count: int) -> Path:
    """Write many segments of ten bytes, alternating between both sides."""
    packets = io.BytesIO()
    packets.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    ends, seqs = ((bytes([10, 0, 0, 1]), 1024), (bytes([10, 0, 0, 2]), 80)), [1000, 2000]
    for number in range(count):
        side = number % 2
        (src, sport), (dst, dport) = ends[side], ends[1 - side]
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 50, number & 0xFFFF, 0, 64, 6, 0, src, dst)
        tcp = struct.pack("!HHIIBBHHH", sport, dport, seqs[side], seqs[1 - side], 0x50, 0x18, 8192, 0, 0)
        packets.write(struct.pack("<IIII", 1_700_000_000 + number // 1000, number % 1000 * 1000, 40, 50) + ip + tcp)
        seqs[side] += 10
    path = folder / f"{count}.pcap"
    path.write_bytes(packets.getvalue())
    return path


def peak_kib(*arguments: object) -> int:
    process = subprocess.Popen([TCPWIN, *map(str, arguments)], stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss
