"""tcprs, on its own captures, reports the same retransmissions as tcpwin, and the same fast ones.

Where tshark and tcpwin differ on these captures, tcprs agrees with tcpwin.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle.compare import Comparison, Segment, events_of
from oracle.second_opinion import read_log

LOGS, SUFFIX = "real-oracle-tcprs", ".tcpretransmissions.log"
CAPTURES, RETRANSMISSIONS, FAST = 13, 116, 16

Opinions = dict[tuple[str, int], tuple[str | None, Segment, set[str]]]


@pytest.fixture(scope="module")
def opinions(comparisons: list[Comparison], reference_captures: Path) -> Opinions:
    """Return, by capture and frame, tcprs's kind, tshark's segment and tcpwin's events."""
    found: Opinions = {}
    logs = sorted((reference_captures / LOGS).glob(f"*{SUFFIX}"))
    assert len(logs) == CAPTURES
    for log in logs:
        # composite.comp003 belongs to tests__Traces__tcp__composite__comp003.trace.
        name = log.name.removesuffix(SUFFIX).replace(".", "__") + ".trace"
        (comparison,) = (one for one in comparisons if one.name.endswith(name))
        theirs = dict(read_log(log, comparison.segments))
        for segment in comparison.segments:
            ours = events_of(comparison.rows[segment.frame])
            found[name, segment.frame] = (theirs.get(segment.frame), segment, ours)
    return found


def test_the_same_segments_are_sent_again(opinions: Opinions) -> None:
    theirs = {at for at, (kind, _, _) in opinions.items() if kind}
    ours = {at for at, (_, _, events) in opinions.items() if "resent" in events}
    assert ours == theirs
    assert len(theirs) == RETRANSMISSIONS


def test_the_same_retransmissions_are_fast(opinions: Opinions) -> None:
    theirs = {at for at, (kind, _, _) in opinions.items() if kind == "fast"}
    ours = {at for at, (_, _, events) in opinions.items() if "fast_retransmission" in events}
    assert ours == theirs
    assert len(theirs) == FAST


def test_tshark_alone_differs(opinions: Opinions) -> None:
    """Count retransmissions that tshark misses, and fast ones on which it differs."""
    kinds_of_late = [kind for kind, segment, _ in opinions.values() if "out_of_order" in segment.events]
    assert len(kinds_of_late) >= 40
    assert None not in kinds_of_late
    alone = {
        (name.rpartition("__")[2], frame): (kind, "fast_retransmission" in segment.events)
        for (name, frame), (kind, segment, _) in opinions.items()
        if (kind == "fast") != ("fast_retransmission" in segment.events)
    }
    assert alone == {
        ("comp003.trace", 48): ("recovery", True),
        ("comp006.trace", 58): ("recovery", True),
        ("comp018.trace", 139): ("recovery", True),
        ("fack004.trace", 200): ("fast", False),
        ("fack018.trace", 54): ("rto", True),
        ("fack043.trace", 261): ("fast", False),
        ("reordering-via-proximity.trace", 332): ("fast", False),
    }
