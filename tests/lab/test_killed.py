"""A run whose program is killed leaves no running kernel behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live import HANG_S
from reference import NO_LAB

from tcpwin.lab import kernel_path

LONG = """
import sys
from pathlib import Path
from tcpwin.lab import read_scenario, run_scenario
text = 'title = "Long"\\n[path]\\nrtt_ms = 1\\nrate_mbps = 1\\n[workload]\\nname = "bulk"\\nserve.bytes = 1000000000\\n'
run_scenario(read_scenario("long", text), "stock", Path(sys.argv[1]), tick=lambda at_ns: print(at_ns, flush=True))
"""


def group_of(folder: Path) -> set[int]:
    """Return process groups of kernels with files in a folder."""
    return {
        int((process / "stat").read_text().rpartition(")")[2].split()[2])
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and f"uml_dir={folder}" in read(process / "cmdline")
    }


def members(group: int) -> list[int]:
    """Return the group's processes that still run."""
    found = []
    for process in Path("/proc").iterdir():
        state = read(process / "stat").rpartition(")")[2].split()
        if process.name.isdigit() and state and int(state[2]) == group and state[0] != "Z":
            found.append(int(process.name))
    return found


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")
def test_a_kernel_ends_with_the_program_that_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", LONG, tmp_path], stdout=subprocess.PIPE, env=environment, text=True
    ) as program:
        # Its clock runs: it is in the middle of the transfer.
        assert int(program.stdout.readline()) > 0
        (group,) = group_of(tmp_path)
        assert len(members(group)) > 1
        # It can neither notice nor finish by itself.
        os.killpg(group, signal.SIGSTOP)
        program.send_signal(signal.SIGKILL)
    try:
        hangs_at = time.monotonic() + HANG_S
        while members(group) and time.monotonic() < hangs_at:
            time.sleep(0.05)
        assert members(group) == []
    finally:
        if members(group):
            os.killpg(group, signal.SIGKILL)
