"""The comparison with tshark's tables, made once for the tests of a file."""

from pathlib import Path

import pytest
from oracle.compare import Comparison, compare_all


@pytest.fixture(scope="session")
def comparisons(reference_captures: Path) -> list[Comparison]:
    """Return the comparison of every reference capture."""
    return list(compare_all(reference_captures))
