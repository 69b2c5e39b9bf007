"""Numbers and names as people read them: the one place that writes a value with its unit.

Three significant digits at most; from two minutes on, whole minutes and seconds. Sizes are in powers of 1000 (kB =
1,000 bytes), rates in bit/s. The same value reads the same in the terminal, in findings, in reports and on
the service's pages. ``render/report/page/report.js`` is its twin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import PurePath

__all__ = [
    "binary_text",
    "bytes_text",
    "change_text",
    "clock_text",
    "count_text",
    "date_text",
    "name_text",
    "rate_text",
    "rest_text",
    "share_text",
    "short_name",
    "time_text",
]

# Halves round up, as JavaScript's toPrecision does.
_THREE = Context(prec=3, rounding=ROUND_HALF_UP)
_TWO = Context(prec=2, rounding=ROUND_HALF_UP)
_SIZES = (("B", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))
_BINARY_SIZES = (("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40))
_RATES = (("bit/s", 1), ("kbit/s", 10**3), ("Mbit/s", 10**6), ("Gbit/s", 10**9), ("Tbit/s", 10**12))
_TIMES = (
    ("µs", 10**3, 0),
    ("ms", 10**6, 1),
    ("s", 10**9, 1),
    # Two minutes or hours at least: 90 s reads better than 1.5 min, and 100 min better than 1.67 h.
    ("min", 60 * 10**9, 2),
    ("h", 3600 * 10**9, 2),
    ("d", 86_400 * 10**9, 3),
)
_SMALLER = {"min": ("s", 10**9), "h": ("min", 60 * 10**9), "d": ("h", 3600 * 10**9)}
"""Units of the remainder after whole minutes, hours and days."""


def time_text(ns: float | None) -> str:
    """Write a duration: ``271 ms``, ``5.03 s``, ``2 min 32 s``, ``7 h 5 min``, ``3 d 12 h``."""
    if ns is None:
        return "unknown"
    if ns <= 0:
        return f"-{time_text(-ns)}" if ns else "0 s"
    unit, size = _time_unit(ns)
    if unit in _SMALLER:
        smaller, smaller_size = _SMALLER[unit]
        whole, left = divmod(_rounded_to(ns, smaller_size), size // smaller_size)
        if whole >= 100:
            return f"{_rounded_to(ns, size):,} {unit}"
        return f"{whole:,} {unit} {left} {smaller}" if left else f"{whole:,} {unit}"
    # A mean may have fractions of a nanosecond, which no clock measures.
    return f"{_digits(ns / size if ns >= 1000 else round(ns) / size)} {unit}"


def _time_unit(ns: float) -> tuple[str, int]:
    """Return the largest unit in which the rounded duration reaches the unit's minimum, and its nanoseconds."""
    for unit, size, least in reversed(_TIMES):
        # Rounding cannot raise a value that is far below.
        if ns > size * least * 0.99 and _rounded(ns / size) >= least:
            return unit, size
    return _TIMES[0][:2]


def _rounded_to(ns: float, size: int) -> int:
    """Return how many times a duration has a size, rounded; halves round up."""
    return math.floor(ns / size + 0.5)


def rest_text(whole_ns: int, part_ns: int) -> str:
    """Write a duration minus a part of it, so that the rounded part and rest add up to the rounded duration."""
    unit, size = _time_unit(whole_ns)
    if unit in _SMALLER:
        _, smaller_size = _SMALLER[unit]
        if part_ns < smaller_size:
            return time_text(whole_ns - part_ns)
        return time_text((_rounded_to(whole_ns, smaller_size) - _rounded_to(part_ns, smaller_size)) * smaller_size)
    whole, part = _rounded(whole_ns / size), _rounded(part_ns / size)
    last = Decimal(1).scaleb(whole.adjusted() - 2)
    left = whole.quantize(last) - part.quantize(last, ROUND_HALF_UP)
    if left <= 0 or not time_text(part_ns).endswith(f" {unit}"):
        return time_text(whole_ns - part_ns)
    return time_text(float(left) * size)


def bytes_text(count: float | None) -> str:
    """Write a size with a decimal prefix: ``65.5 kB``."""
    return "unknown" if count is None else _scaled(count, _SIZES)


def binary_text(count: float | None) -> str:
    """Write memory that is set in powers of 1024: ``512 MiB``."""
    return "unknown" if count is None else _scaled(count, _BINARY_SIZES)


def rate_text(bits_per_second: float | None) -> str:
    """Write a rate with a decimal prefix: ``6.03 Mbit/s``."""
    return "no rate" if bits_per_second is None else _scaled(bits_per_second, _RATES)


def share_text(share: float | None, *, places: int = 0) -> str:
    """Write a share of a whole: ``89 %``; a positive share that rounds to 0 is ``<1 %``."""
    if share is None:
        return "unknown"
    least = f"{10.0**-places:.{places}f}"
    text = f"{100 * share:,.{places}f}"
    return f"<{least} %" if share > 0 and not float(text.replace(",", "")) else f"{text} %"


def change_text(factor: float) -> str:
    """Write how much a value changed: ``+20 %``, from three times on ``× 4.5``."""
    return f"× {factor:.3g}" if factor >= 3 else f"{100 * (factor - 1):+.0f} %"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: ``1 probe``, ``4,586 packets``, ``2 retries``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def clock_text(time_ns: int | None, *, with_date: bool = False) -> str:
    """Write a moment in UTC with milliseconds: ``19:41:25.336``."""
    if time_ns is None:
        return "-"
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{moment:{'%Y-%m-%d ' if with_date else ''}%H:%M:%S}.{time_ns // 1_000_000 % 1000:03}"


def name_text(name: str) -> str:
    """Write a name on one line: characters that would act on a terminal become escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in name)


def begin(text: str) -> str:
    """Capitalize the first letter of a text, unless it is the side ``a`` or ``b``."""
    return text if text[1:2] in (" ", "'") else text[:1].upper() + text[1:]


def short_name(name: str) -> str:
    """Write a capture's name without its folders, which say little; the member of a bundle stays whole."""
    path, colon, member = name.partition(": ")
    return name_text(f"{PurePath(path).name or path}{colon}{member}")


def _scaled(value: float, units: Sequence[tuple[str, int]]) -> str:
    if value < 0:
        return f"-{_scaled(-value, units)}"
    unit, size = next((each for each in units if _rounded(value / each[1]) < 1000), units[-1])
    if size > 1:
        return f"{_digits(value / size)} {unit}"
    if 0 < value < 0.5:
        # "0 B" would say that there is none.
        return f"{_TWO.create_decimal(value).normalize():f} {unit}" if value >= 0.001 else f"less than 0.001 {unit}"
    return f"{Decimal(value).to_integral_value(ROUND_HALF_UP)} {unit}"


def _rounded(value: float) -> Decimal:
    """Round to three significant digits."""
    return _THREE.create_decimal(value)


def _digits(value: float) -> str:
    """Three significant digits without an exponent: ``5.03``, ``14,600``."""
    return f"{_rounded(value).normalize():,f}"


def date_text(time_ns: int) -> str:
    """A moment, nanoseconds since the epoch, to the minute: ``2026-11-25 10:05 UTC``."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
