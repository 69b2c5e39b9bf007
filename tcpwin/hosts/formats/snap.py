"""Files written by `tcpwin snap`: JSON lines with the schema `tcpwin/snap/1`.

In: lines. Out: per start record a KernelSample and a SettingsSample; per sample a SocketSample of every socket, changed
or not, a MemorySample and a CounterSample. Truncated or invalid lines are rejected.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeGuard

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import CounterSample, KernelSample, MemorySample, SettingsSample
from tcpwin.hosts.socket import SocketSample, SocketTimer, UlpInfo

MAX_SOCKETS = 200_000
MAX_NAMES = 10_000
MAX_SAMPLES = 1000
"""Maximum samples after a full one; the collector writes fewer. This bounds the work that a small file can cause."""
MAX_TEXT = 500
_MOST = 1 << 64
_RUNNING = ("lastsnd_ns", "lastrcv_ns", "lastack_ns")
_START = re.compile(r'\{\s*"type"\s*:\s*"start"\s*,\s*"schema"\s*:\s*"tcpwin/snap/1"')


class _WrongError(ValueError):
    pass


def recognise(head: list[str]) -> int:
    """Score these lines as the collector's: the first looks like a start record."""
    return 100 if head and _START.match(head[0]) else 0


@dataclass(slots=True)
class _State:
    """State carried from record to record.

    Attributes:
        sockets: values by cookie, with the time at which they were written.
        touched: cookies written by the current sample.
        waiting: outstanding parts of the current sample.
        lost: whether a line was unreadable and no full sample has followed.
    """

    index: int = -1
    page_size_bytes: int = 4096
    left_out: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    memory: dict[tuple[str, str], int] = field(default_factory=dict)
    sockets: dict[int, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    waiting: int = 0
    time_ns: int = 0
    line: int = 0
    samples: int = 0
    lost: bool = False

    def forget(self) -> None:
        """Discard the state after lost data: earlier values may have changed."""
        self.lost = True
        self.sockets = {cookie: self.sockets[cookie] for cookie in self.touched if cookie in self.sockets}


def read(lines: Lines) -> Iterator[Any]:
    """Yield samples in file order."""
    state = _State(page_size_bytes=lines.page_size_bytes)
    for text in lines:
        if not text or text.isspace():
            continue
        try:
            record = _parse(text)
            kind = record.get("type")
            if kind == "more":
                _take_more(state, record)
            elif kind in ("sample", "start", "end"):
                yield from _finish(state)
                if kind == "start":
                    yield from _read_start(state, record, lines.number)
                elif kind == "sample":
                    _take_sample(state, record, lines.number)
            else:
                raise _WrongError
        except _WrongError:
            lines.reject(text)
            state.forget()
            continue
        if state.line and state.waiting == 0:
            yield from _finish(state)
    yield from _finish(state)


def _parse(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise _WrongError from None
    if not isinstance(record, dict):
        raise _WrongError
    return record


def _read_start(state: _State, record: dict[str, Any], line: int) -> Iterator[KernelSample | SettingsSample]:
    if record.get("schema") != "tcpwin/snap/1":
        raise _WrongError
    time_ns = _time(record)
    kernel = _mapping(record.get("kernel"))
    release, hostname = kernel.get("release"), kernel.get("hostname")
    page_size_bytes, ticks = kernel.get("page_size_bytes"), kernel.get("ticks_per_second")
    settings = {
        name[:MAX_TEXT]: value for name, value in _mapping(record.get("settings")).items() if isinstance(value, str)
    }
    left_out = _mapping(record.get("left_out"))
    state.left_out = {name: value for name, value in left_out.items() if name in _KINDS and value in (0, False)}
    state.counters, state.memory, state.sockets = {}, {}, {}
    state.samples, state.lost = 0, False
    if _is_count(page_size_bytes) and page_size_bytes:
        state.page_size_bytes = page_size_bytes
    if isinstance(release, str):
        yield KernelSample(
            time_ns=time_ns,
            line=line,
            release=release[:MAX_TEXT],
            hostname=hostname[:MAX_TEXT] if isinstance(hostname, str) else None,
            page_size_bytes=page_size_bytes if _is_count(page_size_bytes) else None,
            ticks_per_second=ticks if _is_count(ticks) else None,
        )
    yield SettingsSample(time_ns, line, settings)


def _take_sample(state: _State, record: dict[str, Any], line: int) -> None:
    time_ns = _time(record)
    parts = record.get("parts", 1)
    if not _is_count(parts) or parts == 0:
        raise _WrongError
    memory, counters = _memory(record), _counters(record)
    if len(state.counters) + len(counters) > 2 * MAX_NAMES:
        raise _WrongError
    state.samples += 1
    if record.get("whole") is True:
        state.sockets, state.samples, state.lost = {}, 0, False
    elif state.samples > MAX_SAMPLES:
        raise _WrongError
    state.time_ns, state.line, state.waiting = time_ns, line, parts
    state.index += 1
    state.touched = set()
    state.memory = memory or state.memory
    if counters:
        state.counters = {**state.counters, **counters}
    _take_part(state, record)


def _take_more(state: _State, record: dict[str, Any]) -> None:
    if state.waiting == 0 or _time(record) != state.time_ns:
        raise _WrongError
    _take_part(state, record)


def _take_part(state: _State, record: dict[str, Any]) -> None:
    state.waiting -= 1
    is_wrong = False
    for cookie in _list(record.get("gone")):
        if type(cookie) is int:
            state.sockets.pop(cookie, None)
    for name in ("sockets", "changes"):
        for each in _list(record.get(name)):
            try:
                _take_socket(state, _mapping(each), is_whole=name == "sockets")
            except _WrongError:
                is_wrong = True
    if is_wrong:
        raise _WrongError


def _take_socket(state: _State, record: dict[str, Any], *, is_whole: bool) -> None:
    cookie = record.get("cookie")
    if not _is_count(cookie):
        raise _WrongError
    before = {} if is_whole else state.sockets.get(cookie, (0, None))[1]
    if before is None and state.lost:
        return
    try:
        values = socket_values(record)
        if before is None or (is_whole and "state" not in values):
            raise _WrongError
    except _WrongError:
        state.sockets.pop(cookie, None)
        raise
    if is_whole and "lastsnd_ns" in values:
        before = state.left_out
    if len(state.sockets) >= MAX_SOCKETS and cookie not in state.sockets:
        raise _WrongError
    merged = {**before, **values}
    state.sockets[cookie] = (state.time_ns, {name: value for name, value in merged.items() if value is not None})
    state.touched.add(cookie)


def _finish(state: _State) -> Iterator[SocketSample | MemorySample | CounterSample]:
    if state.line == 0:
        return
    if state.waiting:
        state.forget()
    for written_ns, values in state.sockets.values():
        yield _sample(state, written_ns, values)
    if state.memory:
        yield _memory_sample(state)
    if state.counters:
        yield CounterSample(state.time_ns, state.line, state.counters, is_increment=False, rates={})
    state.line = state.waiting = 0
    state.touched = set()


def _sample(state: _State, written_ns: int, values: dict[str, Any]) -> SocketSample:
    found = {**values, "time_ns": state.time_ns, "line": state.line, "index": state.index}
    passed_ns = state.time_ns - written_ns
    if passed_ns > 0:
        for name in _RUNNING:
            if name in found:
                found[name] += passed_ns
        if timer := found.get("timer"):
            left_ns = max(0, timer.expires_ns - passed_ns)
            found["timer"] = SocketTimer(timer.name, left_ns, timer.retransmissions)
    return socket_sample(found)


def socket_sample(found: dict[str, Any]) -> SocketSample:
    """Return a sample of these values and those derived from them; it keeps a reference to the values."""
    cwnd, mss_bytes, rtt_ns = found.get("cwnd_segments"), found.get("mss_bytes"), found.get("rtt_ns")
    if cwnd and mss_bytes and rtt_ns:
        found["send_bps"] = cwnd * mss_bytes * 8e9 / rtt_ns
    if busy_ns := found.get("busy_ns"):
        for limit in ("rwnd_limited", "sndbuf_limited"):
            if (limited_ns := found.get(f"{limit}_ns")) is not None:
                found[f"{limit}_share"] = limited_ns / busy_ns
    return SocketSample.from_values(found)


def _memory_sample(state: _State) -> MemorySample:
    return MemorySample.of(state.time_ns, state.line, state.memory, state.page_size_bytes)


def _kinds() -> dict[str, str]:
    kinds = {each.name: str(each.type).removesuffix(" | None") for each in fields(SocketSample)}
    wanted = ("int", "float", "bool", "str", "SocketTimer", "UlpInfo")
    found = {name: kind for name, kind in kinds.items() if kind in wanted}
    for name in ("time_ns", "line", "index"):
        del found[name]
    return found


_KINDS = _kinds()
_GROUPS = ("bbr", "dctcp")


def socket_values(record: dict[str, Any]) -> dict[str, Any]:
    """Return values by name, each with its field's type. Unknown names go to `extra` as text.

    Raises:
        ValueError: a value has the wrong type.
    """
    values: dict[str, Any] = {}
    extra: dict[str, str] = {}
    for name, value in record.items():
        kind = _KINDS.get(name)
        if value is None and name != "state":
            values[name] = None
        elif kind == "int":
            if type(value) is not int or not -_MOST < value < _MOST:
                raise _WrongError
            values[name] = value
        elif kind == "float":
            values[name] = _real(value)
        elif kind == "bool":
            if type(value) is not bool:
                raise _WrongError
            values[name] = value
        elif kind == "str":
            if type(value) is not str:
                raise _WrongError
            values[name] = value[:MAX_TEXT]
        elif kind == "SocketTimer":
            values[name] = _timer(_mapping(value))
        elif kind == "UlpInfo":
            values[name] = _ulp(_mapping(value))
        elif name in _GROUPS:
            group = _mapping(value)
            values[name] = {
                key[:MAX_TEXT]: each[:MAX_TEXT] if isinstance(each, str) else _number(each)
                for key, each in group.items()
            }
        elif len(extra) < 100:
            extra[name[:MAX_TEXT]] = str(value)[:MAX_TEXT]
    if extra:
        values["extra"] = extra
    return values


def _timer(value: Mapping[str, Any]) -> SocketTimer:
    name, expires_ns, retransmissions = value.get("name"), value.get("expires_ns"), value.get("retransmissions")
    if not isinstance(name, str) or not _is_count(expires_ns) or not _is_count(retransmissions):
        raise _WrongError
    return SocketTimer(name[:MAX_TEXT], expires_ns, retransmissions)


def _ulp(value: Mapping[str, Any]) -> UlpInfo:
    name, values = value.get("name"), _mapping(value.get("values"))
    if not isinstance(name, str):
        raise _WrongError
    return UlpInfo(name[:MAX_TEXT], {key[:MAX_TEXT]: str(each)[:MAX_TEXT] for key, each in values.items()})


def _counters(record: dict[str, Any]) -> dict[str, int]:
    found = _mapping(record.get("counters"))
    if not all(type(value) is int and -_MOST < value < _MOST for value in found.values()):
        raise _WrongError
    return found


def _memory(record: dict[str, Any]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for section, names in _mapping(record.get("memory")).items():
        for name, value in _mapping(names).items():
            if type(value) is not int or not -_MOST < value < _MOST or len(found) == MAX_NAMES:
                raise _WrongError
            found[section, name] = value
    return found


def _time(record: dict[str, Any]) -> int:
    time_ns = record.get("time_ns")
    if type(time_ns) is not int or not 0 <= time_ns < _MOST:
        raise _WrongError
    return time_ns


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST


def _number(value: Any) -> int | float:
    if type(value) is int and -_MOST < value < _MOST:
        return value
    return _real(value)


def _real(value: Any) -> float:
    if type(value) is int and -_MOST * 8 < value < _MOST * 8:
        return float(value)
    if type(value) is float and math.isfinite(value):
        return value
    raise _WrongError


def _mapping(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_NAMES:
        raise _WrongError
    return value


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _WrongError
    return value


FORMAT = Format(
    "snap", "recordings of tcpwin snap: sockets, counters, memory, settings", recognise, read, ("sockets", "counters")
)
