"""The kernel's drop reasons are recorded if tracefs is accessible; otherwise a message says why not."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.command import refused
from live import until
from reference import NO_RIGHT

from tcpwin.errors import SourceError
from tcpwin.watch import drops, recording_drops


@pytest.fixture
def rings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder for recorders' rings: tracefs if mounted, otherwise mounted for this test."""
    instances = drops.TRACEFS[0] / "instances"
    if os.access(instances, os.W_OK):
        yield instances
        return
    folder = tmp_path_factory.mktemp("tracefs")
    mount = shutil.which("mount") or "mount"
    done = subprocess.run([mount, "-t", "tracefs", "tracefs", folder], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"{NO_RIGHT} mount tracefs")
    try:
        if not os.access(folder / "instances", os.W_OK):
            pytest.skip(f"{NO_RIGHT} trace the kernel")
        monkeypatch.setattr(drops, "TRACEFS", (folder,))
        yield folder / "instances"
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_packet_that_nobody_wants_has_its_reason(rings: Path, tmp_path: Path) -> None:
    ring = rings / f"tcpwin-watch-{os.getpid()}"
    with recording_drops(tmp_path) as written:
        assert ring.is_dir()
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
    assert not ring.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_ring_of_a_recorder_that_was_killed_is_removed(rings: Path, tmp_path: Path) -> None:
    left = rings / "tcpwin-watch-4194305"
    left.mkdir()
    with recording_drops(tmp_path):
        assert not left.exists()


def test_where_the_kernel_does_not_tell_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "TRACEFS", (tmp_path / "none",))
    with pytest.raises(SourceError, match="cannot record why packets are dropped"), recording_drops(tmp_path):
        pass
    assert "it needs -i and -o" in refused("watch", "-i", "lo", "--drops", status=2)
