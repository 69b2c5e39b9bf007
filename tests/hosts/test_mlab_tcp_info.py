"""M-Lab's tcp-info: records of this host's kernel, compared with its own sockets' values."""

from __future__ import annotations

import json
import socket
import struct
import sys

import pytest
from cases import all_cases
from hosts.archive import archive, metadata, record
from hosts.truth_files import ANY_TEXT, read, read_text
from hypothesis import given

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.collect import SocketDump
from tcpwin.hosts.lines import KEPT_CHARACTERS

MS, US = 1_000_000, 1_000
# Values of `getsockopt(TCP_INFO)` of the same socket for each record, read by offsets in the struct.
ALWAYS = {"local_port": 55972, "peer_port": 42733, "mss_bytes": 47_616, "snd_wscale": 10, "rcv_wscale": 10}
TOLD = (
    ALWAYS
    | {"rto_ns": 208 * MS, "rtt_ns": 5_515 * US, "rttvar_ns": 10_988 * US, "cwnd_segments": 12, "bytes_acked": 50_001}
    | {"segs_out": 4, "busy_ns": 44 * MS, "rwnd_limited_ns": 0, "notsent_bytes": 0},
    ALWAYS
    | {"rto_ns": 216 * MS, "rtt_ns": 14_206 * US, "rttvar_ns": 21_347 * US, "cwnd_segments": 16}
    | {"bytes_acked": 179_537, "segs_out": 8, "busy_ns": 296 * MS, "rwnd_limited_ns": 252 * MS}
    | {"notsent_bytes": 3_779_744},
)


def test_records_that_a_kernel_gave() -> None:
    """Two records of a loopback connection, Linux 6.18; the second while its receiver had no space."""
    samples, unknown = read("mlab_tcp_info", "two-records.jsonl")
    assert unknown == []
    first, second = samples
    assert (first.line, first.index, second.line, second.index) == (2, 0, 3, 1)
    assert first.time_ns == 1_764_041_234_500 * MS
    assert second.time_ns == first.time_ns + 250 * MS
    assert (first.local_address, first.peer_address) == ("127.0.0.1", "127.0.0.1")
    assert first.state == "ESTAB"
    for sample, said in zip(samples, TOLD, strict=True):
        assert {name: getattr(sample, name) for name in said} == said
    assert second.bytes_acked > first.bytes_acked
    assert second.rwnd_limited_share == second.rwnd_limited_ns / second.busy_ns


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the records are a Linux kernel's")
def test_a_socket_as_it_says_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x" * 100_000)
            accepted.recv(50_000, socket.MSG_WAITALL)
            port = client.getsockname()[1]
            ports = (port, server.getsockname()[1])
            with SocketDump() as dump:
                [message] = [each for each in dump._dump() if struct.unpack_from("!2H", each, 4) == ports]
            info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    lines = [metadata(), record(message, "2026-11-25T03:27:14.5Z")]
    file = SnapshotFile(archive(lines))
    assert file.format == "mlab_tcp_info"
    [sample] = file
    assert (sample.local_port, sample.state, sample.netid) == (port, "ESTAB", "tcp")
    # Offsets in `struct tcp_info`, include/uapi/linux/tcp.h.
    numbers = {
        "mss_bytes": (16, "I", 1),
        "rto_ns": (8, "I", US),
        "rtt_ns": (68, "I", US),
        "cwnd_segments": (80, "I", 1),
    }
    numbers |= {"bytes_acked": (120, "Q", 1), "segs_out": (136, "I", 1), "busy_ns": (168, "Q", US)}
    for name, (at, code, factor) in numbers.items():
        assert getattr(sample, name) == struct.unpack_from(f"={code}", info, at)[0] * factor, name
    assert (sample.snd_wscale, sample.rcv_wscale) == (info[6] & 15, info[6] >> 4)


@all_cases(
    "text",
    [
        '{"Timestamp":"2026-11-25T03:27:14.5Z","RawIDM":"AAAA","Attributes":[]}',
        '{"Timestamp":"2026-11-25T03:27:14.5Z","RawIDM":"no base64","Attributes":[]}',
        '{"Timestamp":"yesterday","RawIDM":"AAAA","Attributes":[]}',
        '{"Timestamp":"2026-11-25T03:27:14.5Z","RawIDM":7,"Attributes":3}',
        '{"Timestamp":"2026-11-25T03:27:14.5Z"}',
        "[1, 2]",
        "[" * 5000,
        "not JSON",
    ],
)
def test_anything_but_a_record_is_rejected(text: str) -> None:
    assert read_text("mlab_tcp_info", text + "\n") == ([], [(1, text[:KEPT_CHARACTERS])])


def test_attributes_without_end_are_rejected() -> None:
    text = json.dumps({"Timestamp": "2026-11-25T03:27:14.5Z", "RawIDM": "", "Attributes": [""] * 1000})
    assert read_text("mlab_tcp_info", text)[0] == []


@given(ANY_TEXT)
def test_any_text_is_read_or_rejected(text: str) -> None:
    read_text("mlab_tcp_info", "x\n" + text)
