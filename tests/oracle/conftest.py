"""The comparison with tshark's tables, cached for the tests of a file, and a way to look up one frame."""

from functools import cache
from pathlib import Path
from typing import Protocol

import pytest
from oracle.compare import Comparison, Segment, compare_all
from oracle.kinds import Kinds, explain

DAMAGED = "zeek+zeek/testing__btest__Traces__modbus__fuzz-72.pcap"
"""Many numbers in its headers have flipped bits. tshark believes all of them, tcpwin none that no window allows, so
from frame 12 on their states have nothing in common. Its frames are judged by hand.
"""


class Look(Protocol):
    """A capture's name ends with NAME. Return tcpwin's row, tshark's segment, the kinds of their differences."""

    def __call__(self, name: str, frame: int, field: str = "") -> tuple[dict[str, object], Segment, Kinds]: ...


@pytest.fixture(scope="session")
def every_comparison(reference_captures: Path) -> list[Comparison]:
    """Return the comparison of every reference capture."""
    return list(compare_all(reference_captures))


@pytest.fixture(scope="session")
def comparisons(every_comparison: list[Comparison]) -> list[Comparison]:
    """Return the comparisons of captures with intact headers."""
    return [each for each in every_comparison if each.name != DAMAGED]


@pytest.fixture(scope="session")
def look(every_comparison: list[Comparison]) -> Look:
    """Return a function that looks up one frame of a capture, in one field or all."""

    @cache
    def kinds_of(name: str) -> dict[tuple[int, str], Kinds]:
        (comparison,) = (one for one in every_comparison if one.name == name)
        return {(difference.frame, difference.field): kinds for difference, kinds in explain(comparison)}

    def find(name: str, frame: int, field: str = "") -> tuple[dict[str, object], Segment, Kinds]:
        (comparison,) = (one for one in every_comparison if one.name.endswith(name))
        (segment,) = (one for one in comparison.segments if one.frame == frame)
        found = [
            kinds for (at, name_), kinds in kinds_of(comparison.name).items() if at == frame and field in ("", name_)
        ]
        return dict(comparison.rows[frame]), segment, frozenset[str]().union(*found)

    return find
