"""Run the tests of sequence numbers and ranges in Miri, which stops at undefined behaviour."""

import os
import shutil
import subprocess

import pytest
from reference import ROOT

ASKED = ("sequence", "recovery::ranges")
"""Engine tests that open no files and do not compress, which Miri cannot do or takes hours for."""


@pytest.mark.nightly
def test_sequence_numbers_and_ranges_under_miri() -> None:
    if (
        shutil.which("cargo") is None
        or subprocess.run(["cargo", "+nightly", "miri", "--version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("a nightly Rust toolchain with Miri is not installed")
    # Property tests would take a thousand times as long.
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
