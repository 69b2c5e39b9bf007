"""The kernel's structs of one TCP socket, decoded by their length.

In: bytes of `struct tcp_info` and `sk_meminfo`. Out: values by SocketSample's names and units. A kernel older than the
layout below returns fewer bytes and values; additions of newer kernels are ignored.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

US = 1_000
MS = 1_000_000
_BYTES = 8

OPTIONS = (
    (0x01, "timestamps"),
    (0x02, "sack"),
    (0x08, "ecn"),
    (0x10, "ecn_seen"),
    (0x20, "fast_open"),
    (0x40, "usec_timestamps"),
)
"""Bits in tcpi_options (TCPI_OPT_*, include/uapi/linux/tcp.h)."""
_HAS_WSCALE = 0x04

_NEVER_MS = 1 << 31
_NO_SSTHRESH = 0xFFFF
_NO_RTT = 0xFFFFFFFF
_NO_RATE = 0xFFFFFFFFFFFFFFFF


class _Member(NamedTuple):
    kernel: str
    code: str
    field: str | None = None
    factor: int = 1
    zero: bool = False
    below: int = 1 << 64


# include/uapi/linux/tcp.h, in order and without gaps. `field` is SocketSample's name; members without one are not shown
# or contain bits. A number means "unknown" from `below` on, and if it is 0, unless `zero` marks 0 as a value. As in
# misc/ss.c, tcp_show_info: the kernel's initial slow start threshold, 0x7fffffff, means none; a socket that never sent
# has a wrapped time since sending.
_MEMBERS = (
    _Member("state", "B"),
    _Member("ca_state", "B"),
    _Member("retransmits", "B"),
    _Member("probes", "B"),
    _Member("backoff", "B", "backoff", zero=True),
    _Member("options", "B"),
    _Member("wscale", "B"),
    _Member("app_limited", "B"),
    _Member("rto", "I", "rto_ns", US),
    _Member("ato", "I", "ato_ns", US),
    _Member("snd_mss", "I", "mss_bytes"),
    _Member("rcv_mss", "I", "rcvmss_bytes"),
    _Member("unacked", "I", "unacked_segments", zero=True),
    _Member("sacked", "I", "sacked_segments", zero=True),
    _Member("lost", "I", "lost_segments", zero=True),
    _Member("retrans", "I", "retrans_segments", zero=True),
    _Member("fackets", "I", "fackets"),
    _Member("last_data_sent", "I", "lastsnd_ns", MS, zero=True, below=_NEVER_MS),
    _Member("last_ack_sent", "I"),
    _Member("last_data_recv", "I", "lastrcv_ns", MS, zero=True, below=_NEVER_MS),
    _Member("last_ack_recv", "I", "lastack_ns", MS, zero=True, below=_NEVER_MS),
    _Member("pmtu", "I", "pmtu_bytes"),
    _Member("rcv_ssthresh", "I", "rcv_ssthresh_bytes"),
    _Member("rtt", "I", "rtt_ns", US),
    _Member("rttvar", "I", "rttvar_ns", US, zero=True),
    _Member("snd_ssthresh", "I", "ssthresh_segments", below=_NO_SSTHRESH),
    _Member("snd_cwnd", "I", "cwnd_segments"),
    _Member("advmss", "I", "advmss_bytes"),
    _Member("reordering", "I", "reordering"),
    _Member("rcv_rtt", "I", "rcv_rtt_ns", US),
    _Member("rcv_space", "I", "rcv_space_bytes"),
    _Member("total_retrans", "I", "retrans_total", zero=True),
    _Member("pacing_rate", "Q", "pacing_rate_bps", _BYTES, below=_NO_RATE),
    _Member("max_pacing_rate", "Q", "max_pacing_rate_bps", _BYTES, below=_NO_RATE),
    _Member("bytes_acked", "Q", "bytes_acked", zero=True),
    _Member("bytes_received", "Q", "bytes_received", zero=True),
    _Member("segs_out", "I", "segs_out", zero=True),
    _Member("segs_in", "I", "segs_in", zero=True),
    _Member("notsent_bytes", "I", "notsent_bytes", zero=True),
    _Member("min_rtt", "I", "minrtt_ns", US, below=_NO_RTT),
    _Member("data_segs_in", "I", "data_segs_in", zero=True),
    _Member("data_segs_out", "I", "data_segs_out", zero=True),
    _Member("delivery_rate", "Q", "delivery_rate_bps", _BYTES),
    _Member("busy_time", "Q", "busy_ns", US, zero=True),
    _Member("rwnd_limited", "Q", "rwnd_limited_ns", US, zero=True),
    _Member("sndbuf_limited", "Q", "sndbuf_limited_ns", US, zero=True),
    _Member("delivered", "I", "delivered", zero=True),
    _Member("delivered_ce", "I", "delivered_ce", zero=True),
    _Member("bytes_sent", "Q", "bytes_sent", zero=True),
    _Member("bytes_retrans", "Q", "bytes_retrans", zero=True),
    _Member("dsack_dups", "I", "dsack_dups", zero=True),
    _Member("reord_seen", "I", "reord_seen", zero=True),
    _Member("rcv_ooopack", "I", "rcv_ooopack", zero=True),
    _Member("snd_wnd", "I", "snd_wnd_bytes", zero=True),
    _Member("rcv_wnd", "I", "rcv_wnd_bytes", zero=True),
    _Member("rehash", "I", "rehash", zero=True),
)

_AT = {member.kernel: place for place, member in enumerate(_MEMBERS)}
_STATE, _OPTIONS, _WSCALE, _APP_LIMITED = _AT["state"], _AT["options"], _AT["wscale"], _AT["app_limited"]
_RTT, _RTTVAR, _CWND = _AT["rtt"], _AT["rttvar"], _AT["snd_cwnd"]
_SINCE = (_AT["last_data_sent"], _AT["last_data_recv"], _AT["last_ack_recv"])
_SINCE_FIELDS = tuple((place, _MEMBERS[place].field or "") for place in _SINCE)
_WRITTEN_AS_ZERO = {*_SINCE, _RTTVAR}

_SIZES = tuple(
    struct.calcsize("=" + "".join(member.code for member in _MEMBERS[: n + 1])) for n in range(len(_MEMBERS))
)
TCP_INFO_BYTES = _SIZES[-1]
"""Size of `struct tcp_info` up to the last known member, tcpi_rehash of Linux 6.2."""
SHORTEST_BYTES = _SIZES[_AT["total_retrans"]]
"""Every kernel since 2.6.13 returns at least this much, up to tcpi_total_retrans."""

_LITTLE = sys.byteorder == "little"
_IS_APP_LIMITED = 0x01 if _LITTLE else 0x80
_LISTEN = 10

MEMINFO = (
    "rmem_alloc_bytes",
    "rcvbuf_bytes",
    "wmem_alloc_bytes",
    "sndbuf_bytes",
    "fwd_alloc_bytes",
    "wmem_queued_bytes",
    "optmem_bytes",
    "backlog_bytes",
    "drops",
)
"""SK_MEMINFO_* in order (include/uapi/linux/sock_diag.h)."""


Numbers = tuple[int, ...]
"""Members of a `struct tcp_info` in order, as many as the kernel returns."""


class Place(NamedTuple):
    """Position of a member in `struct tcp_info`, and the conversion of its number.

    Attributes:
        at, size: offset and size in bytes.
        field: name in SocketSample; None if the number is not used directly.
        factor: factor from the kernel's unit to the field's.
        zero: whether 0 is a valid value.
        most: the maximum valid value.
    """

    at: int
    size: int
    field: str | None
    factor: int
    zero: bool
    most: int


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of the members in a struct of one length.

    Attributes:
        numbers: members used directly.
        running: times since an event, which advance on their own.
        flags: field, position and mask of bits that may change.
        words: members that determine the meaning of others, or never change: state, options, shifts.
        measured: the round trip; while it is 0 its variation is unknown too.
    """

    numbers: tuple[Place, ...]
    running: tuple[Place, ...]
    flags: tuple[tuple[str, int, int], ...]
    words: tuple[Place, ...]
    measured: Place


@cache
def tcp_info_places(length: int) -> Places:
    """Return the positions of the values of `tcp_info_values` in a struct of at least `SHORTEST_BYTES` bytes."""
    count = sum(size <= length for size in _SIZES)
    places = [
        Place(
            end - (size := struct.calcsize("=" + each.code)), size, each.field, each.factor, each.zero, each.below - 1
        )
        for each, end in zip(_MEMBERS[:count], _SIZES, strict=False)
    ]
    return Places(
        numbers=tuple(each for place, each in enumerate(places) if each.field and place not in _SINCE),
        running=tuple(places[place] for place in _SINCE),
        flags=(("app_limited", places[_APP_LIMITED].at, _IS_APP_LIMITED),),
        words=tuple(places[place] for place in (_STATE, _OPTIONS, _WSCALE)),
        measured=places[_RTT],
    )


def member_fields() -> tuple[str | None, ...]:
    """Return each member's field in struct order, or None for members that are converted differently."""
    return tuple(member.field for member in _MEMBERS)


@cache
def _layout(length: int) -> struct.Struct:
    count = sum(size <= length for size in _SIZES)
    return struct.Struct("=" + "".join(member.code for member in _MEMBERS[:count]))


@cache
def _plain(count: int) -> tuple[tuple[int, str, int, int], ...]:
    members = tuple(enumerate(_MEMBERS[:count]))
    return tuple((place, each.field, each.factor, each.below) for place, each in members if each.field is not None)


def zero_fields(length: int) -> dict[str, int | bool]:
    """Return the fields that `tcp_info_values` omits if 0 or false, with those values, for a struct of this length."""
    count = sum(size <= length for size in _SIZES)
    members = (each for place, each in enumerate(_MEMBERS[:count]) if place not in _WRITTEN_AS_ZERO)
    zeros: dict[str, int | bool] = {each.field: 0 for each in members if each.field and each.zero}
    zeros.update((name, False) for _, name in OPTIONS)
    zeros["app_limited"] = False
    return zeros


def unpack_tcp_info(data: bytes, at: int, length: int) -> Numbers:
    """Return the members of a struct of `length` bytes.

    Raises:
        ValueError: fewer bytes than any kernel returns.
    """
    if length < SHORTEST_BYTES or at + length > len(data):
        raise ValueError(f"tcp_info of {length} bytes: at least {SHORTEST_BYTES} needed")
    return _layout(min(length, TCP_INFO_BYTES)).unpack_from(data, at)


def tcp_info_values(numbers: Numbers) -> dict[str, Any]:
    """Return values by SocketSample's names, without those in `zero_fields` that are 0 or false.

    The three times since an event are always present, None if it never happened. Values that `ss` does not show are
    omitted: a round trip, segment size or rate of 0, a slow start threshold from 65,535 segments, an unmeasured minimum
    round trip. Without a measured round trip its variation is omitted too. For a LISTEN socket only the congestion
    window is kept: the kernel puts its accept queue where other sockets have `unacked` and `sacked` (net/ipv4/tcp.c,
    tcp_get_info).
    """
    if numbers[_STATE] == _LISTEN:
        return {"cwnd_segments": numbers[_CWND]} if numbers[_CWND] else {}
    values: dict[str, Any] = {
        field: numbers[place] * factor
        for place, field, factor, below in _plain(len(numbers))
        if numbers[place] and numbers[place] < below
    }
    for place, field in _SINCE_FIELDS:
        values[field] = numbers[place] * MS if numbers[place] < _NEVER_MS else None
    if numbers[_RTT]:
        values.setdefault("rttvar_ns", 0)
    else:
        values.pop("rttvar_ns", None)
    options = numbers[_OPTIONS]
    for bit, field in OPTIONS:
        if options & bit:
            values[field] = True
    if options & _HAS_WSCALE:
        shifts = numbers[_WSCALE]
        low, high = shifts & 15, shifts >> 4
        # Bit-fields fill from the low end on little-endian hosts, from the high end on others.
        values["snd_wscale"], values["rcv_wscale"] = (low, high) if _LITTLE else (high, low)
    if numbers[_APP_LIMITED] & _IS_APP_LIMITED:
        values["app_limited"] = True
    return values


def decode_tcp_info(data: bytes) -> dict[str, Any]:
    """Decode the bytes that `getsockopt(TCP_INFO)` returns."""
    return tcp_info_values(unpack_tcp_info(data, 0, len(data)))


@cache
def _meminfo(count: int) -> struct.Struct:
    return struct.Struct(f"={count}I")


def unpack_meminfo(data: bytes, at: int, length: int) -> Numbers:
    """Return the members of INET_DIAG_SKMEMINFO: nine u32 now, seven before Linux 3.6, eight before 4.7."""
    return _meminfo(min(length // 4, len(MEMINFO))).unpack_from(data, at)
