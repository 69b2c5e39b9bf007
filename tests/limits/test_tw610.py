"""TW610 captured-at-both-ends: captures of both ends of a path, merged by time."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest
from spread import some_by_day
from stories.parts import CAPTURES
from stories.story import judged

import tcpwin

ETHERNET_BYTES = 14
RECORD = struct.Struct("<IIII")


def merged(folder: Path, name: str, delay_ns: int) -> Path:
    """Merge a capture made at b with the same packets as seen at a, `delay_ns` away."""
    raw = gzip.decompress((CAPTURES / "lab" / name).read_bytes())
    unit_ns = 1 if struct.unpack_from("<I", raw)[0] == 0xA1B23C4D else 1000
    packets, position = [], 24
    while position < len(raw):
        seconds, fraction, captured, length = RECORD.unpack_from(raw, position)
        position += RECORD.size
        frame = raw[position : position + captured]
        position += captured
        packets.append((seconds * 10**9 + fraction * unit_ns, length, frame))
    initiator = packets[0][2][ETHERNET_BYTES + 12 : ETHERNET_BYTES + 16]
    for time_ns, length, frame in list(packets):
        is_from_a = frame[ETHERNET_BYTES + 12 : ETHERNET_BYTES + 16] == initiator
        packets.append((time_ns + (-delay_ns if is_from_a else delay_ns), length, frame))
    packets.sort(key=lambda packet: packet[0])
    path = folder / f"merged-{delay_ns}.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        for time_ns, length, frame in packets:
            file.write(RECORD.pack(*divmod(time_ns, 10**9), len(frame), length) + frame)
    return path


@pytest.mark.parametrize(
    "name", some_by_day(["window-scaling.pcap.gz", "slow-reader.pcap.gz", "loss-1-percent.pcap.gz"], first=2)
)
def test_fires_on_two_ends_without_counting_copies_as_loss(tmp_path: Path, name: str) -> None:
    analysis = tcpwin.analyze(merged(tmp_path, name, 20_000_000))
    [finding] = judged(analysis, "TW610")
    assert (finding.direction, finding.owner, finding.side, finding.confidence) == ("b_to_a", "nobody", None, "certain")
    assert finding.cost_ns == 0
    assert finding.evidence.values["copied_after_ns"] == 20_000_000
    assert finding.evidence.frames == (1, 2, 3, 4)
    assert [each.code for each in analysis.findings if each.code.startswith("TW3")] == []
    verdict = analysis.connections[0].verdict
    assert verdict.confidence == "possible"
    assert "twice" in verdict.reason
    # Copies show nothing about the sender's time.
    budget = analysis.connections[0].budget["b_to_a"]
    assert verdict.limit == "capture"
    assert budget.share("unknown", "handshake", "closed") == 1.0


def test_does_not_fire_otherwise(tmp_path: Path) -> None:
    # Copies later than a stack would repeat its SYN.
    path = merged(tmp_path, "window-scaling.pcap.gz", 1_000_000_000)
    analysis = tcpwin.analyze(path)
    assert sum(connection.b_to_a.syn_retransmissions for connection in analysis.connections) > 0
    assert not judged(analysis, "TW610")
    # Only one end.
    for name in ("window-scaling.pcap.gz", "loss-1-percent.pcap.gz"):
        assert not judged(tcpwin.analyze(CAPTURES / "lab" / name), "TW610")
