"""A Dask cluster of processes, as people start one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from live import until

DASK = Path(sys.executable).with_name("dask")
UNHEARD_S = 5
"""Seconds that the scheduler waits for a silent worker."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        address: str = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return address

    def begin_worker(self, name: str) -> subprocess.Popen[bytes]:
        arguments = ["worker", self.address, "--name", name, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        worker = _begin([*arguments, "--host", "127.0.0.1", "--local-directory", str(self.folder / name)])
        self.workers.append(worker)
        return worker


def _begin(arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{UNHEARD_S}s"}
    return subprocess.Popen([DASK, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a cluster; all its processes end with the `with` statement."""
    folder.mkdir()
    file = folder / "scheduler.json"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    made = Cluster(folder, _begin(scheduler))
    try:
        until(lambda: file.exists() and file.read_text().endswith("}"))
        for number in range(workers):
            made.begin_worker(f"worker-{number}")
        yield made
    finally:
        for process in (*made.workers, made.scheduler):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
