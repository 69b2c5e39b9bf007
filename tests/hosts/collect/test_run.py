"""A recording on this kernel: files, pace, and reading it back."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hosts.collect.connections import Pairs, receive, samples_of

from tcpwin.errors import OutputError
from tcpwin.hosts import CounterSample, MemorySample, SnapshotFile, SocketSample
from tcpwin.hosts.collect import Filter, record
from tcpwin.hosts.collect.sockets import Sockets
from tcpwin.hosts.collect.writer import sample_lines

MS = 1_000_000


def test_many_sockets_take_several_lines(tmp_path: Path) -> None:
    """No line exceeds the length that readers accept, and all parts form one sample."""
    records = [{"cookie": number, "state": "TIME-WAIT", "local_address": "x" * 1000} for number in range(1000)]
    start = {"type": "start", "schema": "tcpwin/snap/1", "time_ns": 1}
    whole = sample_lines({"type": "sample", "time_ns": 2, "whole": True}, Sockets(whole=records))
    changes = [f'{{"cookie":{number},"uid":7}}' for number in range(401)]
    later = sample_lines({"type": "sample", "time_ns": 3}, Sockets(changes=changes, gone=list(range(401, 30_401))))
    assert [len(whole), len(later)] == [3, 2]
    assert all(len(line) < 1 << 20 for line in (*whole, *later))
    path = tmp_path / "snap.jsonl"
    path.write_bytes(b"".join([json.dumps(start, separators=(",", ":")).encode() + b"\n", *whole, *later]))
    samples = samples_of(path)
    assert [(sample.index, sample.time_ns) for sample in samples] == [(0, 2)] * 1000 + [(1, 3)] * 401
    assert [sample.cookie for sample in samples] == [*range(1000), *range(401)]
    assert {sample.uid for sample in samples[1000:]} == {7}


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    text = path.read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def samples(count: int) -> Callable[[float], bool]:
    """Return a wait that ends after this many samples, however slow the machine is."""
    answers = iter([False] * (count - 1) + [True])

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return next(answers)

    return wait


def test_files_are_bounded_and_self_contained(pairs: Pairs, tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    done = record(path, every_ns=10 * MS, duration_ns=700 * MS, filter=pairs.filter, max_bytes=1 << 24, keep=3)
    assert done.files == 1
    path.unlink()
    # Every sample exceeds the space left in the file.
    done = record(path, every_ns=20 * MS, filter=pairs.filter, max_bytes=1, keep=3, wait=samples(7))
    names = [path, tmp_path / "snap.jsonl.1", tmp_path / "snap.jsonl.2"]
    assert sorted(tmp_path.iterdir()) == names
    assert done.files == done.samples == 7
    times = []
    for each in names:
        records = lines_of(each)
        assert [record["type"] for record in records] == ["start", "sample"] + ["end"] * (each == path)
        assert records[1]["whole"] is True
        assert len(records[1]["counters"]) > 100
        assert len({sample.cookie for sample in samples_of(each)}) == pairs.count
        times.append(records[0]["time_ns"])
    assert times == sorted(times, reverse=True)


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    (tmp_path / "snap.jsonl.2").write_text("older")
    with pytest.raises(OutputError, match=r"snap\.jsonl\.2 already exists; choose another file$"):
        record(path, duration_ns=1)
    assert [each.name for each in tmp_path.iterdir()] == ["snap.jsonl.2"]


@pytest.mark.parametrize("every_ms", [10, 25, 70])
def test_each_slot_is_sampled_or_skipped(every_ms: int, tmp_path: Path) -> None:
    """Ten slots after the first; if one takes longer than a slot, the next ones are skipped."""
    path = tmp_path / "snap.jsonl"
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        time.sleep(seconds + (0.1 if len(waits) == 3 else 0))
        return False

    done = record(path, every_ns=every_ms * MS, duration_ns=10 * every_ms * MS, wait=wait)
    assert done.samples + done.skipped == 11
    assert done.skipped >= {10: 7, 25: 4, 70: 1}[every_ms]
    records = lines_of(path)
    assert [records[0]["type"], records[-1]["type"]] == ["start", "end"]
    assert (records[-1]["samples"], records[-1]["skipped"]) == (done.samples, done.skipped)
    assert records[-1]["reason"] == "time"
    assert max(waits) <= every_ms / 1000


def test_it_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    done = record(path, every_ns=10 * MS, wait=samples(3))
    assert done.samples == 3
    assert lines_of(path)[-1]["reason"] == "asked"


def test_a_recording_is_read_back(pair: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    """Data flows between samples, so counters, windows and queues belong to each sample's time."""
    path = tmp_path / "snap.jsonl"
    client, server = pair
    ends = samples(5)

    def wait(seconds: float) -> bool:
        client.sendall(b"q" * 1000)
        receive(server, 1000)
        return ends(seconds)

    sender = f"sport = :{client.getsockname()[1]} and dport = :{client.getpeername()[1]}"
    record(path, every_ns=60 * MS, filter=Filter(sender), wait=wait)
    file = SnapshotFile(path)
    everything = list(file)
    sockets = [sample for sample in everything if isinstance(sample, SocketSample)]
    assert [sample.bytes_sent for sample in sockets] == [1000 * n for n in range(len(sockets))]
    assert [sample.index for sample in sockets] == list(range(len(sockets)))
    assert len(sockets) == 5
    counters = [sample for sample in everything if isinstance(sample, CounterSample)]
    segments = [sample.values["TcpOutSegs"] for sample in counters]
    assert len(counters) == len(sockets)
    assert segments == sorted(segments)
    assert segments[0] < segments[-1]
    assert all(sample.values.keys() == counters[0].values.keys() for sample in counters)
    memory = [sample for sample in everything if isinstance(sample, MemorySample)]
    assert len(memory) == len(sockets)
    assert all((sample.tcp_inuse or 0) >= 3 for sample in memory)
