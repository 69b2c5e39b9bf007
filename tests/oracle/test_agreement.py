"""tcpwin's table agrees with tshark's on every reference capture: exactly where tshark is exact, nearly
where it guesses.

Frames that debatable.csv names are left out of the shares here; test_differences.py has every difference,
those too.
"""

from collections import Counter

import pytest
from oracle.compare import FIELDS, Comparison

CAPTURES = 69
SEGMENTS = 42_445
EXACT = ("seq", "ack", "length", "flags", "window_raw", "window", "stream", "zero_window")
SHARES = {
    "bytes_in_flight": 0.99,
    "window_full": 0.97,
    "window_update": 0.97,
    "keep_alive": 0.97,
    "zero_window_probe": 0.97,
}
# As many judgements as each field must at least get, so that no share stands on nothing.
FEWEST = {
    "ack": 40_000,
    "window": 40_000,
    "bytes_in_flight": 23_000,
    "zero_window": 40,
    "window_full": 600,
    "window_update": 150,
    "zero_window_probe": 10,
    "keep_alive": 4,
}


def judged(comparisons: list[Comparison]) -> tuple[Counter[str], Counter[str]]:
    """Count, by field, the judgements outside the list of debatable frames, and the differences among them."""
    seen, differing = Counter[str](), Counter[str]()
    for comparison in comparisons:
        seen.update(comparison.seen)
        for difference in comparison.differences:
            if difference.is_debatable:
                seen[difference.field] -= 1
            else:
                differing[difference.field] += 1
    return seen, differing


def test_the_fields_are_all_judged() -> None:
    assert {*EXACT, *SHARES} == set(FIELDS)


def test_no_segment_is_missing_and_none_is_extra(comparisons: list[Comparison]) -> None:
    assert len(comparisons) == CAPTURES
    assert sum(len(comparison.segments) for comparison in comparisons) == SEGMENTS
    assert [(one.name, one.missing, one.extra) for one in comparisons if one.missing or one.extra] == []


@pytest.mark.parametrize("field", EXACT)
def test_every_segment_agrees(field: str, comparisons: list[Comparison]) -> None:
    seen, _ = judged(comparisons)
    assert seen[field] >= FEWEST.get(field, SEGMENTS)
    differences = [
        (comparison.name, difference)
        for comparison in comparisons
        for difference in comparison.differences
        if difference.field == field and not difference.is_debatable
    ]
    assert differences == []


@pytest.mark.parametrize("field", SHARES)
def test_nearly_every_segment_agrees(field: str, comparisons: list[Comparison]) -> None:
    seen, differing = judged(comparisons)
    assert seen[field] >= FEWEST[field]
    assert 1 - differing[field] / seen[field] >= SHARES[field]
