"""TW403 send-buffer-limited: by the kernel's counter; silent without it, and for a small share."""

from __future__ import annotations

from pathlib import Path

from stories.story import blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "captures" / "lab" / "receive-buffer-64k.pcap.gz"
TRUTH = ROOT / "tests" / "lab" / "truth"
SS = TRUTH / "rmem_64k_196ms" / "ss_snd.txt"


def test_fires_on_the_kernels_counter(tmp_path: Path) -> None:
    """The run's tcp_wmem ends at 65,536 bytes; its last sample: busy 18,910 ms, sndbuf_limited 1,400 ms."""
    settings = tmp_path / "snd-sysctl.txt"
    settings.write_text("net.ipv4.tcp_wmem = 4096 65535 65536\nnet.ipv4.tcp_sack = 1\n", encoding="ascii")
    [finding] = judged(tcpwin.analyze(CAPTURE, snapshots=[("snd", SS), ("snd", settings)]), "TW403")
    assert blame(finding) == ("b_to_a", "server", "server_host", "certain")
    assert sum(finding.items_ns.values()) == 1_400_000_000
    # A larger buffer alone reaches the receive window, which allows little more: 32 kB in 196 ms.
    assert 0 < finding.cost_ns < 100_000_000
    assert finding.evidence.values == {
        "sndbuf_limited_ns": 1_400_000_000,
        "busy_ns": 18_910_000_000,
        "sndbuf_bytes": 65_536,
        "rwnd_limited_ns": 15_930_000_000,
        "flight_max_bytes": 31_904,
    }
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_wmem="4096 65535 4194304"',)


def test_names_no_setting_that_the_host_has_already(tmp_path: Path) -> None:
    """The kernel stores the buffer in a signed int, and this is its maximum: the application chose its buffer."""
    settings = tmp_path / "snd-sysctl.txt"
    settings.write_text("net.ipv4.tcp_wmem = 4096 65535 2147483647\n", encoding="ascii")
    [finding] = judged(tcpwin.analyze(CAPTURE, snapshots=[("snd", SS), ("snd", settings)]), "TW403")
    assert finding.remedy.settings == ()


def test_numbers_beyond_all_sense_do_no_harm(tmp_path: Path) -> None:
    damaged = tmp_path / "ss.txt"
    huge = "9" * 400
    text = SS.read_text(encoding="ascii").replace("busy:", f"busy:{huge}").replace("notsent:", f"notsent:{huge}")
    damaged.write_text(text, encoding="ascii")
    analysis = tcpwin.analyze(CAPTURE, snapshots=[damaged])
    assert not judged(analysis, "TW403", {"TW403.share": 1.1})
    judged(analysis, "TW404")


def test_does_not_fire_otherwise() -> None:
    # Without the kernel's counter.
    assert not judged(tcpwin.analyze(CAPTURE), "TW403")
    # Smaller share: 1,400 of 18,910 ms are 7.4 %.
    analysis = tcpwin.analyze(CAPTURE, snapshots=[SS])
    assert judged(analysis, "TW403", {"TW403.share": 0.074})
    assert not judged(analysis, "TW403", {"TW403.share": 0.075})
    # Another limit applied.
    capture = ROOT / "captures" / "lab" / "no-window-scaling.pcap.gz"
    assert not judged(tcpwin.analyze(capture, snapshots=[TRUTH / "no_wscale_85ms" / "ss_snd.txt"]), "TW403")
