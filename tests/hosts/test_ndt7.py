"""M-Lab's ndt7: results of servers, and messages received by clients."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import all_cases
from hosts.truth_files import ANY_TEXT, read_text
from hypothesis import given

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.formats.ndt7 import MEMBERS
from tcpwin.hosts.lines import KEPT_CHARACTERS

MS, US = 1_000_000, 1_000
START_NS = 1_563_305_165_987_853_779
# Layout of github.com/m-lab/ndt-server, spec/data-format.md; members of github.com/m-lab/tcp-info, tcp/tcpinfo.go.
FIRST = {
    "State": 1,
    "CAState": 0,
    "Retransmits": 0,
    "Probes": 0,
    "Backoff": 0,
    "Options": 7,
    "WScale": 119,
    "AppLimited": 0,
    "RTO": 204000,
    "ATO": 40000,
    "SndMSS": 1398,
    "RcvMSS": 536,
    "Unacked": 57,
    "Sacked": 0,
    "Lost": 0,
    "Retrans": 0,
    "Fackets": 0,
    "LastDataSent": 0,
    "LastAckSent": 0,
    "LastDataRecv": 248,
    "LastAckRecv": 4,
    "PMTU": 1500,
    "RcvSsThresh": 64076,
    "RTT": 2803,
    "RTTVar": 452,
    "SndSsThresh": 2147483647,
    "SndCwnd": 64,
    "AdvMSS": 1448,
    "Reordering": 3,
    "RcvRTT": 0,
    "RcvSpace": 14600,
    "TotalRetrans": 12,
    "PacingRate": 58_000_000,
    "MaxPacingRate": -1,
    "BytesAcked": 9_000_000,
    "BytesReceived": 1204,
    "SegsOut": 6600,
    "SegsIn": 2100,
    "NotsentBytes": 130_000,
    "MinRTT": 1904,
    "DataSegsIn": 4,
    "DataSegsOut": 6598,
    "DeliveryRate": 41_000_000,
    "BusyTime": 250_000,
    "RWndLimited": 100_000,
    "SndBufLimited": 0,
    "Delivered": 6500,
    "DeliveredCE": 0,
    "BytesSent": 9_230_000,
    "BytesRetrans": 16_776,
    "DSackDups": 0,
    "ReordSeen": 0,
    "RcvOooPack": 0,
    "SndWnd": 3_145_728,
    "ElapsedTime": 250_407,
}
RESULT = {
    "GitShortCommit": "773d318",
    "Version": "v0.20.6",
    "ClientIP": "198.51.100.7",
    "ClientPort": 40910,
    "ServerIP": "192.0.2.1",
    "ServerPort": 443,
    "StartTime": "2019-07-16T15:26:05.987748459-04:00",
    "EndTime": "2019-07-16T15:26:16.008714743-04:00",
    "Download": {
        "StartTime": "2019-07-16T15:26:05.987853779-04:00",
        "EndTime": "2019-07-16T15:26:16.008677965-04:00",
        "UUID": "ndt-x_1563200740_unsafe_00000000000157C6",
        "ClientMeasurements": [{"AppInfo": {"NumBytes": 8_900_000, "ElapsedTime": 252_000}}],
        "ClientMetadata": [{"Name": "client_library_name", "Value": "ndt7-js"}],
        "ServerMeasurements": [
            {"BBRInfo": {"BW": 41_000_000, "MinRTT": 1904, "ElapsedTime": 250_407}, "TCPInfo": FIRST},
            {"AppInfo": {"NumBytes": 1, "ElapsedTime": 2}},
            {"TCPInfo": {**FIRST, "ElapsedTime": 500_912, "BytesAcked": 19_000_000, "State": 8}},
        ],
    },
}
# From the documentation of M-Lab's clients: https://github.com/m-lab/ndt7-client-ios, NDT7Measurement.
MESSAGE = {
    "AppInfo": {"ElapsedTime": 1234, "NumBytes": 1234},
    "ConnectionInfo": {"Client": "1.2.3.4:5678", "Server": "[2001:db8::1]:2345", "UUID": "x"},
    "Origin": "server",
    "Test": "download",
    "TCPInfo": {
        "BusyTime": 1234,
        "BytesAcked": 1235,
        "BytesReceived": 1236,
        "BytesSent": 1237,
        "BytesRetrans": 0,
        "ElapsedTime": 1239,
        "MinRTT": 1240,
        "RTT": 1241,
        "RTTVar": 1242,
        "RWndLimited": 617,
        "SndBufLimited": 0,
    },
}
TRUTHS = {
    "result": json.dumps(RESULT),
    "result-indented": json.dumps(RESULT, indent=2),
    "messages": json.dumps(MESSAGE) + "\n" + json.dumps({**MESSAGE, "ConnectionInfo": None}) + "\n",
    "printed": json.dumps({"Key": "measurement", "Value": MESSAGE}) + "\n",
}


def read(text: str) -> tuple[list[Any], int]:
    file = SnapshotFile(text.encode())
    assert file.format == "ndt7"
    return list(file), file.unknown.count


@pytest.mark.parametrize("name", ["result", "result-indented"])
def test_a_result(name: str) -> None:
    (first, second), unknown = read(TRUTHS[name])
    assert unknown == 0
    # The server's socket: the data comes from its kernel.
    ends = ("192.0.2.1", 443, "198.51.100.7", 40910)
    assert (first.local_address, first.local_port, first.peer_address, first.peer_port) == ends
    assert first.time_ns == START_NS + 250_407 * US
    assert second.time_ns == START_NS + 500_912 * US
    assert (first.state, second.state) == ("ESTAB", "CLOSE-WAIT")
    assert (first.index, second.index, second.bytes_acked) == (0, 1, 19_000_000)
    said = {
        "rto_ns": 204 * MS,
        "ato_ns": 40 * MS,
        "mss_bytes": 1398,
        "rcvmss_bytes": 536,
        "unacked_segments": 57,
        "lastsnd_ns": 0,
        "lastrcv_ns": 248 * MS,
        "lastack_ns": 4 * MS,
        "pmtu_bytes": 1500,
        "rtt_ns": 2803 * US,
        "rttvar_ns": 452 * US,
        "ssthresh_segments": None,
        "cwnd_segments": 64,
        "rcv_rtt_ns": None,
        "pacing_rate_bps": 464_000_000,
        "max_pacing_rate_bps": None,
        "delivery_rate_bps": 328_000_000,
        "bytes_acked": 9_000_000,
        "retrans_total": 12,
        "minrtt_ns": 1904 * US,
        "notsent_bytes": 130_000,
        "busy_ns": 250 * MS,
        "rwnd_limited_ns": 100 * MS,
        "sndbuf_limited_ns": 0,
        "snd_wnd_bytes": 3_145_728,
        "snd_wscale": 7,
        "rcv_wscale": 7,
        "timestamps": True,
        "sack": True,
        "ecn": False,
        "app_limited": False,
        "rwnd_limited_share": 0.4,
        "send_bps": 64 * 1398 * 8e9 / (2803 * US),
        "rcv_wnd_bytes": None,
    }
    assert {name: getattr(first, name) for name in said} == said


def test_messages_have_few_members_and_no_time() -> None:
    (first, second), unknown = read(TRUTHS["messages"])
    assert unknown == 0
    # The file names the connection once.
    for sample in (first, second):
        ends = ("2001:db8::1", 2345, "1.2.3.4", 5678)
        assert (sample.local_address, sample.local_port, sample.peer_address, sample.peer_port) == ends
        assert (sample.time_ns, sample.busy_ns, sample.rwnd_limited_share) == (None, 1_234 * US, 0.5)
        assert (sample.bytes_retrans, sample.sndbuf_limited_ns) == (0, 0)
        # Missing fields are unknown, not 0.
        assert (sample.cwnd_segments, sample.retrans_total, sample.lastsnd_ns, sample.timestamps) == (None,) * 4
    assert read(TRUTHS["printed"])[0] == [first]


def test_the_clients_own_measurements_are_not_the_servers() -> None:
    assert read(json.dumps({**MESSAGE, "Origin": "client"})) == ([], 0)


@all_cases("wrong", ["x", None, 1.5, True, 1 << 63, -(1 << 63) - 1, [1], {}])
def test_a_member_that_is_not_a_number_is_rejected(wrong: object) -> None:
    message = {**MESSAGE, "TCPInfo": {**MESSAGE["TCPInfo"], "BusyTime": wrong}}
    assert read(json.dumps(message)) == ([], 1)


def test_a_result_without_ends_or_times_is_read_as_far_as_it_goes() -> None:
    part = {**RESULT["Download"], "StartTime": "soon"}
    (sample, _), unknown = read(json.dumps({**RESULT, "ServerIP": 7, "ClientPort": 70_000, "Download": part}))
    assert unknown == 0
    assert (sample.time_ns, sample.local_address, sample.peer_address) == (None, "", "")
    assert sample.busy_ns == 250 * MS


def test_the_members_are_those_of_the_kernel() -> None:
    assert len(MEMBERS) == len(set(MEMBERS)) == len(FIRST) - 1
    assert set(MEMBERS) == FIRST.keys() - {"ElapsedTime"}


def test_a_document_that_is_cut_is_counted() -> None:
    assert read_text("ndt7", TRUTHS["result"][:2000]) == ([], [(1, TRUTHS["result"][:KEPT_CHARACTERS])])


@given(ANY_TEXT)
def test_any_text_is_read_or_rejected(text: str) -> None:
    read_text("ndt7", "x" + text)
    read_text("ndt7", "{" + text)
