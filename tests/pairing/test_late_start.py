"""The second capture begins in mid-transfer, while duplicate ACKs pass: alike, and not the same packet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairing.packets import read, write

import tcpwin

WILD = Path(__file__).parents[2] / "captures" / "wild"


# The receiver's capture has duplicate ACKs of one number from its packet 127 on, and of others up to 700.
@pytest.mark.parametrize("first", range(120, 700, 20))
def test_duplicate_acks_are_not_taken_for_each_other(first: int, tmp_path: Path) -> None:
    """Nothing between the two points changes a field."""
    later = write(tmp_path / "later.pcap", read(WILD / "lossy-path-receiver.pcap.gz")[first:])

    (connection,) = tcpwin.pair(WILD / "lossy-path.pcapng.gz", later).connections

    for direction in connection.directions:
        assert direction.changes == ()
