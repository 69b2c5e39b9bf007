"""The comparison with tshark's tables, made once for the tests of a file, and a way to look up one frame."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from oracle.compare import Comparison, Segment, compare_all
from oracle.kinds import Kinds, explain

# The name of a capture ends with it; a frame. Returns tcpwin's row, tshark's segment, the kinds of their
# differences.
Look = Callable[[str, int], tuple[dict[str, object], Segment, Kinds]]


@pytest.fixture(scope="session")
def comparisons(reference_captures: Path) -> list[Comparison]:
    """Return the comparison of every reference capture."""
    return list(compare_all(reference_captures))


@pytest.fixture(scope="session")
def look(comparisons: list[Comparison]) -> Look:
    """Return a function that looks up one frame of one capture."""

    @cache
    def kinds_of(name: str) -> dict[int, Kinds]:
        (comparison,) = (one for one in comparisons if one.name == name)
        found: dict[int, Kinds] = {}
        for difference, kinds in explain(comparison):
            found[difference.frame] = found.get(difference.frame, frozenset()) | kinds
        return found

    def find(name: str, frame: int) -> tuple[dict[str, object], Segment, Kinds]:
        (comparison,) = (one for one in comparisons if one.name.endswith(name))
        (segment,) = (one for one in comparison.segments if one.frame == frame)
        return dict(comparison.rows[frame]), segment, kinds_of(comparison.name).get(frame, frozenset())

    return find
