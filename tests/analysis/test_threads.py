"""Several threads give the same findings and text as one."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from analysis.answers import THREADS, damaged, digest
from analysis.bundled import CAPTURES
from cases import all_cases
from spread import some_by_day

import tcpwin
from tcpwin import TcpwinError
from tcpwin.analysis.threads import WORTH_BYTES, cores, threads_for
from tcpwin.sources import PathSource

LAB = CAPTURES / "lab"
BUNDLED = sorted(
    path
    for folder in ("broken", "lab", "wild")
    for path in (CAPTURES / folder).iterdir()
    if path.is_file() and path.suffix != ".toml"
)


def _said(source: object, number: int) -> object:
    try:
        analysis = tcpwin.analyze(source, threads=number)  # type: ignore[arg-type]
    except TcpwinError as error:
        return str(error)
    return json.loads(analysis.to_json()), analysis.totals(), [str(each) for each in analysis.findings]


@all_cases("path", BUNDLED, ids=lambda path: path.name, of=6, first=1)
def test_bundled(path: Path) -> None:
    assert _said(path, 3) == _said(path, 1)


def test_public_captures(reference_captures: Path) -> None:
    paths = sorted(path for path in (reference_captures / "real").rglob("*") if path.is_file())
    captures = [path for path in paths if path.suffix not in (".toml", ".json", ".txt", ".md")]
    assert captures
    assert [path.name for path in captures if _said(path, 2) != _said(path, 1)] == []


@pytest.mark.nightly
def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "damaged.pcap"
    for seed, data in enumerate(damaged(2_000)):
        path.write_bytes(data)
        assert digest(path, THREADS) == digest(path, 1), seed


def test_other_sources() -> None:
    path = LAB / "slow-reader.pcap.gz"
    several = [path, LAB / "zero-window-stall.pcap.gz"]
    assert _said(several, 4) == _said(several, 1)
    data = path.read_bytes()
    assert _said(io.BytesIO(data), 4) == _said(io.BytesIO(data), 1)


def test_scales_by_hand_and_chosen_packets() -> None:
    path = next(each for each in BUNDLED if each.name.startswith("slow-reader"))
    for options in ({"filter": "port 5201"}, {"start": "1s", "end": "9s"}, {"window_scales": {"10.9.2.2": 7}}):
        one = tcpwin.analyze(path, threads=1, **options)  # type: ignore[arg-type]
        several = tcpwin.analyze(path, threads=4, **options)  # type: ignore[arg-type]
        assert several.to_json() == one.to_json()


def test_progress_may_end_it() -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tcpwin.analyze(LAB / "slow-reader.pcap.gz", threads=3, progress=stop)


def test_how_many(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(bytes(100))
    with large.open("wb") as file:
        file.truncate(WORTH_BYTES)
    assert threads_for(PathSource([small])) == 1
    assert threads_for(PathSource([large])) == cores() >= 1
    with pytest.raises(ValueError, match="threads is 0"):
        tcpwin.analyze(small, threads=0)


@pytest.mark.parametrize("command", some_by_day(["analyze", "check", "report"]))
def test_command(command: str, tmp_path: Path) -> None:
    def written(number: int) -> tuple[int, str]:
        arguments = [str(Path(sys.executable).with_name("tcpwin")), command, str(LAB / "slow-reader.pcap.gz")]
        done = subprocess.run([*arguments, "--threads", str(number)], capture_output=True, text=True, cwd=tmp_path)
        # A report contains the minute of its creation.
        return done.returncode, re.sub(r"( on )[0-9-]{10} [0-9:]{5}( UTC\. This file needs)", r"\1\2", done.stdout)

    assert written(3) == written(1)
    assert written(0)[0] == 2


def test_by_affinity() -> None:
    program = (
        "import os, tcpwin._engine as e; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(e.cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
