"""Numbers in the words of findings: durations, counts, rates, shares. Text only; it knows no rules."""

from __future__ import annotations


def time_words(ns: float) -> str:
    """A duration with three digits: ``271 ms``, ``5.03 s``."""
    if ns >= 100 * 86_400e9:
        return f"{ns / 86_400e9:,.0f} d"
    if ns >= 3 * 86_400e9:
        return f"{ns / 86_400e9:.1f} d"
    if ns >= 7200e9:
        return f"{ns / 3600e9:.1f} h"
    if ns >= 120e9:
        return f"{ns / 60e9:.1f} min"
    if ns >= 0.9995e9:
        return f"{ns / 1e9:.3g} s"
    if ns >= 0.9995e6:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e3:.3g} µs"


def count_words(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: ``1 probe``, ``4,586 segments``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def bytes_words(count: float) -> str:
    """Bytes with a decimal prefix and three digits: ``65.5 kB``."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def rate_words(bps: float) -> str:
    """A rate in bits per second with a decimal prefix and three digits: ``6.03 Mbit/s``."""
    for unit, size in (("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= 0.9995 * size:
            return f"{bps / size:.3g} {unit}"
    return f"{bps:.0f} bit/s"
