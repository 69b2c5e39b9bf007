"""TW404 send-buffer-bloated: the lab's pair with and without tcp_notsent_lowat, and near misses."""

from __future__ import annotations

from pathlib import Path

from reference import LAB_RUNS
from stories.story import blame, judged

import tcpwin
from tcpwin.limits import Severity

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
SS = ROOT / "tests" / "lab" / "truth" / "slow_reader" / "ss_snd.txt"


def test_fires_on_seconds_of_unsent_data() -> None:
    analysis = tcpwin.analyze(CAPTURE, snapshots=[SS])
    [finding] = judged(analysis, "TW404")
    assert blame(finding) == ("b_to_a", "server", "server_host", "certain")
    assert (finding.cost_ns, finding.severity) == (0, Severity.INFO)
    samples = [each for each in analysis.connections[0].socket_samples["b"] if each.state == "ESTAB" and each.busy_ns]
    unsent = sorted(each.notsent_bytes or 0 for each in samples)
    values = finding.evidence.values
    assert values["notsent_median_bytes"] == unsent[len(unsent) // 2]
    assert values["samples"] == len(samples)
    # The reader takes 40,000 bytes every 200 ms: 1.6 Mbit/s plus what its buffer holds.
    assert values["goodput_bps"] == 1_756_172
    assert values["delay_ns"] == round(unsent[len(unsent) // 2] * 8e9 / analysis.connections[0].b_to_a.goodput_bps)  # type: ignore[operator]


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Without samples.
    assert not judged(tcpwin.analyze(CAPTURE), "TW404")
    # The buffer is already bounded.
    settings = tmp_path / "snd-sysctl.txt"
    settings.write_text("net.ipv4.tcp_notsent_lowat = 131072\nnet.ipv4.tcp_sack = 1\n", encoding="ascii")
    assert not judged(tcpwin.analyze(CAPTURE, snapshots=[("snd", SS), ("snd", settings)]), "TW404")


def test_delay_can_be_set() -> None:
    assert not judged(tcpwin.analyze(CAPTURE, snapshots=[SS]), "TW404", {"TW404.delay_ns": 60e9})


def test_the_lab_pair() -> None:
    def found(name: str) -> int:
        folder = LAB_RUNS / name
        return len(judged(tcpwin.analyze(folder / "snd.pcap.gz", snapshots=[folder / "ss_snd.txt"]), "TW404"))

    assert found("notsent_lowat_off_466ms_10mbit") == 1
    assert found("notsent_lowat_128k_466ms_10mbit") == 0
