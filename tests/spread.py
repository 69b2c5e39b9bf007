"""Spread repeated checks: some of them by day, the others at night (CONTRIBUTING, "Nightly tests")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

is_day, is_night = False, False
"""Whether this is an ordinary or the nightly run; `conftest.py` sets them before tests are collected."""


def some_by_day(repeats: Iterable[Any], *, of: int = 3, first: int = 0) -> list[Any]:
    """Return a test's parameters, of which one in `of` runs by day; `pytest -m nightly` runs the others.

    Tests of the same captures start at different ones, so most captures are in some test by day. By day the others are
    left out rather than marked: collecting them in each process costs more than many a test.
    """
    cases = list(repeats)
    if is_day:
        return cases[first::of]
    return [
        each if place % of == first else pytest.param(*_values(each), marks=pytest.mark.nightly)
        for place, each in enumerate(cases)
    ]


def _values(parameters: Any) -> tuple[Any, ...]:
    return parameters if isinstance(parameters, tuple) else (parameters,)
