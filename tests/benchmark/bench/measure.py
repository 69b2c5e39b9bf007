"""Run a command to its end and measure CPU time, wall time and peak memory of the process."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median


class RunError(Exception):
    """A measured command failed, so its numbers would be meaningless."""


@dataclass(frozen=True)
class Run:
    """`peak_bytes` is never below this program's peak, which Linux passes on (`exec_mmap` in fs/exec.c)."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a command without its output; raise RunError unless it exits with 0."""
    with tempfile.TemporaryFile() as complaints:
        begun = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=None if environment is None else {**os.environ, **environment},
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        wall_s = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip().splitlines()[-3:]
            raise RunError(f"{' '.join(command)}: exit {process.returncode}: {' | '.join(said)}")
    return Run(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss * 1024)


def run_repeatedly(command: Sequence[str], times: int, environment: Mapping[str, str] | None = None) -> Run:
    """Return median CPU and wall time of several runs, and their highest peak: for commands of a few ms."""
    runs = [run(command, environment) for _ in range(times)]
    return Run(
        median(one.cpu_s for one in runs), median(one.wall_s for one in runs), max(one.peak_bytes for one in runs)
    )
