"""TW702 send-buffer-setting-too-small: a full send buffer at its setting's limit, and others."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import ss, sysctl
from stories.parts import CAPTURES
from stories.story import blame, judged

import tcpwin

RECEIVER, SENDER = "10.9.2.2:60716", "10.9.1.1:5201"


def analyze(folder: Path, *, limited_ms: int = 1400, most: int = 65_536, buffer: int = 65_536) -> tcpwin.Analysis:
    """The lab's transfer with one sample of the sender's socket near its end."""
    tokens = (
        "wscale:2,2 rtt:200.429/8.836 bytes_sent:2800000 bytes_acked:2770000 busy:18000ms rwnd_limited:12000ms(66.7%) "
        f"sndbuf_limited:{limited_ms}ms(0.0%)"
    )
    skmem = f"r0,rb65535,t0,tb{buffer},f0,w0,o0,bl0,d0"
    text = ss(SENDER, RECEIVER, tokens, times=(1_795_226_347.9,), skmem=skmem)
    (folder / "ss_sender.txt").write_text(text, encoding="utf8")
    (folder / "sysctl_sender.txt").write_text(sysctl(tcp_wmem=f"4096 65535 {most}"), encoding="utf8")
    snapshots = [folder / "ss_sender.txt", folder / "sysctl_sender.txt"]
    return tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz", snapshots=snapshots)


def test_fires_at_the_setting(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path), "TW702")
    assert blame(finding) == ("b_to_a", "server", "server_host", "certain")
    assert sum(finding.items_ns.values()) == 1_400_000_000
    # A larger buffer alone reaches the receive window, which allows little more: 32 kB in 196 ms.
    assert (0 < finding.cost_ns < 100_000_000, finding.lost_bps) == (True, None)
    assert finding.evidence.values == {
        "tcp_wmem_max_bytes": 65_536,
        "largest_sndbuf_bytes": 65_536,
        "sndbuf_limited_ns": 1_400_000_000,
        "busy_ns": 18_000_000_000,
        "path_rtt_ns": 196_000_000,
        "goodput_bps": pytest.approx(1_262_336.18),
        "best_goodput_bps": pytest.approx(1_262_336.18),
    }
    # The kernel's default: more than twice the buffer. TW403 names the same setting and value.
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_wmem="4096 65535 4194304"',)
    [other] = judged(analyze(tmp_path), "TW403")
    assert other.remedy.settings == finding.remedy.settings


# 18 s × 0.05 = 900 ms.
@pytest.mark.parametrize(("limited_ms", "found"), [(899, 0), (900, 1)])
def test_fires_from_a_twentieth_of_the_time(tmp_path: Path, limited_ms: int, found: int) -> None:
    analysis = analyze(tmp_path, limited_ms=limited_ms)
    assert len(judged(analysis, "TW702")) == found
    assert judged(analysis, "TW702", {"TW702.share": 0.01})


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # A buffer chosen by a program.
    assert not judged(analyze(tmp_path, most=4_194_304), "TW702")
    # A sufficient setting.
    assert not judged(analyze(tmp_path, most=4_194_304, buffer=4_194_304), "TW702")
    # Without the kernel's counter.
    assert not judged(tcpwin.analyze(CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"), "TW702")
