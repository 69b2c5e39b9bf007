"""TW412 slow-answers: a server that works, wherever it is captured; a long path; and a client that thinks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stories.conversation import Conversation, Exchange
from stories.story import blame, judged

from tcpwin.limits import Severity

if TYPE_CHECKING:
    from stories.shown import Shown

HAND_CHECKS = [
    {
        "capture": "the-tcpdump-group+tcpdump/tests__pptp.pcap",
        "connection": 0,
        "frames": [10, 13, 5, 8],
        "saw": "PPTP requests (5 and 10) whose replies (8 and 13) take 68 and 169 ms on a path of less than one.",
        "verdict": "right",
    }
]


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_fires_on_a_server_that_works(tmp_path: Path, place: float) -> None:
    exchanges = [Exchange(0.001, 0.05 if number != 3 else 0.4) for number in range(8)]
    [finding] = judged(Conversation(exchanges, 0.02, place).story().analyze(tmp_path), "TW412")
    assert blame(finding) == (None, "server", "server_application", "likely")
    assert finding.severity == Severity.INFO
    assert finding.evidence.values["responder_turn_ns"] == pytest.approx(750e6, rel=0.01)
    assert finding.evidence.values["work_max_ns"] == pytest.approx(400e6, rel=0.01)
    assert finding.evidence.frames_of == "slowest 3 of 8"


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # If the path takes the time, wherever it is captured.
    for place in (0.0, 1.0):
        far = Conversation([Exchange(0.001, 0.02)] * 20, 0.3, place).story().analyze(tmp_path)
        assert not judged(far, "TW412")
    # If only the client waits, between answers that come soon.
    thinking = Conversation([Exchange(1.0, 0.001)] * 20, 0.02, 1.0).story().analyze(tmp_path)
    assert not judged(thinking, "TW412")


def check_shown(shown: Shown) -> Iterator[str]:
    """Each answer follows its request."""
    frames = shown.finding.evidence.frames
    for asked, answered in zip(frames[::2], frames[1::2], strict=False):
        if asked >= answered:
            yield f"frame {answered} does not follow {asked}"
