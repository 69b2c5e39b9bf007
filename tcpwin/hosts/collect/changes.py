"""Changes of a socket between two of the kernel's messages about it.

In: the bytes of both, and the positions of their parts. Out: text of a JSON object with SocketSample's names. The
engine compares and writes numbers; this module writes the few timers and words.
"""

from __future__ import annotations

import json
import struct
from functools import lru_cache

from tcpwin import _engine
from tcpwin.hosts.collect.message import (
    EXPIRES_AT,
    QUEUES_AT,
    USER_AT,
    WORDS,
    Parts,
    find_attributes,
    read_timer,
    read_words,
)
from tcpwin.hosts.collect.tcp_info import MEMINFO, Place, tcp_info_places

_STATE_AT, _TIMER_AT, _PORTS_AT = 0, 2, 4
_TIMER = struct.Struct(f"=2x2B{EXPIRES_AT - 4}xI")
_U32 = 4
_ANY = (1 << 64) - 1

_encode = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode


class Comparison:
    """Compares messages of equal length and layout."""

    def __init__(self, length: int, parts: Parts) -> None:
        self._info_end = parts.info_end
        self._layout = _layout_of_parts(length, parts) if parts.info else _layout_without_parts(length)
        self.length = length

    def changes(self, before: bytes, after: bytes) -> str | None:
        """Return members of a JSON object, null for values that became unknown; None if a full record is needed.

        Empty if nothing changed except running times: the timer, and times since an event.
        """
        members = self._layout.changes(before, after)
        if not members:
            return members
        if after[_TIMER_AT] or before[_TIMER_AT]:
            members += ',"timer":' + _timer(after)
        end = self._info_end
        if before[end:] != after[end:]:
            words = read_words(after, find_attributes(after, end, len(after)))
            members += "," + _encode(dict.fromkeys(WORDS) | words)[1:-1]
        return members


@lru_cache(maxsize=256)
def comparison_of(length: int, parts: Parts) -> Comparison:
    """Return the comparison for messages of this length."""
    return Comparison(length, parts)


def _timer(message: bytes) -> str:
    timer, retransmissions, expires_ms = _TIMER.unpack_from(message)
    return _encode(read_timer(timer, expires_ms, retransmissions)) if timer else "null"


def _layout_of_parts(length: int, parts: Parts) -> _engine.MessageLayout:
    memory, memory_end, info, info_end = parts
    places = tcp_info_places(info_end - info)

    def named(each: Place) -> tuple[str, int, int, int, bool, int]:
        return each.field or "", info + each.at, each.size, each.factor, each.zero, each.most

    queues = [
        (name, QUEUES_AT + _U32 * n, _U32, 1, True, _ANY) for n, name in enumerate(("recv_q_bytes", "send_q_bytes"))
    ]
    memory_names = MEMINFO[: (memory_end - memory) // _U32]
    memories = [(name, memory + _U32 * n, _U32, 1, True, _ANY) for n, name in enumerate(memory_names)]
    words = [(info + each.at, info + each.at + each.size) for each in places.words]
    return _engine.MessageLayout(
        length,
        steady=[(_STATE_AT, _TIMER_AT), (_PORTS_AT, EXPIRES_AT), (USER_AT, memory), (memory_end, info), *words],
        measured=[(info + places.measured.at, places.measured.size)],
        watched=[(_TIMER_AT, _PORTS_AT), (info_end, length)],
        fields=[*queues, *memories, *map(named, places.numbers)],
        flags=[(field, info + at, mask) for field, at, mask in places.flags],
        running=[named(each) for each in places.running],
    )


def _layout_without_parts(length: int) -> _engine.MessageLayout:
    """Return a layout in which any change, except the timer's remaining time, requires a full record."""
    steady = [(_STATE_AT, EXPIRES_AT), (QUEUES_AT, length)]
    return _engine.MessageLayout(length, steady=steady, measured=[], watched=[], fields=[], flags=[], running=[])
