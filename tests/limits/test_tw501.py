"""TW501 connection-aborted: data lost by a reset, unread data, and a reset that loses nothing."""

from __future__ import annotations

from pathlib import Path

import ladder
import pytest
from stories.parts import CAPTURES, SYNS
from stories.story import Story, blame, judged, says

import tcpwin

MS = 1_000_000
COUNTERS = """### 1600000000.0
#kernel
TcpInSegs 100 0.0
TcpExtTCPAbortOnClose 3 0.0
### 1600000001.0
#kernel
TcpInSegs 120 0.0
TcpExtTCPAbortOnClose 4 0.0
"""
SOCKET = """### 1600000000.070000
State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 29200  0      10.0.0.2:9000      10.0.0.1:40000
\t cubic wscale:7,7 rto:204 rtt:40/20 mss:1460 cwnd:10 bytes_received:29200
"""


def reset_by_receiver(*, acknowledged: bool, wait: float = 0.0, window: int = 509) -> Story:
    """a sends 20 segments; b acknowledges ten, or all, and resets."""
    story = Story().handshake(options=SYNS)
    story.burst("a", 20).wait(0.04)
    story.ack("b", None if acknowledged else 1 + 10 * 1460, window=window)
    story.wait(wait)
    story.step("b", "RA")
    return story


def test_fires_on_data_that_was_never_acknowledged(tmp_path: Path) -> None:
    story = reset_by_receiver(acknowledged=False, wait=0.01)
    [finding] = judged(story.analyze(tmp_path), "TW501")
    assert blame(finding) == ("a_to_b", "server", "server_application", "likely")
    assert finding.cost_ns == 0
    assert says(finding, "The server reset", "while the client was sending", "14.6 kB")
    # SYN, SYN/ACK, ACK, 20 segments as frames 4 to 23, the ACK 24, the RST 25.
    assert finding.evidence.frames == (25, 21, 22, 23)
    # The last segment left 40 ms and 19 × 0.1 ms after the capture began; 0.1 ms, 40 ms and 10 ms later the RST.
    assert finding.evidence.start_ns == ladder.START_NS + 41_900_000
    assert finding.evidence.end_ns == ladder.START_NS + 92 * MS
    assert finding.evidence.values == {
        "reset_by": "b",
        "unacknowledged_bytes": 14_600,
        "acked_bytes": 14_600,
        "timeouts": 0,
    }


def test_is_sure_with_the_kernel(tmp_path: Path) -> None:
    story = reset_by_receiver(acknowledged=False, wait=0.01)
    analysis = story.analyze(tmp_path, snapshots={"ss_server.txt": SOCKET, "nstat_server.txt": COUNTERS})
    [finding] = judged(analysis, "TW501")
    assert finding.confidence == "certain"
    assert finding.evidence.values["TcpExtTCPAbortOnClose"] == 1


def test_fires_on_own_data_that_was_never_acknowledged(tmp_path: Path) -> None:
    story = Story().handshake(options=SYNS)
    story.burst("a", 4).wait(0.04)
    story.ack("b", 1 + 1460)
    story.wait(0.01).step("a", "RA")
    [finding] = judged(story.analyze(tmp_path), "TW501")
    assert (finding.side, finding.direction) == ("client", "a_to_b")
    assert finding.evidence.values["unacknowledged_bytes"] == 3 * 1460
    assert says(finding, "The client reset", "4.38 kB of its data", "the server")


def test_fires_on_a_reader_that_closed_with_data_unread() -> None:
    [finding] = judged(tcpwin.analyze(CAPTURES / "wild" / "aborted-by-reader.pcapng"), "TW501")
    assert blame(finding) == ("a_to_b", "server", "server_application", "likely")
    # Frame 18 ends at the window's edge; frame 19, the RST, has its end as sequence number 86 µs later. That
    # acknowledges nothing: the last ACK, frame 16, ends before frames 17 and 18 of 47,616 and 18,944 bytes.
    assert finding.evidence.frames == (19, 11, 17, 18)
    assert finding.evidence.values == {
        "reset_by": "b",
        "unacknowledged_bytes": 66_560,
        "acked_bytes": 128_512,
        "timeouts": 0,
    }
    assert says(finding, "The server reset", "the client's data unread", "86 µs", "66.6 kB")


@pytest.mark.parametrize(("wait", "window", "found"), [(0.01, 509, 0), (0.01, 200, 1), (0.2, 200, 0)])
def test_judges_a_reset_with_all_acknowledged_by_its_window(
    tmp_path: Path, wait: float, window: int, found: int
) -> None:
    # 509 × 128 = 65,152 of 65,160 bytes are free, or 200 × 128 = 25,600; the last data came 40.1 ms before the ACK.
    story = reset_by_receiver(acknowledged=True, wait=wait, window=window)
    findings = judged(story.analyze(tmp_path), "TW501")
    assert len(findings) == found
    assert all(says(finding, "the client's data unread", "from 65.2 kB to 25.6 kB") for finding in findings)


def test_fires_on_a_closed_window(tmp_path: Path) -> None:
    story = Story().handshake(options=SYNS)
    story.burst("a", 20).wait(0.04)
    story.ack("b", window=0)
    story.wait(5.0).step("b", "RA")
    [finding] = judged(story.analyze(tmp_path), "TW501")
    assert (finding.side, finding.owner, finding.confidence) == ("server", "server_application", "likely")
    assert finding.evidence.values["unacknowledged_bytes"] == 0
    assert says(finding, "the client's data unread", "closed for 5 s")


def test_does_not_fire_on_a_goodbye(tmp_path: Path) -> None:
    # A TLS close_notify of 31 bytes, refused by a side that had closed.
    story = Story().handshake(options=SYNS)
    story.burst("b", 5).wait(0.04)
    story.ack("a")
    story.wait(0.01).data("b", 31)
    story.wait(0.04).step("a", "R")
    analysis = story.analyze(tmp_path)
    assert not judged(analysis, "TW501")
    assert judged(analysis, "TW501", {"TW501.lost_bytes": 31})


def test_fires_on_what_the_kernel_held_unread() -> None:
    # The last sample before the RST at 515.883786 s is from 515.736103 s: CLOSE-WAIT with Recv-Q 37,105.
    [finding] = judged(tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip"), "TW501")
    assert blame(finding) == ("b_to_a", "client", "client_application", "likely")
    assert says(finding, "The client reset", "the server's data unread", "37.1 kB", "148 ms")


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # A late reset with everything acknowledged: the last data was 2.8 s before the RST.
    path = CAPTURES / "lab" / "slow-reader.pcap.gz"
    assert not judged(tcpwin.analyze(path), "TW501")
    # A close.
    story = Story().handshake(options=SYNS)
    story.burst("a", 20).wait(0.04)
    story.ack("b")
    assert not judged(story.close().analyze(tmp_path), "TW501")


@pytest.mark.parametrize(("lost_bytes", "found"), [(14_600, 1), (14_601, 0)])
def test_threshold_can_be_set(tmp_path: Path, lost_bytes: int, found: int) -> None:
    analysis = reset_by_receiver(acknowledged=False).analyze(tmp_path)
    assert len(judged(analysis, "TW501", {"TW501.lost_bytes": lost_bytes})) == found
