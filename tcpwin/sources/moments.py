"""Times as users write them: since the first packet, a time of day, or a date.

In: seconds, text or a datetime. Out: the engine's representation, to the nanosecond.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tcpwin.errors import ArgumentError

Moment: TypeAlias = "float | str | datetime"
"""Seconds since the first packet; text such as ``250ms``, ``10:05`` or ``2026-11-25T10:05:00Z``; or a datetime."""

_S = 1_000_000_000
_UNITS_NS = {"": _S, "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": _S, "min": 60 * _S, "h": 3600 * _S}
_SINCE = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?(ns|us|µs|ms|s|min|h|)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?", re.ASCII)
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1


def read_moment(value: Moment) -> tuple[str, int]:
    """Return the kind, ``at``, ``after`` or ``time_of_day``, and the nanoseconds.

    Raises:
        ArgumentError: invalid time.
    """
    found = _of_text(value) if isinstance(value, str) else _of_value(value)
    if not _FIRST_NS <= found[1] <= _LAST_NS:
        raise ArgumentError(f"{value!r} is outside the range of capture times")
    return found


def _of_value(value: float | datetime) -> tuple[str, int]:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ArgumentError(f"{value!r} has no time zone: add one, such as datetime.UTC")
        return "at", (value - _EPOCH) // timedelta(microseconds=1) * 1000
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"invalid time {value!r}")
    try:
        return "after", round(value * _S)
    except (OverflowError, ValueError):
        raise ArgumentError(f"invalid time {value!r}") from None


def _of_text(text: str) -> tuple[str, int]:
    if since := _SINCE.fullmatch(text):
        unit_ns = _UNITS_NS[since[3]]
        return "after", int(since[1]) * unit_ns + int((since[2] or "").ljust(9, "0")) * unit_ns // _S
    if clock := _CLOCK.fullmatch(text):
        hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        if hour < 24 and minute < 60 and second < 60:
            return "time_of_day", ((hour * 60 + minute) * 60 + second) * _S + _fraction_ns(clock[4])
    elif date := _DATE.fullmatch(text):
        zone = (date[5] or "Z").replace("Z", "+00:00")
        try:
            moment = datetime.fromisoformat(f"{date[1]}T{date[2] or '00:00'}:{date[3] or '00'}{zone}")
        except ValueError:
            pass
        else:
            return "at", (moment - _EPOCH) // timedelta(seconds=1) * _S + _fraction_ns(date[4])
    raise ArgumentError(
        f"invalid time {text!r}; write 12.5 or 250ms (since the first packet), 10:05:30 or 2026-11-25T10:05:30Z (UTC)"
    )


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))


def resolve_moment(value: Moment, first_ns: int) -> int:
    """Convert to nanoseconds since the epoch, for a capture whose first packet has this time."""
    kind, ns = read_moment(value)
    day_ns = 86_400 * _S
    return {"at": ns, "after": first_ns + ns, "time_of_day": first_ns - first_ns % day_ns + ns}[kind]


def moment_text(moment: Moment) -> str:
    """Format a time for use in a sentence."""
    if isinstance(moment, datetime):
        return moment.isoformat()
    return moment if isinstance(moment, str) else f"{moment:g} s"
