"""Event columns hold the same values as the events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcpwin
from tcpwin import _engine

CAPTURES = Path(__file__).parents[2] / "captures"
LATE = ("out_of_order", "capture_reordered")


@pytest.mark.parametrize(
    "file", ["lab/loss-1-percent.pcap.gz", "lab/zero-window-stall.pcap.gz", "wild/lossy-path-receiver.pcap.gz"]
)
def test_columns_are_of_the_same_events(file: str) -> None:
    view = tcpwin.analyze(CAPTURES / file).connections[0].view()
    events, columns = view.events, view.event_columns
    assert len(columns) == len(events) > 0
    assert columns.time_ns.tolist() == [each.time_ns for each in events]
    assert columns.seq.tolist() == [each.seq for each in events]
    assert columns.rto_ns.tolist() == [-1 if each.rto_ns is None else each.rto_ns for each in events]
    for side in ("a", "b"):
        assert columns.sent_by(side).tolist() == [each.direction == side for each in events]
    for name in _engine.EVENT_NAMES:
        assert columns.named(name).tolist() == [name in each.names for each in events]
    assert set(columns.causes) == {each.cause for each in events} - {None}
    for cause in columns.causes:
        assert columns.caused_by(cause).tolist() == [each.cause == cause for each in events]
    assert columns.resent().tolist() == [each.cause is not None and each.cause not in LATE for each in events]
    chosen = np.arange(0, len(events), 3)
    assert columns.at(chosen.tolist()) == events[::3]
