"""Parse the values of `ss` that have a special format: memory, times, rates, timers, congestion control.

In: the text after a token's name. Out: fields of SocketSample set in a dict, times in nanoseconds, rates in bit/s;
ValueError or ArithmeticError for other formats. Based on iproute2's misc/ss.c, 3.10 to 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tcpwin.hosts.socket import SocketTimer

Values = dict[str, Any]
"""Values of one socket by field name."""

MAX_EXTRA = 200
"""Unknown tokens to keep per socket."""
MAX_EXTRA_CHARACTERS = 500
MAX_COUNT = (1 << 64) - 1
"""No kernel counter is larger."""
MAX_TIME_NS = (1 << 63) - 1
WRAPPED_MS = 1 << 31
"""Times from here on are negative ones that wrapped in the kernel's 32 bits of milliseconds."""
MILLISECOND_NS = 1_000_000

_MEMORY_NAMES = {
    "r": "rmem_alloc_bytes",
    "rb": "rcvbuf_bytes",
    "t": "wmem_alloc_bytes",
    "tb": "sndbuf_bytes",
    "f": "fwd_alloc_bytes",
    "w": "wmem_queued_bytes",
    "o": "optmem_bytes",
    "bl": "backlog_bytes",
    "d": "drops",
}
_MEMORY_FIELDS = tuple(_MEMORY_NAMES.values())
_SKMEM = re.compile(
    r"\(r(\d{1,10}),rb(\d{1,10}),t(\d{1,10}),tb(\d{1,10}),f(\d{1,10}),w(\d{1,10}),o(\d{1,10}),bl(\d{1,10}),d(\d{1,10})\)"
)
_MEMORY = re.compile(r"\([a-z]+\d{1,10}(?:,[a-z]+\d{1,10})*\)")
_MEMORY_PART = re.compile(r"([a-z]+)(\d+)")
_TIMER = re.compile(r"\(([\w-]{1,20}),([^,]{0,40}),(\d{1,10})\)")
_EXPIRES = re.compile(
    r"(?:(\d{1,10})min)?(?:(\d{1,10})sec|(?:(\d{1,10})\.(\d{3})|(\d{1,3}))ms|(\d{1,10})\.(\d{3})sec)?"
)
_BUSY = re.compile(r"(\d{1,20})ms")
_LIMITED = re.compile(r"(\d{1,20})ms\((\d{1,20}\.\d)%\)")
_GROUP = re.compile(r"\(([^()]*)\)")
RATE = re.compile(r"(\d[\d.]{0,30}(?:e[+-]?\d{1,3})?)([kKMGT]?)bps")
_EXPONENT = {"k": 3, "K": 3, "M": 6, "G": 9, "T": 12}


def keep(values: Values, unknown: dict[str, str]) -> None:
    """Add unknown tokens to a socket's `extra`, up to its limit."""
    extra = values.setdefault("extra", {})
    for name, text in unknown.items():
        if len(extra) < MAX_EXTRA or name in extra:
            extra[name] = text


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError
    return match


def _signed(number: int) -> int:
    """Convert `sk_forward_alloc`: signed, but printed by `ss` as unsigned 32 bits (net/core/sock.c, sk_get_meminfo)."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _lettered_memory(values: Values, text: str) -> None:
    """Parse memory with fewer or more parts, or ``mem:(r,w,f,t)``, which has the same letters in another order."""
    for name, number in _MEMORY_PART.findall(_match(_MEMORY, text)[0]):
        if name in _MEMORY_NAMES:
            values[_MEMORY_NAMES[name]] = _signed(int(number)) if name == "f" else int(number)
        else:
            keep(values, {f"skmem_{name}"[:MAX_EXTRA_CHARACTERS]: number})


def _skmem(values: Values, text: str) -> None:
    match = _SKMEM.fullmatch(text)
    if match is None:
        _lettered_memory(values, text)
        return
    values.update(zip(_MEMORY_FIELDS, map(int, match.groups()), strict=True))
    if values["fwd_alloc_bytes"] >= 1 << 31:
        values["fwd_alloc_bytes"] = _signed(values["fwd_alloc_bytes"])


def _milliseconds(text: str) -> int:
    """Convert a `%g` number of milliseconds to nanoseconds."""
    time_ns = round(float(text) * 1e6)
    if not 0 <= time_ns <= MAX_TIME_NS:
        raise ValueError
    return time_ns


def _whole_milliseconds(text: str) -> int:
    """Convert a whole number of milliseconds to nanoseconds, exactly even beyond a float's precision."""
    time_ns = int(text) * MILLISECOND_NS
    if time_ns > MAX_TIME_NS:
        raise ValueError
    return time_ns


def _time(field: str) -> Callable[[Values, str], None]:
    def convert(values: Values, text: str) -> None:
        values[field] = _milliseconds(text)

    return convert


def _last(field: str) -> Callable[[Values, str], None]:
    """Return a parser of the time since an event; None if it wrapped: the event never happened, or is in the future."""

    def convert(values: Values, text: str) -> None:
        time_ms = int(text)
        if not 0 <= time_ms < 1 << 32:
            raise ValueError
        if time_ms < WRAPPED_MS:
            values[field] = time_ms * MILLISECOND_NS

    return convert


def _rtt(values: Values, text: str) -> None:
    smoothed, _, deviation = text.partition("/")
    rtt_ns, rttvar_ns = _milliseconds(smoothed), _milliseconds(deviation)
    values["rtt_ns"] = rtt_ns
    values["rttvar_ns"] = rttvar_ns


def _pair(first: str, separator: str, second: str) -> Callable[[Values, str], None]:
    def convert(values: Values, text: str) -> None:
        left, _, right = text.partition(separator)
        one, other = _count(left), _count(right)
        values[first] = one
        values[second] = other

    return convert


def _busy(values: Values, text: str) -> None:
    values["busy_ns"] = _whole_milliseconds(_match(_BUSY, text)[1])


def _limited(name: str) -> Callable[[Values, str], None]:
    def convert(values: Values, text: str) -> None:
        match = _match(_LIMITED, text)
        values[f"{name}_limited_ns"] = _whole_milliseconds(match[1])
        values[f"{name}_limited_share"] = float(f"{match[2]}e-2")

    return convert


def _timer(values: Values, text: str) -> None:
    timer = _match(_TIMER, text)
    minutes, whole, old, old_ms, milliseconds, seconds, ms = _match(_EXPIRES, timer[2]).groups("0")
    # Before iproute2 6.11, 1.203 s was printed as 1.203ms; a number of milliseconds alone has no dot.
    in_seconds = int(minutes) * 60 + int(whole) + int(old) + int(seconds)
    expires_ms = in_seconds * 1000 + int(old_ms) + int(milliseconds) + int(ms)
    # In older kernels the remaining time of an expired timer wrapped around; above nine minutes ss omits the seconds.
    expires_ns = expires_ms * MILLISECOND_NS if expires_ms < WRAPPED_MS - 60_000 else None
    values["timer"] = SocketTimer(timer[1], expires_ns, int(timer[3]))


def _count(text: str, base: int = 10) -> int:
    number = int(text, base)
    if not 0 <= number <= MAX_COUNT:
        raise ValueError
    return number


def _based(field: str, base: int) -> Callable[[Values, str], None]:
    def convert(values: Values, text: str) -> None:
        values[field] = _count(text, base)

    return convert


def _flag(values: Values, text: str) -> None:
    values["v6only"] = int(text) != 0


def _cgroup(values: Values, text: str) -> None:
    values["cgroup"] = text


def _md5_keys(values: Values, text: str) -> None:
    values["md5_keys"] = tuple(text.split(","))


def _dctcp(values: Values, text: str) -> None:
    if text == "fallback_mode":
        values["dctcp"] = {"mode": text}
        return
    names = {"ab_ecn": "ab_ecn_bytes", "ab_tot": "ab_tot_bytes"}
    parts = (part.partition(":") for part in _match(_GROUP, text)[1].split(",", 20))
    values["dctcp"] = {names.get(name, name[:MAX_EXTRA_CHARACTERS]): _count(number) for name, _, number in parts}


def _bbr(values: Values, text: str) -> None:
    found: dict[str, float] = {}
    for part in _match(_GROUP, text)[1].split(",", 20):
        name, _, number = part.partition(":")
        if name == "bw":
            found["bw_bps"] = _rate(number)
        elif name == "mrtt":
            found["mrtt_ns"] = _milliseconds(number)
        else:
            found[name[:MAX_EXTRA_CHARACTERS]] = _finite(number)
    values["bbr"] = found


def _finite(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


def _rate(text: str) -> float:
    """Convert ``113975.7Mbps``, ``1e+03Mbps`` or ``46.3kbps`` to bit/s, rounded to the nearest integer."""
    if text[-3:] != "bps":
        raise ValueError
    shift = _EXPONENT.get(text[-4:-3])
    if shift is None:
        return _finite(text[:-3])
    number, _, exponent = text[:-4].partition("e")
    return _finite(f"{number}e{int(exponent) + shift}" if exponent else f"{number}e{shift}")


def _rate_of(field: str) -> Callable[[Values, str], None]:
    def convert(values: Values, text: str) -> None:
        values[field] = _rate(text)

    return convert


def _pacing_rate(values: Values, text: str) -> None:
    rate, slash, bound = text.partition("/")
    rate_bps = _rate(rate)
    if slash:
        values["max_pacing_rate_bps"] = _rate(bound)
    values["pacing_rate_bps"] = rate_bps


VALUES: dict[str, Callable[[Values, str], None]] = {
    "skmem": _skmem,
    "mem": _lettered_memory,
    "wscale": _pair("snd_wscale", ",", "rcv_wscale"),
    "rto": _time("rto_ns"),
    "rtt": _rtt,
    "ato": _time("ato_ns"),
    "lastsnd": _last("lastsnd_ns"),
    "lastrcv": _last("lastrcv_ns"),
    "lastack": _last("lastack_ns"),
    "busy": _busy,
    "rwnd_limited": _limited("rwnd"),
    "sndbuf_limited": _limited("sndbuf"),
    "retrans": _pair("retrans_segments", "/", "retrans_total"),
    "rcv_rtt": _time("rcv_rtt_ns"),
    "minrtt": _time("minrtt_ns"),
    "bbr": _bbr,
    "dctcp": _dctcp,
    "md5keys": _md5_keys,
    "timer": _timer,
    "sk": _based("cookie", 16),
    "fwmark": _based("fwmark", 16),
    "tos": _based("tos", 16),
    "tclass": _based("tclass", 16),
    "class_id": _based("class_id", 16),
    "v6only": _flag,
    "cgroup": _cgroup,
}
"""Tokens with a special value format: each converter sets its fields or raises ValueError or ArithmeticError."""

RATES: dict[str, Callable[[Values, str], None]] = {
    "send": _rate_of("send_bps"),
    "pacing_rate": _pacing_rate,
    "delivery_rate": _rate_of("delivery_rate_bps"),
}
"""Words whose value is the next word."""
