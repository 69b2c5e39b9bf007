"""An independent reader based on dpkt, written from the rules in plain Python, gives the engine's table.

Compares every column of every row of every bundled capture; of damaged ones the part before the damage.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import dpkt
import pytest
from analysis.bundled import BROKEN, READABLE, TRUTHS, UNREADABLE, WHOLE, analyze, name_of
from cases import all_cases
from spread import some_by_day
from twin.frames import read_frames
from twin.table import EVENTS, Row, read_table

from tcpwin import _engine

Tool = Callable[[str], str]
MARKED = Path(__file__).parents[1] / "worlds" / "captures" / "seed-1-163-receiver.pcap.gz"
"""A transfer over a path that marks, captured behind the marking router."""


@pytest.mark.parametrize("path", [*BROKEN, MARKED, *some_by_day(WHOLE, of=6)], ids=name_of)
def test_every_row_is_the_same(path: Path, tool: Tool) -> None:
    rows = analyze(path).segments().rows()
    for number, (row, twin) in enumerate(zip_longest(rows, read_table(path, tool)), start=1):
        if row != twin:
            pytest.fail(describe(number, row, twin), pytrace=False)


def describe(number: int, row: Row | None, twin: Row | None) -> str:
    """Describe how the two rows differ, and where."""
    if row is None or twin is None:
        return f"{'the engine' if row is None else 'the twin'} has only {number - 1} rows"
    place = f"row {number}, frame {row['frame']}, connection {row['connection']}, direction {row['direction']}"
    differing = [name for name in row.keys() | twin.keys() if row.get(name) != twin.get(name)]
    lines = [f"  {name}: engine {row.get(name)!r}, twin {twin.get(name)!r}" for name in sorted(differing)]
    return "\n".join([f"{place}:", *lines, f"  engine's row: {row}"])


@all_cases("path", READABLE, ids=name_of)
def test_every_packet_before_the_damage_is_a_frame(path: Path, tool: Tool) -> None:
    """Numbers and counts as in the capture's TOML; a packet of an undescribed interface has only a number."""
    frames = list(read_frames(path, tool))
    assert len(frames) == TRUTHS[path]["packets"]
    numbers = [frame.number for frame in frames]
    assert numbers == sorted(set(numbers))


@all_cases("path", UNREADABLE, ids=name_of)
def test_the_twin_refuses_the_same_files_as_the_engine(path: Path, tool: Tool) -> None:
    with pytest.raises((ValueError, dpkt.dpkt.NeedData)):
        list(read_frames(path, tool))


def test_events_have_the_same_names_in_the_same_order() -> None:
    assert list(EVENTS) == list(_engine.EVENT_NAMES)


def test_the_captures_show_the_compared_events() -> None:
    """These events and values occur in the compared rows: comparing empty columns would prove nothing."""
    rows = [row for path in [*READABLE, MARKED] for row in analyze(path).segments().rows()]
    seen = {name for row in rows for name in (row["events"] or "").split("|")}
    absent = set(EVENTS) - seen
    assert len(rows) > 80_000
    assert absent <= {"window_shrink", "syn_retransmission", "rto_retransmission", "go_back_n", "capture_reordered"}
    for column in ("window", "shift", "bytes_in_flight", "pipe", "rtt_ns"):
        assert sum(row[column] is not None for row in rows) > 20_000
