"""Files of `tcpwin snap`: the meaning of each record, and truncated, lost, wrong or hostile data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from cases import all_cases
from hosts.truth_files import TRUTH
from hypothesis import given
from hypothesis import strategies as st

from tcpwin.hosts import (
    CounterSample,
    KernelSample,
    MemorySample,
    SettingsSample,
    SnapshotFile,
    SocketSample,
    SocketTimer,
    UlpInfo,
)

TWO_SOCKETS = (TRUTH / "snap" / "two-sockets.jsonl").read_bytes()
LINES = TWO_SOCKETS.splitlines(keepends=True)
START_NS = 1_700_000_000_000_000_000
MS = 1_000_000


def read(data: bytes) -> tuple[list[Any], int]:
    """Return the samples of a file and the number of lines that were not understood."""
    file = SnapshotFile(data, format="snap")
    return list(file), file.unknown.count


def told(sample: Any) -> Any:
    """Return a sample with its values in a form that can be compared completely."""
    return {name: value for name, value in asdict(sample).items() if value is not None and value not in ((), {})}


ESTAB = {
    "cookie": 7,
    "state": "ESTAB",
    "recv_q_bytes": 0,
    "send_q_bytes": 10,
    "local_address": "192.0.2.1",
    "local_port": 443,
    "peer_address": "198.51.100.2",
    "peer_port": 50000,
    "uid": 33,
    "inode": 99,
    "timer": asdict(SocketTimer("on", 150 * MS, 0)),
    "shutdown": "<->",
    "rmem_alloc_bytes": 0,
    "rcvbuf_bytes": 131072,
    "rtt_ns": 10_000_000,
    "rttvar_ns": 2_000_000,
    "mss_bytes": 1000,
    "cwnd_segments": 10,
    "timestamps": True,
    "sack": False,
    "retrans_total": 0,
    "lastsnd_ns": 4 * MS,
    "lastack_ns": 8 * MS,
    "busy_ns": 400 * MS,
    "rwnd_limited_ns": 100 * MS,
    # 100 of 400 ms; ten segments of 1000 bytes in 10 ms.
    "rwnd_limited_share": 0.25,
    "send_bps": 8_000_000.0,
    "pacing_rate_bps": 9_600_000.0,
    "congestion_control": "bbr",
    "bbr": {"bw_bps": 8000, "mrtt_ns": 9_000_000, "pacing_gain": 1.25},
    "ulp": asdict(UlpInfo("tls", {"version": "1.3"})),
}
LISTENER = {
    "cookie": 8,
    "state": "LISTEN",
    "accept_queue": 1,
    "accept_queue_max": 128,
    "local_address": "*",
    "local_port": 443,
    "peer_address": "*",
    "v6only": False,
    "cwnd_segments": 10,
    "congestion_control": "cubic",
}


def at(ms: int, line: int, index: int) -> dict[str, int]:
    """Return the position fields of a sample."""
    return {"time_ns": START_NS + ms * MS, "line": line, "index": index}


# 200 ms later, with only the running times changed.
LATER = {**ESTAB, "lastsnd_ns": 204 * MS, "lastack_ns": 208 * MS, "timer": asdict(SocketTimer("on", 0, 0))}
CHANGED = {
    **{name: value for name, value in ESTAB.items() if name != "timer"},
    "send_q_bytes": 0,
    "retrans_total": 2,
    "lastsnd_ns": 0,
    "lastrcv_ns": 4 * MS,
    "lastack_ns": 0,
    "extra": {"new_field": "[1]"},
}
SOCKETS: list[dict[str, Any]] = [
    {**ESTAB, **at(100, 2, 0)},
    {**LISTENER, **at(100, 2, 0)},
    {**LATER, **at(300, 4, 1)},
    {**LISTENER, **at(300, 4, 1)},
    {**CHANGED, **at(500, 5, 2)},
]
FIRST_MEMORY = {
    ("sockets", "used"): 9,
    ("TCP", "inuse"): 3,
    ("TCP", "orphan"): 1,
    ("TCP", "tw"): 2,
    ("TCP", "alloc"): 4,
    ("TCP", "mem"): 33,
    ("TCP6", "inuse"): 5,
}


def sockets_of(samples: list[Any]) -> list[Any]:
    """Return the socket samples with all their fields."""
    return [told(sample) for sample in samples if isinstance(sample, SocketSample)]


def test_every_record_says_what_is_written() -> None:
    samples, unknown = read(TWO_SOCKETS)
    assert unknown == 0
    assert sockets_of(samples) == SOCKETS
    assert [sample for sample in samples if not isinstance(sample, SocketSample)] == [
        KernelSample(START_NS, 1, "6.1.0-18-amd64", "web1", 16384, 250),
        SettingsSample(START_NS, 1, {"net.ipv4.tcp_rmem": "4096 131072 6291456"}),
        MemorySample(START_NS + 100 * MS, 2, 3, 1, 2, 4, 33, 5, 16384, FIRST_MEMORY),
        CounterSample(START_NS + 100 * MS, 2, {"TcpInSegs": 10, "TcpOutSegs": 20}, is_increment=False, rates={}),
        MemorySample(START_NS + 300 * MS, 4, 3, 1, 2, 4, 33, 5, 16384, FIRST_MEMORY),
        CounterSample(START_NS + 300 * MS, 4, {"TcpInSegs": 10, "TcpOutSegs": 21}, is_increment=False, rates={}),
        MemorySample(START_NS + 500 * MS, 5, 2, None, None, None, None, None, 16384, {("TCP", "inuse"): 2}),
        CounterSample(START_NS + 500 * MS, 5, {"TcpInSegs": 10, "TcpOutSegs": 21}, is_increment=False, rates={}),
    ]


def test_a_cut_last_line_takes_no_more_than_itself() -> None:
    whole = b"".join(LINES[:4])
    for cut in (1, 50, len(LINES[4]) - 3):
        samples, unknown = read(whole + LINES[4][:cut])
        assert (sockets_of(samples), unknown) == (SOCKETS[:4], 1)


def test_without_its_second_part_a_sample_gives_its_first() -> None:
    """Sockets that were not written may be gone: return no others until a complete sample."""
    samples, unknown = read(b"".join([*LINES[:2], *LINES[3:]]))
    assert sockets_of(samples) == [{**ESTAB, **at(100, 2, 0)}, {**LATER, **at(300, 3, 1)}, {**CHANGED, **at(500, 4, 2)}]
    assert unknown == 0


def test_after_a_lost_line_unchanged_sockets_are_not_known() -> None:
    samples, unknown = read(b"".join([*LINES[:3], b'{"type":"sample","time_n\n', *LINES[4:]]))
    assert (sockets_of(samples), unknown) == (SOCKETS[:2], 1)
    samples, unknown = read(b"".join([*LINES[:3], b"garbage\n", *LINES[1:3]]))
    again = [{**ESTAB, **at(100, 5, 1)}, {**LISTENER, **at(100, 5, 1)}]
    assert (sockets_of(samples), unknown) == ([*SOCKETS[:2], *again], 1)


def test_files_one_after_the_other_are_read_on() -> None:
    samples, unknown = read(TWO_SOCKETS + TWO_SOCKETS)
    second = [{**sample, "line": sample["line"] + 6, "index": sample["index"] + 3} for sample in SOCKETS]
    assert (sockets_of(samples), unknown) == (SOCKETS + second, 0)


@all_cases(
    "line",
    [
        b"[]",
        b"1",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"{}",
        b'{"type":"other","time_ns":1}',
        b'{"type":"sample","parts":1}',
        b'{"type":"sample","time_ns":-1,"parts":1}',
        b'{"type":"sample","time_ns":1.5,"parts":1}',
        b'{"type":"sample","time_ns":true,"parts":1}',
        b'{"type":"sample","time_ns":1' + b"0" * 5000 + b',"parts":1}',
        b'{"type":"sample","time_ns":18446744073709551616,"parts":1}',
        b'{"type":"sample","time_ns":1,"parts":0}',
        b'{"type":"sample","time_ns":1,"parts":1,"counters":[1]}',
        b'{"type":"sample","time_ns":1,"parts":1,"counters":{"a":"1"}}',
        b'{"type":"sample","time_ns":1,"parts":1,"memory":{"TCP":1}}',
        b'{"type":"sample","time_ns":1,"parts":1,"memory":{"TCP":{"mem":1e999}}}',
        b'{"type":"sample","time_ns":1,"parts":1,"sockets":{}}',
        b'{"type":"more","time_ns":1}',
        b'{"type":"start","schema":"tcpwin/snap/2","time_ns":1}',
    ],
)
def test_a_wrong_line_is_counted(line: bytes) -> None:
    samples, unknown = read(LINES[0] + line + b"\n")
    assert [type(sample) for sample in samples] == [KernelSample, SettingsSample]
    assert unknown == 1


@all_cases(
    "socket",
    [
        {"state": "ESTAB"},
        {"cookie": "7", "state": "ESTAB"},
        {"cookie": 1},
        {"cookie": 1, "state": None},
        {"cookie": 1, "state": "ESTAB", "rtt_ns": "1"},
        {"cookie": 1, "state": "ESTAB", "rtt_ns": 1.5},
        {"cookie": 1, "state": "ESTAB", "rtt_ns": True},
        {"cookie": 1, "state": "ESTAB", "rtt_ns": 1 << 64},
        {"cookie": 1, "state": "ESTAB", "sack": 1},
        {"cookie": 1, "state": "ESTAB", "pacing_rate_bps": float("nan")},
        {"cookie": 1, "state": "ESTAB", "pacing_rate_bps": float("inf")},
        {"cookie": 1, "state": "ESTAB", "timer": "on"},
        {"cookie": 1, "state": "ESTAB", "timer": {"name": "on", "expires_ns": -1, "retransmissions": 0}},
        {"cookie": 1, "state": "ESTAB", "bbr": {"bw_bps": []}},
        {"cookie": 1, "state": "ESTAB", "ulp": {"name": 1}},
        [],
        7,
    ],
)
def test_a_wrong_socket_is_left_out_and_its_line_counted(socket: Any) -> None:
    good = {"cookie": 2, "state": "TIME-WAIT", "local_address": "::1", "peer_address": "::1"}
    sample = {"type": "sample", "time_ns": 1, "whole": True, "parts": 1, "sockets": [socket, good]}
    samples, unknown = read(LINES[0] + json.dumps(sample).encode() + b"\n")
    assert sockets_of(samples) == [{**good, "time_ns": 1, "line": 2, "index": 0}]
    assert unknown == 1


def test_a_small_file_cannot_ask_for_endless_work() -> None:
    """Only a limited number of samples may report no change; the next must be complete."""
    empty = b'{"type":"sample","time_ns":1700000000300000000,"parts":1}\n'
    samples, unknown = read(b"".join(LINES[:3]) + empty * 1200)
    assert len(sockets_of(samples)) == 2 + 2 * 1000
    assert unknown == 200


def test_only_its_own_first_line_is_recognised() -> None:
    assert SnapshotFile(TWO_SOCKETS).format == "snap"
    spaced = json.dumps(json.loads(LINES[0])).encode()
    assert SnapshotFile(spaced).format == "snap"


@given(st.lists(st.one_of(st.sampled_from(LINES), st.binary(max_size=60)), max_size=12))
def test_any_lines_are_read_without_an_error(lines: list[bytes]) -> None:
    read(b"\n".join([b"x", *lines]).replace(b"\0", b"0"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "time_ns",
    "parts",
    "whole",
    "sockets",
    "changes",
    "gone",
    "memory",
    "counters",
    "kernel",
    "left_out",
    "settings",
)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(NAMES), VALUES), max_size=6))
def test_any_value_in_any_place_is_read_without_an_error(edits: list[tuple[int, str, Any]]) -> None:
    records = [json.loads(line) for line in LINES]
    for line, name, value in edits:
        records[line][name] = value
    read("\n".join(map(json.dumps, records)).encode())


@given(st.lists(st.tuples(st.sampled_from(sorted({*ESTAB, *LISTENER})), VALUES), max_size=4))
def test_any_value_in_a_socket_is_read_without_an_error(edits: list[tuple[str, Any]]) -> None:
    records = [json.loads(line) for line in LINES]
    records[1]["sockets"][0].update(edits)
    records[4]["changes"][0].update(edits)
    read("\n".join(map(json.dumps, records)).encode())
