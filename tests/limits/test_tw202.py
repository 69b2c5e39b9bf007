"""TW202 receive-window-limited: a small window, a shrinking one, a full path, and the kernel's counter."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import all_cases
from reference import LAB_RUNS
from stories.story import Story, blame, judged
from stories.window_stories import full, one, rounds, sample, scaled

import tcpwin
from tcpwin.limits.reading import Reading

CAPTURES = Path(__file__).parents[2] / "captures" / "lab"


def grown(*, rtt: float = 0.04, count: int = 20) -> Story:
    """b's window grows from 16,384 to 32,768 bytes, and a fills it each round trip of 40 ms."""
    story = Story(window={"a": 64_240, "b": 16_384}).handshake(options=scaled(7), scaled=(502, 256))
    return rounds(story, count, full(32_768), rtt=rtt).close()


def drained(fast: int = 10, slow: int = 20) -> Story:
    """b's window is 65,536 bytes after the handshake, then 8,192, and a fills it each round trip of 40 ms."""
    story = Story(window={"a": 64_240, "b": 16_384}).handshake(options=scaled(7), scaled=(502, 512))
    rounds(story, fast, full(65_536))
    return rounds(story, slow, full(8_192), window=64).close()


def test_fires_on_a_window_filled_each_round_trip(tmp_path: Path) -> None:
    finding = one(grown().analyze(tmp_path), "TW202")
    assert blame(finding) == ("a_to_b", "server", "server_host", "certain")
    assert finding.cost_ns == 800_000_000
    # 32,768 bytes are 22 segments and one of 648; the first flight exceeded the SYN/ACK's window; six of rounds 1 to
    # 19.
    assert finding.evidence.frames == tuple(3 + 23 + 24 * number for number in (1, 4, 8, 11, 15, 19))
    values = finding.evidence.values
    assert {**values, "window_mean_bytes": 0, "ceiling_bps": 0} == {
        "window_mean_bytes": 0,
        "window_max_bytes": 32_768,
        "rtt_ns": 40_000_000,
        "ceiling_bps": 0,
        # 20 x 32,768 x 8 bits from the first data to the ACK of the FIN, 0.84 s later.
        "goodput_bps": 6_553_600,
        "held_back_ns": 800_000_000,
    }
    # In the first of 21 round trips the SYN/ACK's window applied.
    assert 31_000 < float(values["window_mean_bytes"]) < 32_768
    assert finding.remedy.settings == ('sysctl -w net.ipv4.tcp_rmem="4096 131072 6291456"',)


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The path was full: the windows are filled, but the ACKs take 51 ms on a path of 40 ms, so the rest is a queue.
    assert not judged(grown(rtt=0.051).analyze(tmp_path), "TW202")
    assert judged(grown(rtt=0.051).analyze(tmp_path), "TW202", {"TW202.fill": 0.75})
    assert judged(grown(rtt=0.043).analyze(tmp_path), "TW202")
    # Below the threshold.
    story = grown(count=4)
    assert not judged(story.analyze(tmp_path), "TW202")
    assert judged(story.analyze(tmp_path), "TW202", {"TW202.limited_ns": 100e6})


def test_a_window_that_falls_is_a_slow_readers(tmp_path: Path) -> None:
    finding = one(drained().analyze(tmp_path), "TW202")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_application", "likely")
    # All but one of 30 rounds: data sent while the window was large was not limited.
    assert finding.cost_ns == 29 * 40_000_000
    assert finding.remedy.settings == ()


def test_a_window_that_rarely_falls_is_not_a_slow_reader(tmp_path: Path) -> None:
    # 7 of 31 round trips are 23 %, below the threshold of 30 %; the rate is that of the window.
    assert one(drained(22, 8).analyze(tmp_path), "TW202").owner == "server_host"


@pytest.mark.parametrize(("fast", "slow", "owner"), [(10, 20, "server_application"), (22, 8, "server_host")])
def test_without_series_the_mean_window_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: int, slow: int, owner: str
) -> None:
    """A mean of 28 kB is below half of the largest window of 65,536 bytes; one of 50 kB is not."""
    monkeypatch.setattr(Reading, "may_follow_series", lambda *_: False)
    assert one(drained(fast, slow).analyze(tmp_path), "TW202").owner == owner


@pytest.mark.parametrize(("limited_ms", "found"), [(700, 1), (190, 0)])
def test_the_senders_kernel_decides(tmp_path: Path, limited_ms: int, found: int) -> None:
    text = sample("a", 0.9, f"rto:240 rtt:40/1 mss:1460 cwnd:10 busy:840ms rwnd_limited:{limited_ms}ms(1.0%)")
    assert len(judged(grown().analyze(tmp_path, snapshots={"ss_a.txt": text}), "TW202")) == found


@all_cases("name", ["window-scaling", "loss-1-percent", "offload-big-frames", "cooked-any", "idle-restart"])
def test_does_not_fire_on_a_fast_reader(name: str) -> None:
    assert not judged(tcpwin.analyze(CAPTURES / f"{name}.pcap.gz"), "TW202")


@pytest.mark.parametrize(("name", "view"), [("slow-reader", "sender"), ("slow-reader-receiver", "receiver")])
def test_the_labs_slow_reader_from_either_end(name: str, view: str) -> None:
    analysis = tcpwin.analyze(CAPTURES / f"{name}.pcap.gz")
    assert analysis.connections[0].b_to_a.view == view
    finding = one(analysis, "TW202")
    assert blame(finding) == ("b_to_a", "client", "client_application", "likely")
    # Its kernel counted rwnd_limited 26.7 s, including closed windows of 6.1 s.
    assert abs(sum(finding.items_ns.values()) - 20_600_000_000) < 200_000_000
    # Data that passed meanwhile would also have taken its time at the path's rate.
    assert 19_000_000_000 < finding.cost_ns <= sum(finding.items_ns.values())


def test_less_sure_where_much_was_lost() -> None:
    # The receiver refuses segments: b is in recovery for 14.6 s and limited by the window for 25.0 s.
    finding = one(tcpwin.analyze(LAB_RUNS / "oscil_10mbit_300ms_170p2_guard" / "snd.pcap.gz"), "TW202")
    assert (finding.side, finding.owner, finding.confidence) == ("client", "client_application", "possible")
