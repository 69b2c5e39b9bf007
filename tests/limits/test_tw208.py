"""TW208 reader-too-slow: a receive buffer that stays full, one that does not, and one full of out-of-order data."""

from __future__ import annotations

from pathlib import Path

from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, sample, scaled

import tcpwin

BUNDLES = Path(__file__).parents[2] / "captures" / "bundles"


def held_back() -> Story:
    """Round trip 40 ms; a fills b's window of 8,192 bytes 20 times."""
    story = Story(window={"a": 64_240, "b": 16_384}).handshake(options=scaled(7), scaled=(502, 64))
    return rounds(story, 20, full(8_192)).close()


def ss(*fills: tuple[int, int]) -> str:
    """Samples of b's socket with (Recv-Q, r) and a buffer of 100,000 bytes."""
    return "".join(
        sample(
            "b",
            0.05 * (number + 1),
            "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10",
            recv_q=unread,
            skmem=f"r{used},rb100000,t0,tb87040,f0,w0,o0,bl0,d0",
        )
        for number, (unread, used) in enumerate(fills)
    )


def test_fires_on_a_buffer_that_stays_full(tmp_path: Path) -> None:
    text = ss((50_000, 80_000), (60_000, 95_000), (0, 0), (0, 0), (0, 0))
    finding = one(held_back().analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW208")
    assert blame(finding) == ("a_to_b", "server", "server_application", "certain")
    # The first flight did not fill the SYN/ACK's window.
    assert finding.cost_ns == 19 * 40_000_000
    assert finding.evidence.values == {
        "full_samples": 2,
        "samples": 5,
        "recv_q_bytes": 60_000,
        "rmem_alloc_bytes": 95_000,
        "rcvbuf_bytes": 100_000,
        "held_back_ns": 760_000_000,
    }
    assert not judged(held_back().analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW202")


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Below the threshold.
    text = ss((50_000, 79_999), (50_000, 79_000))
    assert not judged(held_back().analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW208")
    rarely = ss((50_000, 90_000), *[(0, 0)] * 5)
    analysis = held_back().analyze(tmp_path, snapshots={"ss_b.txt": rarely})
    assert not judged(analysis, "TW208")
    assert judged(analysis, "TW208", {"TW208.full": 0.1})
    # Out-of-order data: the memory is in use, but little of it is in-order payload.
    text = ss((20_000, 95_000), (20_000, 95_000))
    assert not judged(held_back().analyze(tmp_path, snapshots={"ss_b.txt": text}), "TW208")
    # Without the receiver's samples.
    assert not judged(held_back().analyze(tmp_path), "TW208")


def test_the_labs_slow_reader() -> None:
    finding = one(tcpwin.analyze(BUNDLES / "slow-reader.zip"), "TW208")
    assert blame(finding) == ("b_to_a", "client", "client_application", "certain")
    # The sender's kernel finally counted rwnd_limited 26.71 s.
    assert abs(finding.cost_ns - 26_710_000_000) < 200_000_000
