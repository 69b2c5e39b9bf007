"""TW402 application-limited: by long and short pauses, by the kernel's flag; not if a window caused the pause."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.story import Story, blame, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("<mss 1460,ws 7>", "<mss 1460,ws 7>")


def paused(pause: float, *, is_closed: bool = False) -> Story:
    """Eleven bursts of 10,220 bytes, one round trip of 40 ms each, with a pause after each."""
    story = Story().handshake(options=OPTIONS).wait(0.001)
    for _ in range(11):
        story.burst("a", 7, spacing=0.0).wait(0.04)
        story.ack("b", window=0 if is_closed else 509)
        story.wait(pause)
        if is_closed:
            story.ack("b", window=509)
    return story


def test_fires_on_pauses(tmp_path: Path) -> None:
    [finding] = judged(paused(0.3).analyze(tmp_path), "TW402")
    assert blame(finding) == ("a_to_b", "client", "client_application", "certain")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    # Frames 1 to 3 are the handshake; a burst has seven segments and an ACK. All pauses are equally long.
    assert finding.evidence.frames == (11, 12, 19, 20, 27, 28)
    assert finding.evidence.values == {
        "idle_ns": 10 * 300_000_000,
        "window_closed_or_full_ns": 0,
        "duration_ns": 41_000_000 + 11 * 40_000_000 + 10 * 300_000_000,
        "idle_gaps": 10,
    }


def test_fires_on_pauses_shorter_than_the_timeout(tmp_path: Path) -> None:
    """The timeout is 240 ms: 0.1 s is no idle gap, but a ran out of data in each round trip."""
    [finding] = judged(paused(0.1).analyze(tmp_path), "TW402")
    assert blame(finding) == ("a_to_b", "client", "client_application", "likely")
    # Frames 1 to 3 are the handshake; a burst has seven segments and an ACK.
    assert finding.evidence.frames == (10, 12, 18, 20, 26, 28)
    # Of the 1,481 ms, 40 are the handshake's and 40 the first flight's, which may be slow start; also subtract 41
    # before the first data and 40 after the last.
    assert finding.evidence.values == {
        "idle_ns": 0,
        "window_closed_or_full_ns": 0,
        "duration_ns": 1_481_000_000,
        "idle_gaps": 0,
        "ran_out_ns": 1_401_000_000 - 41_000_000 - 40_000_000,
    }


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Pauses below a quarter of the time: 13 ms of 53 ms are less than a quarter; 14 ms of 54 ms are more.
    anyhow = {"TW402.duration_ns": 0.0}
    assert not judged(paused(0.013).analyze(tmp_path), "TW402", anyhow)
    assert judged(paused(0.014).analyze(tmp_path), "TW402", anyhow)
    # The window was closed.
    analysis = paused(0.3, is_closed=True).analyze(tmp_path)
    assert analysis.connections[0].a_to_b.zero_window_ns >= 3_000_000_000
    assert not judged(analysis, "TW402")


def test_does_not_fire_in_the_direction_of_requests(tmp_path: Path) -> None:
    story = paused(0.3)
    story.wait(0.5)
    story.burst("b", 100, spacing=0.0)
    story.wait(0.04).ack("a")
    analysis = story.analyze(tmp_path)
    assert analysis.connections[0].a_to_b.idle_ns >= 3_000_000_000
    assert not judged(analysis, "TW402")


def test_share_can_be_set(tmp_path: Path) -> None:
    """3 s of 3.48 s are 86 %."""
    analysis = paused(0.3).analyze(tmp_path)
    assert judged(analysis, "TW402", {"TW402.share": 0.86})
    assert not judged(analysis, "TW402", {"TW402.share": 0.87})


def test_by_the_kernels_flag() -> None:
    """64 KB every 100 ms over 80 ms: no pause exceeds the timeout, but the kernel had nothing left to send."""
    folder = LAB_RUNS / "app_limited"
    [alone] = judged(tcpwin.analyze(folder / "snd.pcap.gz"), "TW402")
    assert alone.confidence == "likely"
    [finding] = judged(tcpwin.analyze(folder / "snd.pcap.gz", snapshots=[folder / "ss_snd.txt"]), "TW402")
    assert (finding.direction, finding.side, finding.confidence) == ("b_to_a", "server", "certain")
    assert finding.evidence.values["app_limited_samples"] == 73
    assert finding.evidence.values["samples"] == 75


@pytest.mark.parametrize("name", ["slow-reader", "zero-window-stall", "no-window-scaling", "loss-1-percent"])
def test_does_not_fire_where_tcp_sets_the_pace(name: str) -> None:
    assert not judged(tcpwin.analyze(ROOT / "captures" / "lab" / f"{name}.pcap.gz"), "TW402")


def test_the_kernel_refutes_short_pauses(tmp_path: Path) -> None:
    """The same samples without the flag."""
    folder = LAB_RUNS / "app_limited"
    denied = tmp_path / "ss_snd.txt"
    denied.write_text((folder / "ss_snd.txt").read_text(encoding="utf8").replace(" app_limited", ""), encoding="utf8")
    assert not judged(tcpwin.analyze(folder / "snd.pcap.gz", snapshots=[denied]), "TW402")
