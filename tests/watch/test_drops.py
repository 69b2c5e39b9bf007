"""The kernel's reasons for drops are recorded where tracefs lets us, and a sentence says where not."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from cli.command import refused
from live import until

from tcpwin.errors import SourceError
from tcpwin.watch import drops, recording_drops

RING = drops.TRACEFS[0] / "instances" / f"tcpwin-watch-{os.getpid()}"
MAY_TRACE = os.access(drops.TRACEFS[0] / "instances", os.W_OK)


@pytest.mark.skipif(not MAY_TRACE, reason="tracefs is not mounted, or not ours")
def test_a_packet_that_nobody_wants_has_its_reason(tmp_path: Path) -> None:
    with recording_drops(tmp_path) as written:
        assert RING.is_dir()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, socket.socket(type=socket.SOCK_DGRAM) as gone:
            gone.bind(("127.0.0.1", 0))
            address = gone.getsockname()
            gone.close()
            sender.sendto(b"nobody listens", address)

        def lines() -> list[str]:
            (path,) = written()
            assert path.name == "drops.txt"
            return [line for line in path.read_text().splitlines() if "NO_SOCKET" in line]

        assert until(lines)
    assert not RING.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not MAY_TRACE, reason="tracefs is not mounted, or not ours")
def test_the_ring_of_a_recorder_that_was_killed_is_removed(tmp_path: Path) -> None:
    left = RING.with_name("tcpwin-watch-4194305")
    left.mkdir()
    with recording_drops(tmp_path):
        assert not left.exists()


def test_where_the_kernel_does_not_tell_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "TRACEFS", (tmp_path / "none",))
    with pytest.raises(SourceError, match="why packets are dropped cannot be told"), recording_drops(tmp_path):
        pass
    assert "goes with -i and -o" in refused("watch", "-i", "lo", "--drops", status=2)
