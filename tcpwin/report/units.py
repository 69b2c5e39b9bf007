"""Numbers and names as people read them."""

from __future__ import annotations

from pathlib import PurePath


def name_text(name: str) -> str:
    """A name on one line: characters that would act on a terminal are written as escapes."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in name)


def short_name(name: str) -> str:
    """A capture without its folders, which say little and are long; the member of a bundle stays whole."""
    path, colon, member = name.partition(": ")
    return name_text(f"{PurePath(path).name or path}{colon}{member}")


def bytes_text(count: float | None) -> str:
    """Bytes with a decimal prefix, three digits: ``65.5 kB``."""
    return "unknown" if count is None else _scaled(count, ("B", "kB", "MB", "GB", "TB"))


def rate_text(bits_per_second: float | None) -> str:
    """Bits per second with a decimal prefix: ``6.03 Mbit/s``."""
    if bits_per_second is None:
        return "no rate"
    return _scaled(bits_per_second, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def time_text(ns: int | None) -> str:
    """A duration: ``271 ms``, ``5.03 s``, ``2.5 min``, ``7.2 h``, ``3.5 d``."""
    if ns is None:
        return "unknown"
    seconds = ns / 1e9
    if seconds >= 100 * 86_400:
        return f"{seconds / 86_400:,.0f} d"
    if seconds >= 3 * 86_400:
        return f"{seconds / 86_400:.1f} d"
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    # Three digits round up to the next unit.
    if ns >= 999_500_000:
        return f"{max(seconds, 1):.3g} s"
    if ns >= 999_500:
        return f"{max(seconds * 1e3, 1):.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: ``1 probe``, ``4,586 packets``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _scaled(value: float, units: tuple[str, ...]) -> str:
    position = 0
    while round(abs(value)) >= 1000 and position < len(units) - 1:
        value /= 1000
        position += 1
    if 0 < abs(value) < 0.5 and position == 0:
        # Rounded to nothing, little would be said to be none.
        return f"{value:.2g} {units[0]}" if abs(value) >= 0.001 else f"less than 0.001 {units[0]}"
    digits = f"{value:.0f}" if position == 0 or value >= 100 else f"{value:.3g}"
    return f"{digits} {units[position]}"
