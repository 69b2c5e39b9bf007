"""Text of `ss` with any options, from iproute2 3.10 to 7.1, one run or many.

In: lines. Out: a SocketSample per TCP socket, in order. Sockets of other protocols are ignored, including those of a
table without a Netid column if one of them shows that it is not TCP. `tcpwin/docs/hosts/ss.md` describes what is read
and how.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpwin.errors import SnapshotError
from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.socket import SocketSample
from tcpwin.hosts.ss.columns import Header, read_header, read_row
from tcpwin.hosts.ss.tokens import Found, is_token, read_tokens
from tcpwin.hosts.ss.values import MAX_TIME_NS

_SECOND_MS = 1000
_OF_ALL_PROTOCOLS = ("ESTAB", "UNCONN", "")
_MOST_HELD = 1000
"""Sockets of a table to wait for until one shows its protocol; beyond this, the table counts as TCP."""
_DETAIL_TOKENS = 3
"""Number of tokens that make a line look like a socket's second line."""


def read(lines: Lines) -> Iterator[SocketSample]:
    """Yield sockets in order, each when the next begins or when its table's protocol becomes clear."""
    held: list[SocketSample] = []
    index = -1
    is_tcp: bool | None = None
    try:
        for sample in _read(lines):
            if sample.index != index:
                yield from held
                held.clear()
                index, is_tcp = sample.index, None
            if is_tcp is None:
                is_tcp = _is_tcp(sample)
                held.append(sample)
                if is_tcp is None and len(held) == _MOST_HELD:
                    is_tcp = True
                if is_tcp:
                    yield from held
                if is_tcp is not None:
                    held.clear()
            elif is_tcp:
                yield sample
    except SnapshotError:
        yield from held
        raise
    yield from held


def _is_tcp(sample: SocketSample) -> bool | None:
    """Whether one of its sockets shows that a table is TCP; None if it does not.

    Without a Netid column all sockets have one protocol (misc/ss.c prints Netid if several were requested). Unconnected
    sockets are UNCONN, a state that TCP sockets have only briefly, or while merely bound.
    """
    if sample.netid is not None or sample.state not in _OF_ALL_PROTOCOLS:
        return True
    if sample.rto_ns is not None or sample.mss_bytes is not None or sample.congestion_control is not None:
        return True
    return False if sample.state == "UNCONN" else None


def _read(lines: Lines) -> Iterator[SocketSample]:
    header: Header | None = None
    socket: dict[str, Any] | None = None
    is_other = False
    is_storage = False
    index = -1
    block = -1
    for line in lines:
        words = line.split()
        if not words:
            continue
        found_header = read_header(line, words)
        row = None if found_header else read_row(line, words, header)
        if found_header is None and row is None:
            is_inside = line[0].isspace()
            if is_other and is_inside:
                continue
            if socket is not None:
                found = read_tokens(socket, words, is_row=False)
                is_storage = found is Found.STORAGE or (is_storage and found is Found.NOTHING)
                if found is not Found.NOTHING or (is_storage and is_inside):
                    continue
            lines.reject(line)
            continue
        if socket is not None:
            yield _finish(socket)
            socket = None
        if lines.block != block or found_header is not None:
            index += 1
            block = lines.block
        is_other = False
        if found_header is not None:
            header = found_header
        elif row is not None and row.values is None:
            is_other = True
        elif row is not None and row.values is not None:
            socket = row.values
            socket["line"] = lines.number
            socket["index"] = index
            if lines.time_ns is not None:
                socket["time_ns"] = lines.time_ns
            is_storage = read_tokens(socket, row.rest, is_row=True) is Found.STORAGE
    if socket is not None:
        yield _finish(socket)


def _finish(values: dict[str, Any]) -> SocketSample:
    if "rto_ns" in values and "mss_bytes" not in values and "congestion_control" not in values:
        # When reading /proc/net/tcp, ss has neither, and prints both times in seconds (misc/ss.c, tcp_show_line).
        for name in ("rto_ns", "ato_ns"):
            if name in values:
                values[name] = min(values[name] * _SECOND_MS, MAX_TIME_NS)
    return SocketSample.from_values(values)


def recognise(head: list[str]) -> int:
    """Score these lines as `ss` output: its header is unique, rows and details almost."""
    rows = details = others = 0
    for line in head:
        words = line.split()
        if not words:
            continue
        if read_header(line, words):
            return 95
        row = read_row(line, words, None)
        if row is not None and (row.values is None or "state" in row.values):
            rows += 1
        elif sum(map(is_token, words[:100])) >= (1 if rows else _DETAIL_TOKENS):
            details += 1
        elif not (rows and line[0].isspace()):
            others += 1
    if not rows + details:
        return 0
    sure = 90 if rows and details else 70 if rows else 50
    return sure if rows + details > others else sure // 3


FORMAT = Format(name="ss", title="sockets by ss", recognise=recognise, read=read, holds=("sockets",))
