"""TW704 sack-or-timestamps-off: settings off with loss and without, on, and off although the SYNs offer the options."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.hostsaid import A, B, ss, sysctl
from stories.story import Story, judged

import tcpwin
from tcpwin.limits import Severity

BARE = ("<mss 1460,ws 7>", "<mss 1460,ws 7>")
FULL = ("<mss 1460,sackOK,ts 100 0,ws 7>", "<mss 1460,sackOK,ts 200 100,ws 7>")


def analyze(
    folder: Path, settings: dict[str, str], *, again: int = 0, options: tuple[str, str] = BARE
) -> tcpwin.Analysis:
    """a sends 20 segments to b, the first ones twice (retransmitted by the timer)."""
    story = Story().handshake(options=options)
    story.burst("a", 20)
    for number in range(again):
        story.wait(0.3 * 2**number).step("a", "A", "len 1460", seq=1 + 1460 * number)
        story.wait(0.04).ack("b", 1 + 1460 * (number + 1))
    story.wait(0.04).ack("b")
    said = {"ss_client.txt": ss(A, B, "rtt:40/20"), "sysctl_client.txt": sysctl(**settings)}
    return story.close().analyze(folder, snapshots=said)


def test_warns_where_loss_makes_it_felt(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, {"tcp_sack": "0", "tcp_timestamps": "1"}, again=3), "TW704")
    assert (finding.side, finding.owner, finding.confidence) == ("client", "client_host", "certain")
    assert finding.severity == Severity.WARNING
    assert finding.evidence.values == {
        "net.ipv4.tcp_sack": 0,
        "host": "client",
        "syns_without_option": 1,
        "retransmissions": 3,
    }
    assert finding.remedy.settings == ("sysctl -w net.ipv4.tcp_sack=1",)


@pytest.mark.parametrize(("again", "severity"), [(0, Severity.INFO), (2, Severity.INFO), (3, Severity.WARNING)])
def test_says_it_without_loss(tmp_path: Path, again: int, severity: Severity) -> None:
    analysis = analyze(tmp_path, {"tcp_sack": "0", "tcp_timestamps": "0"}, again=again)
    [finding] = judged(analysis, "TW704")
    assert finding.severity == severity
    assert finding.text.startswith("SACK and timestamps are off on the client (client)")
    [finding] = judged(analysis, "TW704", {"TW704.retransmissions": 4})
    assert finding.severity == Severity.INFO


def test_says_that_timestamps_are_off(tmp_path: Path) -> None:
    [finding] = judged(analyze(tmp_path, {"tcp_sack": "1", "tcp_timestamps": "0"}, again=3), "TW704")
    assert (finding.severity, finding.owner) == (Severity.INFO, "nobody")
    assert finding.text == "Timestamps are off on the client (client)"


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # The settings are on.
    assert not judged(analyze(tmp_path, {"tcp_sack": "1", "tcp_timestamps": "1"}, again=3), "TW704")
    # The SYN offers the options.
    assert not judged(analyze(tmp_path, {"tcp_sack": "0", "tcp_timestamps": "0"}, options=FULL), "TW704")
