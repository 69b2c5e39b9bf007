"""Reports of captures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from analysis.bundled import CAPTURES

import tcpwin

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return the path of a capture's report as HTML; each is made once."""
    folder = tmp_path_factory.mktemp("reports")
    made: dict[Path, Path] = {}

    def page(capture: Path) -> Path:
        if capture not in made:
            made[capture] = folder / f"{len(made)}.html"
            tcpwin.analyze(capture).report(made[capture])
        return made[capture]

    return page
