"""From nothing to the first answer: how long a wheel takes, and how much CPU time the README's first line.

With an empty home and no cache; both print their times (`pytest -m nightly -s tests/test_first_minute.py`).
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CAPTURE = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
# Other tests run at the same time, so the clock says little: half a minute of CPU leaves the other half for downloads.
WHEEL_CPU_S, CHECKOUT_CPU_S = 30, 100
# Python and what it starts, without Rust or a compiler.
SYSTEM = ("python3", "env", "sh")

RUST = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}
"""Where Rust and the sources of its packages are: not in the empty home."""

pytestmark = pytest.mark.nightly


def environment(home: Path, path: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return {**kept, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "MATURIN_NO_INSTALL_RUST": "1"}


def measured(run: Callable[[], "subprocess.CompletedProcess[str]"]) -> tuple[float, float, str]:
    """Return the elapsed and the CPU seconds of a process with all that it starts, and its output."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = run()
    elapsed, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return elapsed, cpu, done.stdout


def test_a_wheel_answers_within_a_minute(tmp_path: Path) -> None:
    wheels, programs = tmp_path / "wheels", tmp_path / "programs"
    build = [sys.executable, "-m", "maturin", "build", "--profile", "editable", "--out", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = wheels.iterdir()
    programs.mkdir()
    for name in SYSTEM:
        (programs / name).symlink_to(Path(shutil.which(name, path="/usr/bin:/bin") or name).resolve())
    venv = tmp_path / "venv"
    line = f"python3 -m venv {venv} && {venv}/bin/pip install -q {wheel} && {venv}/bin/tcpwin analyze {CAPTURE}"
    line += f" && {venv}/bin/tcpwin report --filter tcp {CAPTURE} -o {tmp_path}/report.html"
    elapsed, cpu, answer = measured(
        lambda: subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            env=environment(tmp_path, str(programs)),
            text=True,
            capture_output=True,
            check=False,
        )
    )
    print(f"\nfrom a wheel to the first answer and a report: {elapsed:.1f} s, {cpu:.1f} s of CPU time")
    assert "Limited by a slow reader" in answer
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert cpu <= WHEEL_CPU_S


def test_the_readmes_first_line_needs_little_cpu_time(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", ROOT, checkout], check=True)
    found = re.search(
        r"^python3 -m venv .* && \.venv/bin/tcpwin serve --open$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert found is not None
    cargo = {name: os.environ.get(name, str(Path.home() / folder)) for name, folder in RUST.items()}
    elapsed, cpu, answer = measured(
        lambda: subprocess.run(
            ["bash", "-c", found[0].rpartition(" && ")[0]],
            cwd=checkout,
            env={**environment(tmp_path, os.environ["PATH"]), **cargo},
            text=True,
            capture_output=True,
            check=False,
        )
    )
    print(f"\nthe README's first line: {elapsed:.1f} s, {cpu:.1f} s of CPU time")
    assert "Limited by a slow reader" in answer
    assert cpu <= CHECKOUT_CPU_S
