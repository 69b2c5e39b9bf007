"""Repeats of one check: some of them by day, the others at night (CONTRIBUTING, "Tests that run at night")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_by_day(repeats: Iterable[Any], *, of: int = 3, first: int = 0) -> list[Any]:
    """Parameters of a test, spread: by day one of so many, from the given one on; `pytest -m nightly` has the others.

    Tests of the same captures begin elsewhere each, so that by day most captures are asked by one of them.
    """
    return [
        each if place % of == first else pytest.param(*_values(each), marks=pytest.mark.nightly)
        for place, each in enumerate(repeats)
    ]


def _values(parameters: Any) -> tuple[Any, ...]:
    return parameters if isinstance(parameters, tuple) else (parameters,)
