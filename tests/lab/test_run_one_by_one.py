"""Several runs at once: a run without a result does not end the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.command import tcpwin

from tcpwin.lab import kernel_path


@pytest.fixture(autouse=True)
def kernel_that_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Return a program that ends at once, like a kernel with too little memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_path().parent.mkdir()
    kernel_path().write_text("#!/bin/sh\nexit 3\n")
    kernel_path().chmod(0o755)


def test_the_others_are_run_when_one_gives_no_result(tmp_path: Path) -> None:
    done = tcpwin("lab", "run", "idle-restart-on", "idle-restart-off", "-o", tmp_path / "runs")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.count("ended without a result") == 2
    assert "idle-restart-on: " in said
    assert "idle-restart-off: " in said


def test_one_run_alone_without_a_result_is_an_error(tmp_path: Path) -> None:
    done = tcpwin("lab", "run", "idle-restart-on", "--kernel", "stock", "-o", tmp_path / "runs")
    assert done.returncode == 3
    assert "ended without a result" in done.stderr.decode()
