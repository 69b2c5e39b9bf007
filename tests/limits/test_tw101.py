"""TW101 window-scaling-not-negotiated: windows of 65,535 bytes, and smaller ones, that limit a sender."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, blame, judged
from stories.window_stories import NO_SCALE, full, one, rounds, sample

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures" / "lab"
START_NS = 1_600_000_000_000_000_000


def unscaled(window: int = 65_535, *, count: int = 20, options: tuple[str, str] = NO_SCALE) -> Story:
    """Round trip 40 ms; a fills the window of b each round trip."""
    story = Story(window={"a": 64_240, "b": window}).handshake(options=options, scaled=(64_240, window))
    return rounds(story, count, full(window)).close()


def test_fires_where_neither_syn_has_the_option(tmp_path: Path) -> None:
    finding = one(unscaled().analyze(tmp_path), "TW101")
    # The capture was made at a, and b may not offer an option that the SYN lacked (RFC 7323 §2.2).
    assert blame(finding) == ("a_to_b", "client", "client_host", "certain")
    # 20 rounds of 40 ms, each limited completely.
    assert finding.cost_ns == 800_000_000
    # The SYN; 3 frames of handshake, then each round has 44 full segments, one that fills the window, and an ACK. Of
    # the 20 that fill it, six are listed: rounds 0, 3, 7, 11, 15, 19.
    assert finding.evidence.frames == (1, *(3 + 45 + 46 * number for number in (0, 3, 7, 11, 15, 19)))
    assert finding.evidence.start_ns == START_NS + 40_000_000
    assert finding.evidence.end_ns == START_NS + 40_000_000 + 19 * 40_000_000
    # 65,535 x 8 bits in 40 ms.
    assert finding.evidence.values == {
        "window_max_bytes": 65_535,
        "rtt_ns": 40_000_000,
        "ceiling_bps": 13_107_000,
        # 20 x 65,535 x 8 bits from the first data to the ACK of the FIN, 0.84 s later.
        "goodput_bps": 13_107_000,
        "held_back_ns": 800_000_000,
    }
    assert finding.remedy.settings == (
        "sysctl -w net.ipv4.tcp_window_scaling=1",
        "netsh interface tcp set global autotuninglevel=normal",
    )


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Smaller window: 32,768 bytes would be possible without the option, so the buffer is small.
    assert not judged(unscaled(32_768).analyze(tmp_path), "TW101")
    # The window was not filled.
    story = Story(window={"a": 64_240, "b": 65_535}).handshake(options=NO_SCALE, scaled=(64_240, 65_535))
    assert not judged(rounds(story, 20, full(60_000)).close().analyze(tmp_path), "TW101")
    # Below the threshold.
    story = unscaled(count=4)
    assert not judged(story.analyze(tmp_path), "TW101")
    assert judged(story.analyze(tmp_path), "TW101", {"TW101.limited_ns": 100e6, "TW101.fill": 0.75})


def test_an_answer_without_the_option_is_less_sure_far_from_its_sender(tmp_path: Path) -> None:
    options = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK>")
    finding = one(unscaled(options=options).analyze(tmp_path), "TW101")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_host", "likely")


@pytest.mark.parametrize(
    ("setting", "expected"), [("0", ("server", "server_host", "certain")), ("1", (None, "network", "likely"))]
)
def test_the_hosts_setting_decides(tmp_path: Path, setting: str, expected: tuple[str | None, str, str]) -> None:
    options = ("<mss 1460,sackOK,ws 7>", "<mss 1460,sackOK>")
    snapshots = {
        "ss_b.txt": sample("b", 0.5, "rto:240 rtt:40/1 mss:1460 cwnd:10 bytes_received:1"),
        "sysctl_b.txt": f"net.ipv4.tcp_window_scaling = {setting}\nnet.ipv4.tcp_sack = 1\n",
    }
    finding = one(unscaled(options=options).analyze(tmp_path, snapshots=snapshots), "TW101")
    assert (finding.side, finding.owner, finding.confidence) == expected
    assert finding.remedy.settings == ("sysctl -w net.ipv4.tcp_window_scaling=1",)


def test_a_kernel_that_waited_for_something_else_refutes_it(tmp_path: Path) -> None:
    told = "rto:240 rtt:40/1 mss:1460 cwnd:10 bytes_sent:1000 busy:800ms rwnd_limited:{}ms({}%)"
    for limited_ms, found in ((700, 1), (100, 0)):
        text = sample("a", 0.9, told.format(limited_ms, limited_ms / 8))
        assert len(judged(unscaled().analyze(tmp_path, snapshots={"ss_a.txt": text}), "TW101")) == found


def test_the_labs_run_without_scaling() -> None:
    finding = one(tcpwin.analyze(CAPTURES / "no-window-scaling.pcap.gz"), "TW101")
    # Captured at b, the sender; 85 ms; its kernel counted rwnd_limited 12,920 ms of busy 13,180 ms.
    assert blame(finding) == ("b_to_a", "client", "client_host", "likely")
    # The packets show less: they count from the data in flight, not from the write (tests/lab/test_held_back.py). Slow
    # start's round trips would also remain.
    assert 0.89 * 12_920_000_000 <= finding.cost_ns <= 12_920_000_000
    # 65,535 x 8 bits in 85 ms.
    assert finding.evidence.values["ceiling_bps"] == 6_168_000
    assert finding.evidence.values["window_max_bytes"] == 65_535
