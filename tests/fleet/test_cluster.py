"""A Dask cluster of real processes gives the same data set, whatever happens to its workers."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from pathlib import Path

from cli.command import TCPWIN, refused
from fleet.cluster import cluster
from fleet.sets import LOSS, MANY, READER, contents, run_fleet
from live import until


def many_of(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(count):
        shutil.copy((LOSS, READER, MANY)[number % 3], folder / f"{number:03}.pcap.gz")
    return folder


def test_a_worker_killed_and_one_cut_off_lose_nothing(tmp_path: Path) -> None:
    sources, folder = many_of(tmp_path, 18), tmp_path / "set"
    with cluster(tmp_path / "cluster", 3) as made:
        command = [TCPWIN, "fleet", "run", str(sources), "-o", str(folder), "--scheduler", made.address]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        manifest = folder / "manifest.jsonl"
        until(lambda: running.poll() is not None or (manifest.exists() and manifest.read_bytes().count(b"\n") >= 6))
        killed, cut_off, _ = made.workers
        cut_off.send_signal(signal.SIGSTOP)
        killed.kill()
        assert manifest.read_bytes().count(b"\n") < 18
        out, said = running.communicate()
        assert (running.returncode, said) == (0, b""), out
        assert b"18 measured, 0 unchanged, 0 unreadable" in out
        run_fleet(sources, "-o", tmp_path / "here")
        expected = contents(tmp_path / "here")
        assert contents(folder) == expected
        # A disconnected worker continues its call, and finds that its result is not needed.
        cut_off.send_signal(signal.SIGCONT)
        assert run_fleet(sources, "-o", folder, "--scheduler", made.address)["unchanged"] == 18
        assert contents(folder) == expected


def test_where_no_scheduler_is_one_sentence_says_so(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        said = refused("fleet", "run", READER, "-o", tmp_path / "set", "--scheduler", address)
    assert said.startswith(f"tcpwin: {address}: no Dask scheduler answers there")
    said = refused("fleet", "run", READER, "-o", tmp_path / "set", "--scheduler", "nothing://x")
    assert "nothing://x: no Dask scheduler answers there" in said
