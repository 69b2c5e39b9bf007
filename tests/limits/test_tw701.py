"""TW701 receive-buffer-setting-too-small: a lab transfer at its setting's limit; larger settings, slow readers."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import ss, sysctl
from stories.parts import CAPTURES
from stories.story import blame, judged

import tcpwin

RECEIVER, SENDER = "10.9.2.2:60716", "10.9.1.1:5201"
TOKENS = "wscale:2,2 rtt:392/196 bytes_acked:1 bytes_received:382020 rcv_space:32768"
ADV = {"tcp_adv_win_scale": "1"}


def analyze(
    folder: Path, *, name: str = "receive-buffer-64k", most: int = 65_536, buffer: int | None = 65_536
) -> tcpwin.Analysis:
    """The lab's transfer with one sample of the receiver's socket."""
    skmem = "" if buffer is None else f"r0,rb{buffer},t0,tb65536,f0,w0,o0,bl0,d0"
    text = ss(RECEIVER, SENDER, TOKENS, times=(1_795_226_332.9,), skmem=skmem)
    if buffer is None:
        text = text.replace("skmem:() ", "")
    (folder / "ss_receiver.txt").write_text(text, encoding="utf8")
    (folder / "sysctl_receiver.txt").write_text(sysctl(tcp_rmem=f"4096 65535 {most}", **ADV), encoding="utf8")
    (folder / "uname_receiver.txt").write_text("6.1.192\n", encoding="utf8")
    snapshots = [folder / f"{kind}_receiver.txt" for kind in ("ss", "sysctl", "uname")]
    return tcpwin.analyze(CAPTURES / "lab" / f"{name}.pcap.gz", snapshots=snapshots)


def test_the_rate_is_that_of_the_window_that_is_allowed() -> None:
    """4 MiB at -2 allow 1,048,576 bytes: 28 Mbit/s over 300 ms, independent of the window while it grew."""
    bundle = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
    [finding] = judged(tcpwin.analyze(bundle, capture="sender.pcap.gz"), "TW701")
    assert "net.ipv4.tcp_rmem allows a window of at most 1.05 MB, which is 28 Mbit/s over 300 ms" in finding.text


def test_fires_at_the_setting(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path), "TW701")
    assert blame(finding) == ("b_to_a", "client", "client_host", "certain")
    assert finding.items_ns == {"window_full": 16_384_528_000}
    # 3 MB, which the path would have carried in a tenth of a second; but slow start's five round trips of 19.2 s
    # remain.
    assert 15_400_000_000 < finding.cost_ns < 15_800_000_000
    assert finding.lost_bps is None
    assert finding.evidence.values == {
        "tcp_rmem_max_bytes": 65_536,
        "allowed_window_bytes": 32_768,
        "receive_window_max_bytes": 32_120,
        "window_limited_ns": 16_384_528_000,
        "path_rtt_ns": 196_000_000,
        "goodput_bps": pytest.approx(1_262_336.18),
        "best_goodput_bps": pytest.approx(1_262_336.18),
        "largest_rcvbuf_bytes": 65_536,
    }
    # Twice 1,262,336.18 bit/s × 196 ms ÷ 8 = 61,854.5 bytes, of which tcp_adv_win_scale 1 needs twice the memory.
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_rmem="4096 65535 6291456"',)
    segments = tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz").segments()
    full = {
        frame
        for frame, flight in zip(segments["frame"].tolist(), segments["bytes_in_flight"].tolist(), strict=True)
        if flight is not None and flight > 30_000
    }
    assert len(finding.evidence.frames) == 6
    assert full.issuperset(finding.evidence.frames)


def test_fires_near_the_receiver(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, name="receive-buffer-64k-receiver"), "TW701")
    assert (finding.side, finding.owner, finding.confidence) == ("client", "client_host", "certain")


def test_is_less_sure_without_the_buffer(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, buffer=None), "TW701")
    assert finding.confidence == "likely"


@pytest.mark.parametrize(
    ("most", "buffer"),
    [
        (131_072, 65_536),  # for example SO_RCVBUF applied first
        (131_072, None),  # the window is half of what the setting allows
    ],
)
def test_does_not_fire_where_the_setting_allows_more(tmp_path: Path, most: int, buffer: int | None) -> None:
    assert not judged(analyze(tmp_path, most=most, buffer=buffer), "TW701")


def test_does_not_fire_otherwise() -> None:
    # A slow reader.
    assert not judged(tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), "TW701")
    # Without settings.
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"), "TW701")


def test_threshold_can_be_set(tmp_path: Path) -> None:
    analysis = analyze(tmp_path)
    assert not judged(analysis, "TW701", {"TW701.limited_ns": 17e9})
    assert not judged(analysis, "TW701", {"TW701.reached": 0.99})


def test_one_setting_is_named_with_one_value(tmp_path: Path) -> None:
    """All rules on a small window that fire here name the same line."""
    analyses = [
        analyze(tmp_path),
        tcpwin.analyze(CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip", capture="sender.pcap.gz"),
    ]
    beside = set()
    for analysis in analyses:
        found = [each for each in analysis.findings if each.remedy and "tcp_rmem" in "".join(each.remedy.settings)]
        lines = {line for each in found if each.remedy for line in each.remedy.settings if "tcp_rmem" in line}
        assert "TW701" in {each.code for each in found}
        assert len(lines) == 1
        beside |= {each.code for each in found} - {"TW701"}
    assert beside
