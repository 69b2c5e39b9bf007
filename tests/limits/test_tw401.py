"""TW401 idle-restart: the lab's run with the sysctl on, off, with BBR according to ss; and a smaller cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import LAB_RUNS
from stories.story import Story, blame, judged

import tcpwin

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "captures" / "lab" / "idle-restart.pcap.gz"
SS = (ROOT / "tests" / "lab" / "truth" / "idle_restart_ssai1" / "ss_snd.txt").read_text(encoding="ascii")
SETTING = "net.ipv4.tcp_slow_start_after_idle"


def test_fires_on_nineteen_pauses() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURE), "TW401")
    assert blame(finding) == ("b_to_a", "server", "server_host", "certain")
    # 19 of 20 messages, one round trip of 180 ms each; the application measured 19 x 178.8 ms.
    assert finding.cost_ns == 19 * 180_000_000
    assert len(finding.evidence.frames) == 6
    assert finding.evidence.frames[0] == 59
    assert finding.evidence.values == {
        "idle_restarts": 19,
        "round_trips": 19,
        "cost_ns": 3_420_000_000,
        "path_rtt_ns": 180_000_000,
        "rto_ns": 380_003_000,
        "idle_gaps": 19,
    }
    assert finding.remedy.settings[0] == f"sysctl -w {SETTING}=0"


def beside(folder: Path, ss: str, setting: int | None) -> tcpwin.Analysis:
    (folder / "snd-ss.txt").write_text(ss, encoding="ascii")
    files: list[tuple[str, Path]] = [("snd", folder / "snd-ss.txt")]
    if setting is not None:
        (folder / "snd-sysctl.txt").write_text(
            f"{SETTING} = {setting}\nnet.ipv4.tcp_sack = 1\nnet.ipv4.tcp_timestamps = 1\n", encoding="ascii"
        )
        files.append(("snd", folder / "snd-sysctl.txt"))
    return tcpwin.analyze(CAPTURE, snapshots=files)


def test_the_kernel_confirms_it(tmp_path: Path) -> None:
    [finding] = judged(beside(tmp_path, SS, 1), "TW401")
    assert finding.confidence == "certain"
    assert finding.evidence.values[SETTING] == 1
    assert finding.evidence.values["cwnd_falls_in_ss"] > 0  # type: ignore[operator]


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # With BBR.
    assert not judged(beside(tmp_path, SS.replace(" cubic ", " bbr "), None), "TW401")
    # With the sysctl off.
    assert not judged(beside(tmp_path, SS, 0), "TW401")
    # A pause below the timeout.
    assert not judged(restarted(0.15).analyze(tmp_path), "TW401", {"TW401.cost_ns": 0, "TW401.share": 0})


def restarted(silence: float) -> Story:
    """Round trip 100 ms, timeout 300 ms. A message of 20 segments leaves at once; after a silence, ten and ten."""
    story = Story().handshake(0.1, options=("<mss 1460,ws 7>", "<mss 1460,ws 7>"))
    story.wait(0.001).data("a", 14_600)
    story.wait(0.1).ack("b")
    story.wait(0.0001).data("a", 14_600)
    story.wait(0.0001).data("a", 14_600)
    story.wait(0.0999).ack("b")
    story.wait(silence)
    if silence < 0.3:
        story.data("a", 29_200)
    else:
        story.data("a", 14_600)
        story.wait(0.1).ack("b")
        story.wait(0.0001).data("a", 14_600)
    story.wait(0.1).ack("b")
    return story.close(0.1)


def test_one_pause_is_only_likely(tmp_path: Path) -> None:
    story = restarted(1.7)
    [finding] = judged(story.analyze(tmp_path), "TW401", {"TW401.cost_ns": 90e6})
    assert (finding.side, finding.confidence) == ("client", "likely")
    # 3 + 6 frames before the pause; then ten segments in one frame, their ACK, and the waiting data.
    assert finding.evidence.frames == (11,)
    assert finding.cost_ns == pytest.approx(100e6, rel=0.01)
    assert not judged(story.analyze(tmp_path), "TW401", {"TW401.cost_ns": 110e6})


@pytest.mark.parametrize("end", ["snd", "rcv"])
def test_the_lab_run_with_the_sysctl_off(end: str) -> None:
    analysis = tcpwin.analyze(LAB_RUNS / "idle_restart_ssai0" / f"{end}.pcap.gz")
    assert not judged(analysis, "TW401", {"TW401.cost_ns": 0, "TW401.share": 0})
