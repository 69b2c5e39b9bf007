"""TW510 ack-storm: two hosts out of step, and two in step."""

from __future__ import annotations

from pathlib import Path

from stories.boxes import answer, storm
from stories.story import judged


def test_an_ack_storm(tmp_path: Path) -> None:
    verdict, analysis = answer(storm(5000), tmp_path)
    connection = analysis.connections[0]
    assert (connection.a.port, connection.b.port) == (623, 2049), "NFS clients use reserved ports"
    assert (verdict.limit, verdict.owner) == ("middlebox", "network")
    assert "out of step" in verdict.reason
    assert not judged(storm(0).analyze(tmp_path), "TW510")
