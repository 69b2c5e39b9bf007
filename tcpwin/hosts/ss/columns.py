"""The columns of `ss`: protocol, state, queues, addresses, processes, and the header that names them.

In: a line and its words. Out: values by SocketSample's field names, and the words after the addresses. Based on
iproute2's misc/ss.c, sock_state_print, inet_addr_print and proc_ctx_print, from 3.10 to 7.1.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tcpwin.hosts.socket import SocketUser

STATES = frozenset(
    [
        "ESTAB",
        "SYN-SENT",
        "SYN-RECV",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "UNCONN",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
        "UNKNOWN",
        "UNDEF",
    ]
)
_TCP = frozenset(("tcp", "mptcp"))
_OTHERS = frozenset(
    [
        "udp",
        "udplite",
        "raw",
        "icmp6",
        "dccp",
        "sctp",
        "u_str",
        "u_dgr",
        "u_seq",
        "p_raw",
        "p_dgr",
        "nl",
        "v_str",
        "v_dgr",
        "v_seq",
        "ti_rd",
        "ti_dg",
        "ti_st",
        "ti_sq",
        "xdp",
        "unknown",
        "???",
    ]
)
"""Protocols other than TCP in the Netid column."""
_HEADER_WORDS = frozenset(("Netid", "State", "Recv-Q", "Local"))
_HEADER = re.compile(
    r"\s*(Netid\s+)?(State\s+)?(Recv-Q\s+Send-Q\s+)?Local Address:Port\s+Peer Address:Port\s*(?:Process\s*)?"
)
_ADDRESS = re.compile(r"[0-9A-Za-z:.*_-]{1,255}")
_NUMERIC = frozenset(".:*")
"""Characters in addresses that token names never contain."""
_SCOPE = re.compile(r"[^\s\[\]:]{1,32}")
_SERVICE = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+-]{0,63}")
_USER = re.compile(r'\("(.{0,64}?)",(?:pid=)?(\d{1,10}),(?:[^()"\s]{0,512}?fd=)?(\d{1,10})(?:,[^()"\s]{0,512})?\)')
_USERS = "users:("
_MAX_ENDPOINT_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Header:
    """The columns in a header."""

    has_state: bool
    has_queues: bool


@dataclass(frozen=True, slots=True)
class Row:
    """The first line of a socket; `values` is None if it is not TCP."""

    values: dict[str, Any] | None
    rest: list[str]


def read_header(line: str, words: list[str]) -> Header | None:
    """Parse a header line, or return None."""
    if words[0] not in _HEADER_WORDS:
        return None
    match = _HEADER.fullmatch(line)
    return Header(match[2] is not None, match[3] is not None) if match else None


def read_row(line: str, words: list[str], header: Header | None) -> Row | None:
    """Parse the first line of a socket, or return None."""
    place = 0
    values: dict[str, Any] = {}
    if words[0] in _TCP:
        values["netid"] = words[0]
        place = 1
    elif words[0] in _OTHERS:
        return Row(None, []) if len(words) > 1 and (words[1] in STATES or _is_number(words[1])) else None
    state = words[place] if place < len(words) and words[place] in STATES else None
    if state is not None:
        values["state"] = state
        place += 1
    has_queues = _read_queues(values, words[place : place + 2], state)
    if has_queues:
        place += 2
    if not (has_queues or state or _has_addresses_only(words[place:], header)):
        return None
    if len(words) < place + 2:
        return None
    local = _endpoint_values(words[place], "local")
    peer = _endpoint_values(words[place + 1], "peer")
    if local is None or peer is None:
        # Netlink sockets have no port at the other end; the Netid column is absent if only they were requested.
        return Row(None, []) if state and has_queues and words[place + 1] == "*" else None
    place += 2
    if state is None and place < len(words) and words[place].replace("_", "").isupper():
        # netstat has the same columns, followed by the state.
        return None
    values.update(local)
    values.update(peer)
    if place < len(words) and words[place].startswith(_USERS):
        users = _read_users(line)
        if users is not None:
            values["users"] = users[0]
            return Row(values, users[1].split())
    return Row(values, words[place:])


def _read_queues(values: dict[str, Any], words: list[str], state: str | None) -> bool:
    if len(words) < 2 or not _is_number(words[0]) or not _is_number(words[1]):
        return False
    names = ("accept_queue", "accept_queue_max") if state == "LISTEN" else ("recv_q_bytes", "send_q_bytes")
    values[names[0]] = int(words[0])
    values[names[1]] = int(words[1])
    return True


def _is_number(word: str) -> bool:
    return word.removeprefix("-").isdecimal() and len(word) < 20


def _has_addresses_only(words: list[str], header: Header | None) -> bool:
    """Whether a line may begin with the addresses, as with `-Q` if one state was requested."""
    return (
        header is not None
        and not (header.has_state or header.has_queues)
        and not _NUMERIC.isdisjoint(words[0].rpartition(":")[0])
    )


Endpoint = tuple[str, int | None, str | None, str | None]
"""Address, port, name of the service, interface."""


def parse_endpoint(text: str) -> Endpoint | None:
    """Split an address and port as `ss` writes them: ``[fe80::1]%eth0:22``, ``*:http``; None if invalid."""
    left, _, port = text.rpartition(":")
    address, _, scope = left.partition("%")
    if address.startswith("["):
        address = address[1:].removesuffix("]")
        scope = scope.removesuffix("]")
    if not _ADDRESS.fullmatch(address) or (scope and not _SCOPE.fullmatch(scope)):
        return None
    if port == "*":
        return address, None, None, scope or None
    if port.isascii() and port.isdecimal():
        return (address, int(port), None, scope or None) if len(port) <= 5 and int(port) < 1 << 16 else None
    if _SERVICE.fullmatch(port):
        return address, _port_of(port), port, scope or None
    return None


@lru_cache(maxsize=8192)
def _known_endpoint_values(text: str, side: str) -> dict[str, Any] | None:
    endpoint = parse_endpoint(text)
    if endpoint is None:
        return None
    names = (f"{side}_{name}" for name in ("address", "port", "service", "scope"))
    return {name: value for name, value in zip(names, endpoint, strict=True) if value is not None}


def _endpoint_values(text: str, side: str) -> dict[str, Any] | None:
    # Do not keep text longer than any address.
    return _known_endpoint_values(text, side) if len(text) <= _MAX_ENDPOINT_CHARACTERS else None


@lru_cache(maxsize=1024)
def _port_of(service: str) -> int | None:
    try:
        return socket.getservbyname(service, "tcp")
    except OSError:
        return None


def _read_users(line: str) -> tuple[tuple[SocketUser, ...], str] | None:
    """Return the processes, and the line after them; names may contain spaces, quotes and parentheses."""
    users = []
    place = line.index(_USERS) + len(_USERS)
    while (match := _USER.match(line, place)) is not None:
        users.append(SocketUser(match[1], int(match[2]), int(match[3])))
        place = match.end() + 1
        if line[place - 1 : place] == ")":
            return tuple(users), line[place:]
        if line[place - 1 : place] != ",":
            break
    return None
