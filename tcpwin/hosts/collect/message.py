"""One message of the kernel's socket dump, as a record of SocketSample's fields.

In: bytes of `struct inet_diag_msg` and its attributes (include/uapi/linux/inet_diag.h). Out: a dictionary as in a
`tcpwin/snap/1` file, without derived rates and shares.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from socket import AF_INET, AF_INET6, if_indextoname, inet_ntop
from typing import Any, NamedTuple

from tcpwin.hosts.collect.tcp_info import (
    MEMINFO,
    MS,
    US,
    tcp_info_values,
    unpack_meminfo,
    unpack_tcp_info,
)

STATES = (
    "UNKNOWN",
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
)
"""State names as in `ss`, by the kernel's number (include/net/tcp_states.h)."""
_LISTEN = 10

_TIMERS = ("", "on", "keepalive", "timewait", "persist", "delack")

HEADER = struct.Struct("=4B2s2s16s16sI2I5I")
"""Family, state, timer, retransmissions, ports, addresses, interface, cookie; expiry, queues, user, inode."""
COOKIE_AT = struct.calcsize("=4B2s2s16s16sI")
EXPIRES_AT = COOKIE_AT + 8
QUEUES_AT = EXPIRES_AT + 4
USER_AT = EXPIRES_AT + 12

INFO = 2
_VEGAS_OR_MORE = 3
_CONGESTION = 4
_MEMINFO = 7
_SHUTDOWN = 8
_DCTCP = 9
_V6_ONLY = 11
_BBR = 16
_ULP = 19

WANTED = 1 << INFO - 1 | 1 << _VEGAS_OR_MORE - 1 | 1 << _CONGESTION - 1 | 1 << _MEMINFO - 1
"""`idiag_ext` of a request: the values of BBR and DCTCP are delivered together with those of Vegas."""

_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF

_TLS_VERSIONS = {0x0303: "1.2", 0x0304: "1.3"}
_TLS_CIPHERS = {51: "aes-gcm-128", 52: "aes-gcm-256"}
_TLS_WAYS = {1: "none", 2: "sw", 3: "hw", 4: "hw-record"}


def find_attributes(data: bytes, start: int, end: int) -> dict[int, tuple[int, int]]:
    """Return the position and length of each attribute's value by type, up to a truncated or empty attribute."""
    found = {}
    while start + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, start)
        if length < 4 or start + length > end:
            break
        found[kind & _TYPE_MASK] = (start + 4, length - 4)
        start += length + 3 & ~3
    return found


class Parts(NamedTuple):
    """Positions of a message's parts that change while data flows; all 0 if absent or in another order.

    Positions are relative to the start of the message.
    """

    meminfo: int
    meminfo_end: int
    info: int
    info_end: int


NO_PARTS = Parts(0, 0, 0, 0)


def read_socket(message: bytes) -> tuple[dict[str, Any], Parts]:
    """Return the full record of a message.

    Raises:
        ValueError: the message is too short.
    """
    if len(message) < HEADER.size:
        raise ValueError(f"inet_diag_msg of {len(message)} bytes")
    family, state, timer, retransmissions, sport, dport, source, destination, interface, low, high, *rest = (
        HEADER.unpack_from(message)
    )
    expires_ms, received, sent, uid, inode = rest
    attributes = find_attributes(message, HEADER.size, len(message))
    v6_only = attributes.get(_V6_ONLY)
    record: dict[str, Any] = {
        "cookie": high << 32 | low,
        "state": STATES[state] if state < len(STATES) else "UNKNOWN",
    }
    if state == _LISTEN:
        record["accept_queue"], record["accept_queue_max"] = received, sent
    else:
        record["recv_q_bytes"], record["send_q_bytes"] = received, sent
    is_v6_only = v6_only is not None and message[v6_only[0]] != 0
    record["local_address"] = _address(family, source, is_v6_only)
    if port := int.from_bytes(sport, "big"):
        record["local_port"] = port
    record["peer_address"] = _address(family, destination, is_v6_only)
    if port := int.from_bytes(dport, "big"):
        record["peer_port"] = port
    if interface:
        record["local_scope"] = _interface(interface)
    record["uid"], record["inode"] = uid, inode
    if timer:
        record["timer"] = read_timer(timer, expires_ms, retransmissions)
    if v6_only is not None:
        record["v6only"] = is_v6_only
    if _SHUTDOWN in attributes:
        shut = message[attributes[_SHUTDOWN][0]]
        record["shutdown"] = ("-" if shut & 1 else "<") + "-" + ("-" if shut & 2 else ">")
    if _MEMINFO in attributes:
        record.update(zip(MEMINFO, unpack_meminfo(message, *attributes[_MEMINFO]), strict=False))
    if INFO in attributes:
        record.update(tcp_info_values(unpack_tcp_info(message, *attributes[INFO])))
    record.update(read_words(message, attributes))
    if state == _LISTEN or INFO not in attributes or _MEMINFO not in attributes:
        return record, NO_PARTS
    (memory, memory_bytes), (info, info_bytes) = attributes[_MEMINFO], attributes[INFO]
    parts = Parts(memory, memory + memory_bytes, info, info + info_bytes)
    return record, parts if memory < info else NO_PARTS


def read_timer(number: int, expires_ms: int, retransmissions: int) -> dict[str, Any]:
    """Return a running timer."""
    name = _TIMERS[number] if number < len(_TIMERS) else "unknown"
    return {"name": name, "expires_ns": expires_ms * MS, "retransmissions": retransmissions}


WORDS = ("congestion_control", "bbr", "dctcp", "ulp")


def read_words(data: bytes, attributes: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """Return the `WORDS` that the attributes contain."""
    words: dict[str, Any] = {}
    if _CONGESTION in attributes:
        words["congestion_control"] = _text(data, *attributes[_CONGESTION])
    if _BBR in attributes and attributes[_BBR][1] >= 20:
        low, high, rtt_us, pacing, cwnd = struct.unpack_from("=5I", data, attributes[_BBR][0])
        bbr = words["bbr"] = {"bw_bps": (high << 32 | low) * 8, "mrtt_ns": rtt_us * US}
        if pacing:
            bbr["pacing_gain"] = pacing / 256
        if cwnd:
            bbr["cwnd_gain"] = cwnd / 256
    if _DCTCP in attributes and attributes[_DCTCP][1] >= 16:
        enabled, ce_state, alpha, marked, total = struct.unpack_from("=2H3I", data, attributes[_DCTCP][0])
        values = {"ce_state": ce_state, "alpha": alpha, "ab_ecn_bytes": marked, "ab_tot_bytes": total}
        words["dctcp"] = values if enabled else {"mode": "fallback_mode"}
    if _ULP in attributes:
        words["ulp"] = _ulp(data, *attributes[_ULP])
    return words


def _ulp(data: bytes, at: int, length: int) -> dict[str, Any]:
    parts = find_attributes(data, at, at + length)
    name = _text(data, *parts[1]) if 1 in parts else ""
    values = {}
    if 2 in parts:
        start, size = parts[2]
        inner = find_attributes(data, start, start + size)
        words = {
            "version": (1, _TLS_VERSIONS),
            "cipher": (2, _TLS_CIPHERS),
            "rxconf": (4, _TLS_WAYS),
            "txconf": (3, _TLS_WAYS),
        }
        for word, (kind, names) in words.items():
            if kind in inner and inner[kind][1] >= 2:
                number = struct.unpack_from("=H", data, inner[kind][0])[0]
                values[word] = names.get(number, f"unknown({number})")
        for word, kind in (("zc_ro_tx", 5), ("no_pad_rx", 6)):
            if kind in inner:
                values[word] = ""
    return {"name": name, "values": values}


def _text(data: bytes, at: int, length: int) -> str:
    return data[at : at + length].partition(b"\0")[0].decode("ascii", "replace")


@lru_cache(maxsize=4096)
def _address(family: int, packed: bytes, is_v6_only: bool) -> str:
    if family == AF_INET:
        return inet_ntop(AF_INET, packed[:4])
    # Such a socket accepts IPv4 too, so `ss` writes `*`, not `::` (misc/ss.c, inet_addr_print).
    return "*" if packed == bytes(16) and not is_v6_only else inet_ntop(AF_INET6, packed)


@lru_cache(maxsize=256)
def _interface(index: int) -> str:
    try:
        return if_indextoname(index)
    except OSError:
        return f"if{index}"
