"""The first process of the lab's kernel: mounts what is needed, runs one scenario, and halts.

In: the folder for results, its path on the host as the only argument. Out: the results there, or ``failed.txt``. The
root is the host's, read-only; only that folder is writable.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
import traceback
from pathlib import Path

RESULTS = Path("/run/results")
JOB = "job.toml"
FAILURE = "failed.txt"
_HALT = 0x4321FEDC


def main(folder: str) -> None:
    """Run the folder's job and halt, because the kernel must not lose its first process."""
    try:
        _mount("proc", "/proc", "proc", "")
        _mount("sys", "/sys", "sysfs", "")
        _mount("tmpfs", "/run", "tmpfs", "")
        RESULTS.mkdir()
        _mount("none", str(RESULTS), "hostfs", folder)
        _run()
    except BaseException:  # noqa: BLE001 - this process has no caller
        text = traceback.format_exc()
        sys.stdout.write(text)
        if RESULTS.is_dir():
            (RESULTS / FAILURE).write_text(text, encoding="utf8")
    finally:
        sys.stdout.flush()
        os.sync()
        ctypes.CDLL(None).reboot(_HALT)


def _run() -> None:
    from tcpwin.errors import TcpwinError
    from tcpwin.lab.network import run
    from tcpwin.lab.runner import run_here
    from tcpwin.lab.scenario import read_scenario

    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["HOME"] = os.environ["TMPDIR"] = "/run"
    name, kernel = os.environ["LAB_NAME"], os.environ["LAB_KERNEL"]
    # The first timer after boot fires late, while the clock source is still being chosen.
    time.sleep(0.01)
    run("ip", "link", "set", "lo", "up")
    scenario = read_scenario(name, (RESULTS / JOB).read_text(encoding="utf8"))
    try:
        run_here(scenario, kernel, RESULTS, _tick, halts=scenario.measure.quick)
    except TcpwinError as error:
        (RESULTS / FAILURE).write_text(f"{error}\n", encoding="utf8")


def _tick(elapsed_ns: int) -> None:
    sys.stdout.write(f"@{elapsed_ns}\n")
    sys.stdout.flush()


def _mount(source: str, target: str, kind: str, data: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), 0, data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


if __name__ == "__main__":
    main(sys.argv[1])
