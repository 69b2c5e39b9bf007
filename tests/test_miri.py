"""Sequence numbers and ranges of them, interpreted by Miri, which ends at whatever Rust leaves undefined."""

import os
import shutil
import subprocess

import pytest
from reference import ROOT

ASKED = ("sequence", "recovery::ranges")
"""Tests of the engine that open no files and do not compress, which Miri cannot do or takes hours for."""


@pytest.mark.nightly
def test_sequence_numbers_and_ranges_under_miri() -> None:
    if (
        shutil.which("cargo") is None
        or subprocess.run(["cargo", "+nightly", "miri", "--version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("a nightly Rust toolchain with Miri is not installed")
    # Drawn cases cost a thousand times of what they do without it.
    environment = {**os.environ, "PROPTEST_CASES": "4", "MIRIFLAGS": "-Zmiri-disable-isolation"}
    command = ["cargo", "+nightly", "miri", "test", "-q", "--locked", "--no-default-features", "--lib", "--"]
    done = subprocess.run(
        [*command, *ASKED],
        cwd=ROOT / "tcpwin" / "engine",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok. 6 passed" in done.stdout, done.stdout
