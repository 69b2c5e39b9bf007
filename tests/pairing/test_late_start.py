"""The second capture begins in mid-transfer, while duplicate ACKs pass: alike, and not the same packet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairing.packets import read, write

import tcpwin

WILD = Path(__file__).parents[2] / "captures" / "wild"


DELAY_NS = 15_000_000
"""Of the relay, each way (captures/wild/lossy-path.toml). Both ends are namespaces of one host, with one clock."""
LATE_NS = DELAY_NS // 10
"""A relay that sleeps is woken late, and never early: a packet of another time is off by a round trip or more."""


# The receiver's capture has duplicate ACKs of one number from its packet 127 on, and of others up to 700.
@pytest.mark.parametrize("first", [*range(120, 700, 20), *range(315, 327)])
def test_duplicate_acks_are_not_taken_for_each_other(first: int, tmp_path: Path) -> None:
    """Nothing between the two points changes a field, both hosts have one clock, and no packet beats the path."""
    later = write(tmp_path / "later.pcap", read(WILD / "lossy-path-receiver.pcap.gz")[first:])

    pairing = tcpwin.pair(WILD / "lossy-path.pcapng.gz", later)

    (connection,) = pairing.connections
    assert [direction.leaves_at for direction in connection.directions] == ["a", "b"]
    for direction in connection.directions:
        assert direction.changes == ()
        assert direction.delay is not None
        assert DELAY_NS <= direction.delay.least_ns <= direction.delay.most_ns <= DELAY_NS + LATE_NS
    assert pairing.clock is not None
    assert len(pairing.clock.pieces) == 1
    # Half of what the quickest packets of both ways may differ by.
    assert abs(pairing.clock.offset_ns) <= LATE_NS / 2
    assert pairing.clock.drift_ppm == 0
