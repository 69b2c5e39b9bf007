"""TW609 snapshot-disagrees: windows that the packets do not show, and a lab run whose kernels agree with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import A, B, ss
from stories.parts import CAPTURES, SYNS
from stories.story import Story, blame, judged, says

import tcpwin

START = 1_600_000_000


def transfer() -> Story:
    """Every 100 ms a segment of a, acknowledged after 40 ms with a window of 509 × 128 = 65,152 bytes."""
    story = Story().handshake(options=SYNS)
    for _ in range(30):
        story.data("a")
        story.wait(0.04).ack("b")
        story.wait(0.06)
    return story


def samples(wrong: int) -> str:
    """27 samples of a's socket between the segments, the first of which have a different window."""
    texts = []
    for number in range(2, 29):
        sent = 1460 * (number + 1)
        window = 32_000 if number - 2 < wrong else 65_152
        tokens = f"bytes_sent:{sent} bytes_acked:{sent + 1} snd_wnd:{window}"
        texts.append(ss(A, B, tokens, times=(START + 0.04 + 0.1 * number + 0.09,)))
    return "".join(texts)


def test_fires_on_windows_that_nobody_advertised(tmp_path: Path) -> None:
    [finding] = judged(transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(5)}), "TW609")
    assert blame(finding) == (None, "client", "nobody", "certain")
    assert finding.connection == 0
    assert finding.evidence.values == {
        "compared": 27,
        "disagreeing": 5,
        "disagreeing_snd_wnd_bytes": 5,
        "first_name": "snd_wnd_bytes",
        "first_kernel": 32_000,
        "first_packets_min": 65_152,
        "first_packets_max": 65_152,
        "weakens": "TW2, TW4",
    }
    # The samples at 0.33 s and 0.73 s.
    assert finding.evidence.start_ns == START * 1_000_000_000 + 330_000_000
    assert finding.evidence.end_ns == START * 1_000_000_000 + 730_000_000
    assert says(finding, "5 of 27 samples", "the client", "snd_wnd_bytes in 5")


@pytest.mark.parametrize(("wrong", "found"), [(0, 0), (2, 0), (3, 1)])
def test_fires_from_three_on(tmp_path: Path, wrong: int, found: int) -> None:
    analysis = transfer().analyze(tmp_path, snapshots={"ss_client.txt": samples(wrong)})
    assert len(judged(analysis, "TW609")) == found
    if wrong == 2:
        assert judged(analysis, "TW609", {"TW609.samples": 2})


def test_does_not_fire_on_the_lab() -> None:
    assert not judged(tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), "TW609")
