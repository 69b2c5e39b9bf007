"""Sockets from `netstat` of macOS (``-an -p tcp``, ``-anv``) and of FreeBSD (``-an``, ``-nx``): queues, buffers,
timers.

In: lines of one run or many. Out: a SocketSample per TCP socket. Ports follow a dot. Sources: the titles that the
programs print, and their manuals; FreeBSD usr.bin/netstat/inet.c (``-x`` omits the state).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from tcpwin.hosts.format import Format
from tcpwin.hosts.formats.snap import socket_sample
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.socket import SocketSample, SocketTimer

STATES = {
    "ESTABLISHED": "ESTAB",
    "SYN_SENT": "SYN-SENT",
    "SYN_RCVD": "SYN-RECV",
    "FIN_WAIT_1": "FIN-WAIT-1",
    "FIN_WAIT_2": "FIN-WAIT-2",
    "TIME_WAIT": "TIME-WAIT",
    "CLOSED": "UNCONN",
    "CLOSE_WAIT": "CLOSE-WAIT",
    "LAST_ACK": "LAST-ACK",
    "LISTEN": "LISTEN",
    "CLOSING": "CLOSING",
}
_TITLES = re.compile(r"Proto\s+Recv-Q\s+Send-Q\s+Local Address\s+Foreign Address\s+(?P<more>\S.*)")
_ROW = re.compile(r"(?P<proto>(?:tcp|udp|icm|ip|divert|mptcp)\w*)\s+(?P<rest>\S.*)")
_COUNT = re.compile(r"\d{1,18}")
_SECONDS = re.compile(r"\d{1,9}\.\d{2}")
_BUFFERS = {"rhiwat": "rcvbuf_bytes", "shiwat": "sndbuf_bytes", "R-HIWA": "rcvbuf_bytes", "S-HIWA": "sndbuf_bytes"}
_TIMERS = {"persist": "persist", "rexmt": "on", "keep": "keepalive", "2msl": "timewait"}
_FIRST_OF_TEXT = ("pid", "process:pid")
"""Columns from here on contain program names, which may have spaces."""


def recognise(head: list[str]) -> int:
    """Score these lines as such a table: its titles, with a socket below them."""
    titles = [text for text in head if (match := _TITLES.fullmatch(text.rstrip())) and _is_known(match["more"])]
    return 90 if titles and any(re.match(r"tcp(?:4|6|46)\s+\d", text) for text in head) else 0


def _is_known(more: str) -> bool:
    return more.split()[0] in ("(state)", "R-MBUF")


def read(lines: Lines) -> Iterator[SocketSample]:
    """Yield a sample per TCP socket; each table is one snapshot."""
    titles: list[str] | None = None
    index, block = -1, lines.block
    for text in lines:
        line = text.rstrip()
        if match := _TITLES.fullmatch(line):
            titles = match["more"].split()
            index, block = index + 1, lines.block
            continue
        if not line or line.startswith("Active "):
            continue
        row = _ROW.fullmatch(line)
        if row is not None and not row["proto"].startswith("tcp"):
            continue
        values = None if row is None or titles is None else _values(row["rest"].split(), titles)
        if values is None:
            lines.reject(text)
            continue
        if lines.block != block:
            index, block = index + 1, lines.block
        yield socket_sample({**values, "netid": "tcp", "time_ns": lines.time_ns, "line": lines.number, "index": index})


def _values(words: list[str], titles: list[str]) -> dict[str, Any] | None:
    if len(words) < 4 or not _COUNT.fullmatch(words[0]) or not _COUNT.fullmatch(words[1]):
        return None
    values: dict[str, Any] = {"state": "", "recv_q_bytes": int(words[0]), "send_q_bytes": int(words[1])}
    for side, end in (("local", words[2]), ("peer", words[3])):
        found = _end(end)
        if found is None:
            return None
        values.update({f"{side}_{name}": value for name, value in found.items()})
    timers: dict[str, int] = {}
    for title, word in zip(titles, words[4:], strict=False):
        if title in _FIRST_OF_TEXT:
            break
        if title == "(state)":
            if word not in STATES:
                return None
            values["state"] = STATES[word]
        elif title in _BUFFERS and _COUNT.fullmatch(word):
            values[_BUFFERS[title]] = int(word)
        elif title in _TIMERS and _SECONDS.fullmatch(word) and float(word):
            timers[title] = round(float(word) * 100) * 10_000_000
    if timers:
        running = next(title for title in _TIMERS if title in timers)
        values["timer"] = SocketTimer(_TIMERS[running], timers[running], 0)
    if values["state"] == "LISTEN":
        # A listening socket's queues count connections, not bytes.
        del values["recv_q_bytes"], values["send_q_bytes"]
    return values


def _end(text: str) -> dict[str, Any] | None:
    """Return address, port and interface of an end, or None if the address was cut to its column's width."""
    host, dot, port = text.rpartition(".")
    address, _, scope = host.partition("%")
    if not dot or not (port == "*" or (port.isdecimal() and len(port) < 6 and int(port) < 1 << 16)):
        return None
    if address != "*":
        try:
            address = str(ip_address(address))
        except ValueError:
            return None
    found: dict[str, Any] = {"address": address}
    if port != "*":
        found["port"] = int(port)
    if scope:
        found["scope"] = scope
    return found


FORMAT = Format("netstat_bsd", "sockets by netstat of macOS and FreeBSD", recognise, read, ("sockets",))
