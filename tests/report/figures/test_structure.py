"""The structure of each figure as a snapshot: traces, axes, numbers of points, first and last points.

`pytest tests/report/figures/test_structure.py --snapshot-update` rewrites it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report.figures.drawn import BUNDLE, LOSS, MANY_SHORT, NAMES, STALL, connection, drawn
from syrupy.assertion import SnapshotAssertion

from tcpwin import figures

SUBJECTS = {"bundle": BUNDLE, "loss": LOSS, "stall": STALL, "many": MANY_SHORT}


def ends(values: Any) -> list[Any]:
    """Return the first and last of several values, rounded so that every machine agrees."""
    chosen = [values[0], values[-1]]
    return [each if isinstance(each, str) else float(f"{float(np.asarray(each).item()):.5g}") for each in chosen]


def outline(figure: Any) -> dict[str, Any]:
    """Return a readable summary of the figure's structure."""
    layout = figure.layout
    return {
        "height": layout.height,
        "title": layout.title.text,
        "meta": dict(layout.meta),
        "labels": [each.text for each in layout.annotations],
        "traces": [_outline_of(each) for each in figure.data],
    }


def _outline_of(trace: Any) -> str:
    look = trace.mode if trace.type == "scatter" else trace.marker.pattern.shape
    colour = trace.marker.color or trace.line.color
    parts = [
        trace.type,
        look,
        trace.yaxis,
        f"{len(trace.x)} points",
        f"x {ends(trace.x)}",
        f"y {ends(trace.y)}",
        colour,
    ]
    return f"{trace.name}: " + ", ".join(str(part) for part in parts if part is not None)


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("name", NAMES)
def test_structure(name: str, subject: str, snapshot: SnapshotAssertion) -> None:
    assert outline(drawn(name, SUBJECTS[subject])) == snapshot


def test_structure_of_a_timeline(snapshot: SnapshotAssertion) -> None:
    assert outline(figures.timeline(connection(BUNDLE))) == snapshot
