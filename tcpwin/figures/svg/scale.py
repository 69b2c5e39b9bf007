"""Values to pixels along one axis, and the positions of its ticks.

In: an axis of plotly's layout, the values drawn against it, its two ends in pixels. Out: positions, ticks and
their labels, as text writes values: 60 kB, 2 min 30 s. ``figures/assets/ticks.js`` is its twin for plotly's axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
DATE_STEPS_S = (60, 300, 900, 1800, *(3600 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 672, 2016, 8064)))
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18_000, 36_000)
LONG_S = 120
"""Time from which text has minutes."""
FACTORS_S = {"s": 1.0, "ms": 1e-3}
"""Seconds of the units of axes."""
ROOM = 0.05
"""Padding beyond the outermost values if the axis has no range: a share of their span."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scale:
    """One axis.

    Attributes:
        axis: its layout.
        least, most: its ends in its own units: values, their logarithms, or category indices.
        start, end: pixels of these ends.
        names: names of the categories; empty on other axes.
    """

    axis: Mapping[str, Any]
    least: float
    most: float
    start: float
    end: float
    names: Sequence[str] = ()

    @property
    def is_log(self) -> bool:
        """True if the axis is logarithmic."""
        return self.axis.get("type") == "log"

    def numbers(self, values: Iterable[Any]) -> Values:
        """Convert values to numbers: categories to their indices; NaN if missing."""
        if self.names:
            return np.array([self.names.index(str(each)) for each in values], dtype=np.float64)
        return as_numbers(values)

    def pixels(self, values: Values) -> Values:
        """Return the pixels of values; NaN for the logarithm of a value that is not positive."""
        measured = measure(self.axis, values)
        return np.asarray(self.start + (measured - self.least) / (self.most - self.least) * (self.end - self.start))

    def at(self, value: float) -> float:
        """Return the pixel of one value."""
        return float(self.pixels(np.array([value], dtype=np.float64))[0])

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return pixels and labels of about this many ticks at most."""
        if self.axis.get("tickmode") == "array":
            found = list(zip(self.axis["tickvals"], self.axis["ticktext"], strict=True))
        elif self.names:
            found = list(enumerate(self.names))
        elif self.axis.get("type") == "date":
            found = _date_ticks(self.least, self.most, most)
        elif self.is_log:
            found = [(value, self._label(value, value)) for value in _log_ticks(self.least, self.most, most)]
        else:
            found = self._linear_ticks(most)
        return [(self.at(float(value)), str(label)) for value, label in found if self._holds(float(value))]

    def _holds(self, value: float) -> bool:
        place = float(measure(self.axis, np.array([value], dtype=np.float64))[0])
        slack = 1e-9 * (self.most - self.least)
        return self.least - slack <= place <= self.most + slack

    def _linear_ticks(self, most: int) -> list[tuple[float, str]]:
        wanted = (self.most - self.least) / max(most, 1)
        step = _step(wanted)
        factor = FACTORS_S.get(self._unit)
        is_long = factor is not None and max(abs(self.least), abs(self.most)) * factor >= LONG_S
        if factor is not None and is_long and wanted * factor > STEPS_S[0] / 2:
            step = next((each for each in STEPS_S if each >= wanted * factor * (1 - 1e-9)), step * factor) / factor
        first, last = math.ceil(self.least / step - 1e-9), math.floor(self.most / step + 1e-9)
        places = [place * step for place in range(first, last + 1)]
        if factor is not None and is_long:
            return [(each, long_text(each * factor, step * factor)) for each in places]
        return [(each, self._label(each, step)) for each in places]

    @property
    def _unit(self) -> str:
        return str(self.axis.get("ticksuffix", "")).strip()

    def _label(self, value: float, step: float) -> str:
        unit = self._unit
        if unit in FACTORS_S:
            # Text writes 1,500 ms as 1.5 s.
            value, step = value * FACTORS_S[unit], step * FACTORS_S[unit]
            return long_text(value, 1) if abs(value) >= LONG_S else number_text(value, step, least=-9, unit="s")
        if unit in ("B", "bit/s"):
            return number_text(value, step, most=max(PREFIXES), unit=unit)
        is_prefixed = "s" in str(self.axis.get("tickformat", ""))
        powers = (min(PREFIXES), max(PREFIXES)) if is_prefixed else (0, 0)
        return number_text(value, step, least=powers[0], most=powers[1]) + str(self.axis.get("ticksuffix", ""))


def as_numbers(values: Any) -> Values:
    """Return an array of floats; NaN if missing."""
    return np.array([math.nan if each is None else each for each in values], dtype=np.float64)


def measure(axis: Mapping[str, Any], values: Values) -> Values:
    """Convert values to the axis's linear units."""
    if axis.get("type") != "log":
        return values
    return np.log10(np.where(values > 0, values, np.nan))


def span_of(axis: Mapping[str, Any], values: Sequence[Values], *, count: int = 0) -> tuple[float, float]:
    """Return the ends of an axis in its own units: its range, or that of the padded values.

    Args:
        count: number of categories.
    """
    if "range" in axis:
        least, most = (float(each) for each in axis["range"])
        return (least, most) if most > least else (least - 0.5, most + 0.5)
    if count:
        return -0.5, count - 0.5
    measured = measure(axis, np.concatenate([*values, np.zeros(0)]))
    known = measured[np.isfinite(measured)]
    if not len(known):
        return 0.0, 1.0
    least, most = float(known.min()), float(known.max())
    is_from_zero = axis.get("rangemode") == "tozero" and axis.get("type") != "log"
    if is_from_zero:
        least, most = min(least, 0.0), max(most, 0.0)
    room = (most - least) * ROOM or 0.5
    return (least if is_from_zero and not least else least - room), most + room


def number_text(value: float, step: float, *, least: int = 0, most: int = 0, unit: str = "") -> str:
    """Format a number for an axis with this tick step.

    Args:
        least, most: powers of ten of the smallest and largest prefix allowed.
        unit: written after a space and the prefix.
    """
    power = 0
    if value:
        power = max(min(3 * math.floor(math.log10(abs(value)) / 3 + 1e-9), most), least)
    # As many digits as distinguish neighbouring ticks.
    digits = max(0, -math.floor(math.log10(abs(step) / 10.0**power) + 1e-9))
    text = f"{value / 10.0**power or 0:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text}{' ' if unit else ''}{PREFIXES[power]}{unit}"


def long_text(seconds: float, step_s: float) -> str:
    """Write the time at a tick of an axis that exceeds two minutes: ``30 s``, ``2 min 30 s``, ``3 h 20 min``."""
    if seconds < 0:
        return f"-{long_text(-seconds, step_s)}"
    minutes = math.floor(seconds / 60 + 1e-9)
    rest = max(seconds - 60 * minutes, 0.0)
    parts = [f"{minutes} min"] if minutes else []
    if minutes >= 120:
        parts = [f"{minutes // 60:,} h", *([f"{minutes % 60} min"] if minutes % 60 else [])]
    if rest > step_s * 1e-6 or not minutes:
        parts.append(number_text(rest, step_s, unit="s"))
    return " ".join(parts)


def _step(least: float) -> float:
    """Return the next larger step of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _log_ticks(least: float, most: float, ticks: int) -> list[float]:
    """Return powers of ten, with their double and fivefold if these are few, or evenly spaced values within one."""
    powers = range(math.ceil(least - 1e-9), math.floor(most + 1e-9) + 1)
    if len(powers) > 2:
        return [10.0**each for each in powers[:: max(1, -(-len(powers) // max(ticks, 1)))]]
    finer = range(math.floor(least), math.ceil(most) + 1)
    found = [factor * 10.0**each for each in finer for factor in (1, 2, 5)]
    inside = [each for each in found if least - 1e-9 <= math.log10(each) <= most + 1e-9]
    if len(inside) > 1:
        return inside
    step = _step((10.0**most - 10.0**least) / max(ticks, 1))
    return [place * step for place in range(math.ceil(10.0**least / step), math.floor(10.0**most / step) + 1)]


def _date_ticks(least_ms: float, most_ms: float, ticks: int) -> list[tuple[float, str]]:
    """Return round times of day in UTC; the date is added to the first, and at the start of each day."""
    wanted_s = (most_ms - least_ms) / 1e3 / max(ticks, 1)
    step_s = next((each for each in DATE_STEPS_S if each >= wanted_s), DATE_STEPS_S[-1])
    found: list[tuple[float, str]] = []
    for place in range(math.ceil(least_ms / 1e3 / step_s), math.floor(most_ms / 1e3 / step_s) + 1):
        moment = EPOCH + timedelta(seconds=place * step_s)
        is_told = not found or not place * step_s % 86_400
        found.append(
            (
                place * step_s * 1e3,
                moment.strftime("%b %d" if step_s >= 86_400 else "%b %d, %H:%M" if is_told else "%H:%M"),
            )
        )
    return found
