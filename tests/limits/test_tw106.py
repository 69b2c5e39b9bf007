"""TW106 windows-autotuning-restricted: a matching shift of 2, a Linux host's, and netsh's level."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, scaled

NETSH = """
TCP Global Parameters
----------------------------------------------
Receive-Side Scaling State          : enabled
Receive Window Auto-Tuning Level    : {}
"""


def filled(options: tuple[str, str], raw: int = 16_384, *, shift: int = 2) -> Story:
    """Round trip 40 ms; a fills the window of b each round trip."""
    story = Story(window={"a": 64_240, "b": 65_535}).handshake(options=options, scaled=(502, raw))
    return rounds(story, 20, full(raw << shift)).close()


def test_fires_on_a_shift_of_2_without_timestamps(tmp_path: Path) -> None:
    finding = one(filled(scaled(2)).analyze(tmp_path), "TW106")
    assert blame(finding) == ("a_to_b", "server", "server_host", "possible")
    assert finding.cost_ns == 800_000_000
    # 65,536 bytes are 44 segments and one of 1,296. The SYN/ACK's 65,535 limited the first flight; the evidence lists
    # six of rounds 1 to 19.
    assert finding.evidence.frames == (1, *(3 + 45 + 46 * number for number in (1, 4, 8, 11, 15, 19)))
    assert finding.evidence.values == {
        "shift": 2,
        "level": "highlyrestricted",
        "window_max_bytes": 65_536,
        "rtt_ns": 40_000_000,
        "held_back_ns": 800_000_000,
    }
    assert finding.remedy.settings == ("netsh interface tcp set global autotuninglevel=normal",)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # With timestamps, as from Linux.
    options = ("<mss 1460,sackOK,ts 1000 0,ws 7>", "<mss 1460,sackOK,ts 500 1000,ws 2>")
    assert not judged(filled(options).analyze(tmp_path), "TW106")
    # Another shift.
    assert not judged(filled(scaled(3), 8_192, shift=3).analyze(tmp_path), "TW106")


@pytest.mark.parametrize(("level", "found"), [("highlyrestricted", ["certain"]), ("restricted", []), ("normal", [])])
def test_netsh_decides(tmp_path: Path, level: str, found: list[str]) -> None:
    analysis = filled(scaled(2)).analyze(tmp_path, snapshots={"netsh_b.txt": NETSH.format(level)})
    assert [finding.confidence for finding in judged(analysis, "TW106")] == found
