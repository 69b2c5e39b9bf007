"""TW411 round-trips: many small exchanges over a long path; few of them; and a slow server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stories.conversation import Conversation, Exchange
from stories.story import blame, judged

if TYPE_CHECKING:
    from stories.shown import Shown

HAND_CHECKS = [
    {
        "capture": "zeek+zeek/testing__btest__Traces__pop3__pop3.pcap",
        "connection": 6,
        "frames": [78, 80, 81, 82, 83, 84],
        "saw": "Each POP3 command is answered a round trip of 46 ms later; the server's own part is 1 to 5 ms.",
        "verdict": "right",
    }
]


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_fires_on_many_round_trips(tmp_path: Path, place: float) -> None:
    analysis = Conversation([Exchange(0.0003, 0.0012)] * 50, 0.02, place).story().analyze(tmp_path)
    [finding] = judged(analysis, "TW411")
    assert blame(finding) == (None, "client", "client_application", "likely")
    assert finding.cost_ns == pytest.approx(49 * 20e6, rel=0.02)
    # Frames 1 to 3 are the handshake; then request and answer by turns.
    assert finding.evidence.frames == (4, 5, 6, 7, 8, 9)
    assert (analysis.connections[0].verdict.limit, analysis.connections[0].verdict.is_problem) == ("round_trips", True)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # On nine exchanges.
    nine = Conversation([Exchange(0.0003, 0.0012)] * 9, 0.05).story().analyze(tmp_path)
    assert not judged(nine, "TW411")
    # If the server takes most of the time.
    slow = Conversation([Exchange(0.0003, 0.3)] * 50, 0.02).story().analyze(tmp_path)
    assert not judged(slow, "TW411")


def check_shown(shown: Shown) -> Iterator[str]:
    """Each answer acknowledges its request."""
    frames = shown.finding.evidence.frames
    for asked, answered in zip(frames[::2], frames[1::2], strict=True):
        if asked >= answered:
            yield f"frame {answered} does not follow {asked}"
