"""maturin's build hooks (PEP 517), after a check that Rust and a C compiler are installed.

maturin is required only once both are found: without them, pip stops within seconds, with one sentence.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

REQUIRES = ["maturin>=1.9,<2"]


def _check_tools(*_: object) -> list[str]:
    """Return the build requirements; exit with a sentence if Rust or the C compiler is missing or too old."""
    manifest = Path(__file__).with_name("Cargo.toml").read_text(encoding="utf8")
    oldest = re.findall(r'^rust-version = "(.+)"', manifest, re.MULTILINE)[0]
    try:
        done = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(_missing(f"Rust {oldest} or newer", "https://rustup.rs")) from None
    found = re.findall(r"\d+\.\d+", done.stdout)[0]
    if [*map(int, found.split("."))] < [*map(int, oldest.split("."))]:
        raise SystemExit(_missing(f"Rust {oldest} or newer instead of {found}", "rustup update, or https://rustup.rs"))
    if os.name == "posix" and shutil.which("cc") is None:
        raise SystemExit(_missing("a C compiler (cc)", "apt install gcc libc6-dev"))
    return REQUIRES


def _missing(what: str, remedy: str) -> str:
    return f"Building tcpwin needs {what}: {remedy}. A wheel needs neither Rust nor a compiler."


def _hook(name: str) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        import maturin

        if name in ("build_wheel", "build_editable"):
            _announce()
        return getattr(maturin, name)(*arguments)

    return call


def _announce() -> None:
    """Say on the terminal what takes so long: pip hides the output of builds."""
    try:
        with open("/dev/tty", "w", encoding="utf8") as terminal:  # noqa: PTH123
            terminal.write("Compiling tcpwin's engine: one to two minutes of CPU time …\n")
    except OSError:
        pass


get_requires_for_build_wheel = get_requires_for_build_editable = get_requires_for_build_sdist = _check_tools
build_wheel, build_editable, build_sdist, prepare_metadata_for_build_wheel, prepare_metadata_for_build_editable = map(
    _hook,
    (
        *("build_wheel", "build_editable", "build_sdist"),
        *("prepare_metadata_for_build_wheel", "prepare_metadata_for_build_editable"),
    ),
)
