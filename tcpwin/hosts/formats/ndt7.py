"""Results and messages of M-Lab's speed test ndt7: the server kernel's samples of the test's connection.

In: a result (one JSON document), or the messages that servers send to clients. Out: a SocketSample for each measurement
with a ``TCPInfo``. Sources: github.com/m-lab/ndt-server, spec/data-format.md and
spec/ndt7-protocol.md; github.com/m-lab/tcp-info, tcp/tcpinfo.go: its members are the kernel's, in the kernel's order
and units.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tcpwin.hosts.collect.message import STATES
from tcpwin.hosts.collect.tcp_info import OPTIONS, TCP_INFO_BYTES, member_fields, tcp_info_values, zero_fields
from tcpwin.hosts.format import Format
from tcpwin.hosts.formats.snap import socket_sample
from tcpwin.hosts.json_documents import json_documents
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.socket import SocketSample
from tcpwin.sources import read_moment

MEMBERS = (
    *("State", "CAState", "Retransmits", "Probes", "Backoff", "Options", "WScale", "AppLimited"),
    *("RTO", "ATO", "SndMSS", "RcvMSS", "Unacked", "Sacked", "Lost", "Retrans", "Fackets"),
    *("LastDataSent", "LastAckSent", "LastDataRecv", "LastAckRecv"),
    *("PMTU", "RcvSsThresh", "RTT", "RTTVar", "SndSsThresh", "SndCwnd", "AdvMSS", "Reordering"),
    *("RcvRTT", "RcvSpace", "TotalRetrans", "PacingRate", "MaxPacingRate", "BytesAcked", "BytesReceived"),
    *("SegsOut", "SegsIn", "NotsentBytes", "MinRTT", "DataSegsIn", "DataSegsOut", "DeliveryRate"),
    *("BusyTime", "RWndLimited", "SndBufLimited", "Delivered", "DeliveredCE", "BytesSent", "BytesRetrans"),
    *("DSackDups", "ReordSeen", "RcvOooPack", "SndWnd"),
)
"""Members in the order of `struct tcp_info`."""
_FIELDS = dict(zip(MEMBERS, member_fields(), strict=False))
_ZEROS = zero_fields(TCP_INFO_BYTES)
_OF_BITS = {
    "Options": tuple(name for _, name in OPTIONS),
    "WScale": ("snd_wscale", "rcv_wscale"),
    "AppLimited": ("app_limited",),
}
_WIDE = ("PacingRate", "MaxPacingRate")
_MOST = 1 << 63
_END = re.compile(r"\[?([0-9A-Fa-f:.]{2,60})\]?:(\d{1,5})")
_MARKS = ('"ServerMeasurements"', '"ConnectionInfo"', '"BusyTime"', '"AppInfo"')


def recognise(head: list[str]) -> int:
    """Score these lines as a result or messages."""
    text = "".join(head)
    if not text.lstrip().startswith("{") or '"TCPInfo"' not in text:
        return 90 if text.lstrip().startswith("{") and '"ServerMeasurements"' in text else 0
    return 90 if any(mark in text for mark in _MARKS) else 0


@dataclass(slots=True)
class _Test:
    """The measured connection, from its server's side.

    Attributes:
        start_ns: start of the test, from which measurements count; None if unknown.
    """

    server: tuple[str, int] | None = None
    client: tuple[str, int] | None = None
    start_ns: int | None = None
    index: int = 0


def read(lines: Lines) -> Iterator[SocketSample]:
    """Yield samples of the documents in these lines."""
    test = _Test()
    for value, line in json_documents(lines):
        yield from _read(test, value, line, lines)


def _read(test: _Test, value: Any, line: int, lines: Lines) -> Iterator[SocketSample]:
    if not isinstance(value, dict):
        lines.reject(str(value)[:100], number=line)
        return
    parts = [part for part in (value.get("Download"), value.get("Upload")) if isinstance(part, dict)]
    if not parts:
        # A client prints each message with a key: {"Key": "measurement", "Value": {...}}.
        message = value.get("Value") if isinstance(value.get("Value"), dict) else value
        yield from _measurement(test, message, line, lines)
        return
    test.server, test.client = (_end(value.get(f"{side}IP"), value.get(f"{side}Port")) for side in ("Server", "Client"))
    for part in parts:
        test.start_ns = _time_ns(part.get("StartTime"))
        for each in _list(part.get("ServerMeasurements")):
            yield from _measurement(test, each, line, lines)


def _measurement(test: _Test, value: Any, line: int, lines: Lines) -> Iterator[SocketSample]:
    """Yield the sample of one measurement, if it has one."""
    if not isinstance(value, dict):
        lines.reject(str(value)[:100], number=line)
        return
    if isinstance(told := value.get("ConnectionInfo"), dict):
        ends = [_END.fullmatch(str(told.get(side))) for side in ("Server", "Client")]
        if all(ends):
            test.server, test.client = ((end[1], int(end[2])) for end in ends if end)
    info = value.get("TCPInfo")
    if not isinstance(info, dict) or value.get("Origin") == "client":
        return
    values = _values(info)
    if values is None:
        lines.reject(str(info)[:100], number=line)
        return
    elapsed_us = info.get("ElapsedTime")
    time_ns = lines.time_ns
    if test.start_ns is not None and type(elapsed_us) is int and 0 <= elapsed_us < _MOST // 1000:
        time_ns = test.start_ns + elapsed_us * 1000
    for side, end in (("local", test.server), ("peer", test.client)):
        if end is not None:
            values[f"{side}_address"], values[f"{side}_port"] = end
    yield socket_sample({**values, "time_ns": time_ns, "line": line, "index": test.index, "netid": "tcp"})
    test.index += 1


def _values(info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a sample's values for the members present, or None if one of them is not a number."""
    given = [name for name in MEMBERS if name in info]
    if not given or any(type(info[name]) is not int or not -_MOST <= info[name] < _MOST for name in given):
        return None
    # Go stores them signed: an unlimited rate is −1, and a count may have wrapped.
    numbers = tuple(info.get(name, 0) % (1 << 64 if name in _WIDE else 1 << 63) for name in MEMBERS)
    told = {_FIELDS[name] for name in given} | {field for name in given for field in _OF_BITS.get(name, ())}
    found = {**_ZEROS, **tcp_info_values(numbers)}
    values = {name: value for name, value in found.items() if name in told and value is not None}
    state = info.get("State", 1)
    values["state"] = STATES[state] if 0 <= state < len(STATES) else "UNKNOWN"
    return values


def _end(address: Any, port: Any) -> tuple[str, int] | None:
    if not isinstance(address, str) or not 0 < len(address) <= 60 or type(port) is not int or not 0 <= port < 1 << 16:
        return None
    return address, port


def _time_ns(text: Any) -> int | None:
    try:
        kind, time_ns = read_moment(text) if isinstance(text, str) else ("", 0)
    except ValueError:
        return None
    return time_ns if kind == "at" else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


FORMAT = Format("ndt7", "M-Lab's ndt7: results, and streamed measurements", recognise, read, ("sockets",))
