"""TW105 window-scale-too-small: a window at the maximum of its shift, and one below it."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, scaled


def filled(shift: int, raw: int, *, count: int = 10, rtt: float = 0.04) -> Story:
    """Round trip 40 ms; a fills the window of b each round trip."""
    story = Story(window={"a": 64_240, "b": 65_535}).handshake(options=scaled(shift), scaled=(502, raw))
    return rounds(story, count, full(raw << shift), rtt=rtt).close()


def test_fires_on_a_window_at_its_shifts_maximum(tmp_path: Path) -> None:
    # The first flight filled only part of the window: the SYN/ACK's 65,535 bytes of 131,070.
    finding = one(filled(1, 65_535, count=20).analyze(tmp_path), "TW105")
    assert blame(finding) == ("a_to_b", "server", "server_host", "certain")
    # 131,070 bytes are 89 segments of 1,460 and one of 1,130; with an ACK, 91 frames per round.
    assert finding.evidence.frames[-1] == 3 + 19 * 91 + 90
    assert finding.cost_ns == 800_000_000
    assert finding.evidence.values == {
        "shift": 1,
        "window_max_bytes": 131_070,
        "largest_window_bytes": 131_070,
        "rtt_ns": 40_000_000,
        # 20 x 131,070 x 8 bits from the first data to the ACK of the FIN, 0.84 s later.
        "goodput_bps": 26_214_000,
        "held_back_ns": 800_000_000,
    }
    # Half of the buffer is window by default: 4 x 131,070 bytes need 1,048,560; the default is larger.
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_rmem="4096 131072 6291456"',)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The shift could express more.
    assert not judged(filled(2, 32_767).analyze(tmp_path), "TW105")
    # The path was full. The ACKs take 51 ms on a path of 40 ms: a queue, and the window equals path plus queue.
    assert not judged(filled(1, 65_535, count=20, rtt=0.051).analyze(tmp_path), "TW105")
    assert judged(filled(1, 65_535, count=20, rtt=0.043).analyze(tmp_path), "TW105")
    # Scaling is off.
    options = ("<mss 1460,sackOK>", "<mss 1460,sackOK>")
    story = Story(window={"a": 64_240, "b": 65_535}).handshake(options=options, scaled=(64_240, 65_535))
    assert not judged(rounds(story, 10, full(65_535)).close().analyze(tmp_path), "TW105")
