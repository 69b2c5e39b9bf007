"""TW207 autotuning-stuck: a window that never grows, the reason in the receiver's snapshots, and one that grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, sample, scaled

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures" / "lab"
RMEM = "net.ipv4.tcp_rmem = 4096 {} {}\nnet.ipv4.tcp_moderate_rcvbuf = {}\nnet.ipv4.tcp_adv_win_scale = 1\n"
RELEASE = "kernel.osrelease = 6.1.0\n"


def stuck(first: int = 32_768, then: int = 256, *, count: int = 20) -> Story:
    """b's window stays at 32,768 bytes; a fills it each round trip of 40 ms."""
    story = Story(window={"a": 64_240, "b": first}).handshake(options=scaled(7), scaled=(502, then))
    return rounds(story, count, full(then << 7)).close()


def ss(*buffers: int) -> str:
    """Samples of b's socket 100 ms apart, with these receive buffers, while data arrives."""
    return "".join(
        sample(
            "b",
            0.1 * (number + 1),
            f"wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10 bytes_received:{60_000 * (number + 1)}",
            skmem=f"r0,rb{size},t0,tb87040,f0,w0,o0,bl0,d0",
        )
        for number, size in enumerate(buffers)
    )


def test_fires_on_a_window_that_never_grows(tmp_path: Path) -> None:
    finding = one(stuck().analyze(tmp_path), "TW207")
    assert blame(finding) == ("a_to_b", "server", "server_host", "likely")
    assert finding.cost_ns == 800_000_000
    # 22 segments and one of 648 bytes; with an ACK, 24 frames per round; six of all 20.
    assert finding.evidence.frames == tuple(3 + 23 + 24 * number for number in (0, 3, 7, 11, 15, 19))
    assert finding.evidence.values == {
        "window_first_bytes": 32_768,
        "window_max_bytes": 32_768,
        "rtt_ns": 40_000_000,
        # 32,768 x 8 bits in 40 ms.
        "ceiling_bps": 6_553_600,
        "goodput_bps": 6_553_600,
        "held_back_ns": 800_000_000,
    }
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_rmem="4096 131072 6291456"',)
    assert not judged(stuck().analyze(tmp_path), "TW202")


def test_the_rate_is_that_of_the_window_that_is_named() -> None:
    """The window grew in slow start to a mean of 789 kB; 1,047,808 x 8 bits in 300 ms are 27.9 Mbit/s."""
    bundle = CAPTURES.parent / "reference" / "bulk-300ms-4m2-stock.zip"
    finding = one(tcpwin.analyze(bundle, capture="sender.pcap.gz"), "TW207")
    assert "stopped at 1,047,808 bytes" in finding.text
    assert "27.9 Mbit/s over 300 ms" in finding.text
    assert finding.evidence.values["ceiling_bps"] == pytest.approx(1_047_808 * 8 / 0.3, rel=1e-4)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # A window that grew.
    assert not judged(stuck(first=28_000).analyze(tmp_path), "TW207")
    assert judged(stuck(first=30_000).analyze(tmp_path), "TW207")
    # Fewer than ten round trips: 9 and 10 from the first to the last data.
    assert not judged(stuck(count=10).analyze(tmp_path), "TW207")
    assert judged(stuck(count=11).analyze(tmp_path), "TW207")


def test_the_setting_that_bounds_it_is_named(tmp_path: Path) -> None:
    # Half of 65,536 bytes is 32,768. The setting allows four times the window, and at least the default.
    snapshots = {"ss_b.txt": ss(65_536), "sysctl_b.txt": RMEM.format(65_536, 65_536, 1) + RELEASE}
    finding = one(stuck().analyze(tmp_path, snapshots=snapshots), "TW207")
    assert (finding.owner, finding.confidence) == ("server_host", "certain")
    assert finding.evidence.values["buffer_bytes"] == 65_536
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_rmem="4096 65536 6291456"',)


def test_a_buffer_that_a_program_fixed(tmp_path: Path) -> None:
    snapshots = {"ss_b.txt": ss(70_000, 70_000, 70_000), "sysctl_b.txt": RMEM.format(131_072, 6_291_456, 1) + RELEASE}
    finding = one(stuck().analyze(tmp_path, snapshots=snapshots), "TW207")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_application", "likely")
    assert finding.evidence.values["buffer_bytes"] == 70_000
    assert finding.remedy.settings == ()


def test_without_settings_a_constant_buffer_is_weak_evidence(tmp_path: Path) -> None:
    finding = one(stuck().analyze(tmp_path, snapshots={"ss_b.txt": ss(70_000, 70_000, 70_000)}), "TW207")
    assert (finding.owner, finding.confidence) == ("server_host", "likely")


def test_a_buffer_that_grew_was_not_fixed(tmp_path: Path) -> None:
    snapshots = {"ss_b.txt": ss(70_000, 70_000, 80_000), "sysctl_b.txt": RMEM.format(131_072, 6_291_456, 1) + RELEASE}
    finding = one(stuck().analyze(tmp_path, snapshots=snapshots), "TW207")
    assert (finding.owner, finding.confidence) == ("server_host", "likely")


def test_autotuning_that_is_off(tmp_path: Path) -> None:
    snapshots = {
        "ss_b.txt": ss(131_072, 131_072, 131_072),
        "sysctl_b.txt": RMEM.format(131_072, 6_291_456, 0) + RELEASE,
    }
    finding = one(stuck().analyze(tmp_path, snapshots=snapshots), "TW207")
    assert (finding.owner, finding.confidence) == ("server_host", "certain")
    # The memory for autotuning is already set.
    assert finding.remedy.settings == ("sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",)


@pytest.mark.parametrize("name", ["receive-buffer-64k", "receive-buffer-64k-receiver"])
def test_the_labs_run_with_64_kilobytes(name: str) -> None:
    finding = one(tcpwin.analyze(CAPTURES / f"{name}.pcap.gz"), "TW207")
    assert blame(finding) == ("b_to_a", "client", "client_host", "likely")
    assert finding.evidence.values["window_max_bytes"] == 32_120
    # The sender's kernel counted rwnd_limited 15.93 s.
    assert abs(finding.cost_ns - 15_930_000_000) < 500_000_000
    assert len(finding.evidence.frames) == 6


@pytest.mark.parametrize("name", ["window-scaling", "slow-reader", "zero-window-stall", "no-window-scaling"])
def test_does_not_fire_on_other_runs_of_the_lab(name: str) -> None:
    assert not judged(tcpwin.analyze(CAPTURES / f"{name}.pcap.gz"), "TW207")
