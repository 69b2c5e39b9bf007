"""The lab's kernel as a process: boots it, runs one scenario inside, and collects the results.

In: a scenario, a Linux series. Out: the folder that `run_here` filled inside. Works for any user: the kernel's root is
this host's, read-only, and only the folder of results is writable. Time inside is virtual and advances only while
everything inside sleeps, so rates and delays are exact however slow or busy this host is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tcpwin.errors import TcpwinError
from tcpwin.lab.first_process import FAILURE, JOB
from tcpwin.lab.kernel_build import DEFAULT_SERIES, kernel_path
from tcpwin.lab.kernel_build import cache as cache_folder
from tcpwin.lab.runner import TRUTH
from tcpwin.lab.scenario import Scenario
from tcpwin.lab.uninterrupted import signals_held

START_NS = 1_767_225_600 * 10**9
"""Start of each run by its virtual clock: 2026-01-01 00:00 UTC."""
_LAST_LINES = 5
_LIBRARY = Path(__file__).parents[2]
_INTERPRETER = ("PYTHONHASHSEED=0",)
_NO_MODULES = "/run/pycache"
"""A pycache that does not exist inside: this host's compiled modules would shift the run by microseconds."""


class UmlError(TcpwinError):
    """A run in the lab's kernel without a result."""


def run_in_uml(scenario: Scenario, kernel: str, series: str, out: Path, tick: Callable[[int], None]) -> dict[str, Any]:
    """Run a scenario into the empty folder `out` and return its truth. `tick` is called with virtual time."""
    check_kernel(series)
    command = _command(scenario, kernel, kernel_path(series), out)
    spaced = [word for word in command if any(letter.isspace() for letter in word)]
    if spaced:
        raise UmlError(f"a kernel's command line takes no path with a space in it: {spaced[0]}")
    (out / JOB).write_text(scenario.text, encoding="utf8")
    said, returncode = _boot(command, tick)
    (out / JOB).unlink()
    if (out / FAILURE).exists():
        text = (out / FAILURE).read_text(encoding="utf8").strip()
        raise UmlError(f"{scenario.name}: {text.splitlines()[-1]}")
    if not (out / TRUTH).exists():
        last = "; ".join(line for line in said[-_LAST_LINES:] if line)
        raise UmlError(f"{scenario.name}: the lab's kernel ended without a result ({last or returncode})")
    truth: dict[str, Any] = json.loads((out / TRUTH).read_text(encoding="utf8"))
    return truth


def _boot(command: list[str], tick: Callable[[int], None]) -> tuple[list[str], int]:
    """Run the kernel until it halts, and return its output lines and status."""
    said: list[str] = []
    with signals_held() as signals:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # glibc registers rseq in this static program; its children inherit it and crash.
            env={**os.environ, "GLIBC_TUNABLES": "glibc.pthread.rseq=0"},
            start_new_session=True,
        )
        assert process.stdout is not None
        keeper = _end_with_this_process(process.pid)
        try:
            with signals.may_leave():
                for line in process.stdout:
                    if line.startswith("@") and line[1:].strip().isdigit():
                        tick(int(line[1:]))
                    else:
                        said.append(line.strip())
                process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
            keeper.kill()
            keeper.communicate()
    return said, process.returncode


def _end_with_this_process(group: int) -> subprocess.Popen[bytes]:
    """Make a kernel's processes end if this one is killed; otherwise they would run for hours."""
    # Its read returns when the other end of the pipe closes, however this process ends.
    words = 'read -r _; kill -s KILL -- "-$1"'
    return subprocess.Popen(["sh", "-c", words, "sh", str(group)], stdin=subprocess.PIPE, start_new_session=True)


def check_kernel(series: str = DEFAULT_SERIES) -> None:
    """Raise an error if the kernel's program is missing."""
    if kernel_path(series).is_file():
        return
    which, option = ("", "") if series == DEFAULT_SERIES else (f" {series}", f" --kernel {series}")
    raise UmlError(f"the lab's kernel{which} is not built yet: `tcpwin lab build{option}` does it once")


def _command(scenario: Scenario, kernel: str, linux: Path, out: Path) -> list[str]:
    modules = _NO_MODULES
    if scenario.measure.quick:
        modules = str(_compiled())
    return [
        # Otherwise this host's address space layout would decide how much memory the kernel inside sees.
        *("setarch", "-R", str(linux), f"mem={scenario.hosts.memory_mib}M", f"uml_dir={out}/"),
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=fd:0,fd:1"),
        *("time-travel=inf-cpu", f"time-travel-start={START_NS}", f"lab_seed={scenario.seed}"),
        # Use the same tcpwin inside, wherever it is installed here.
        *(
            *_INTERPRETER,
            f"PYTHONPYCACHEPREFIX={modules}",
            f"PYTHONPATH={_LIBRARY}",
            f"LAB_NAME={scenario.name}",
            f"LAB_KERNEL={kernel}",
        ),
        *(f"init={sys.executable}", "--", "-m", "tcpwin.lab.first_process", str(out)),
    ]


@cache
def _compiled() -> Path:
    """Return a folder with all modules of a run compiled, so that every run finds the same ones."""
    folder = cache_folder() / "modules"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "PYTHONPATH": str(_LIBRARY)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = "import tcpwin.lab.first_process, tcpwin.lab.runner, tcpwin.lab.workload as w; w.workloads()"
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True)
    return folder
