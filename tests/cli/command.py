"""Run `tcpwin` like a user, through the same `main`."""

import io
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import forked
from live import HANG_S

from tcpwin.cli import main

TCPWIN = Path(sys.executable).with_name("tcpwin")
CAPTURES = Path(__file__).parents[2] / "captures"
KEEP_ALIVE = CAPTURES / "wild" / "keep-alive.pcap"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
MANY_SHORT = CAPTURES / "wild" / "many-short.pcap.gz"
CUT_BLOCK = CAPTURES / "broken" / "cut-block.pcapng"
TEXT = CAPTURES / "broken" / "text.pcap"


STARTUP = ("LANG", "LC_ALL", "PYTHONPATH", "PYTHONIOENCODING", "PYTHONUNBUFFERED")
"""Variables read by Python and the loader before any module."""


def tcpwin(*arguments: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, in this process, or in a forked one if it needs more than input.

    A separate Python starts if the environment affects its start (`PYTHON*`, the locale). Fails if the output has a
    traceback.
    """
    command = [str(TCPWIN), *map(str, arguments)]
    if more.keys() <= {"input"}:
        done = _run_here(command, more.get("input", b""))
    else:
        if "input" not in more:
            more.setdefault("stdin", subprocess.DEVNULL)
        environment = more.get("env") or os.environ
        is_own = any(environment.get(name) != os.environ.get(name) for name in STARTUP)
        run = subprocess.run if is_own else forked.run
        done = run(command, capture_output=True, timeout=HANG_S, check=False, **more)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert b"panicked" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done


def _run_here(command: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    out, err = io.BytesIO(), io.BytesIO()
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(given), "utf-8", "surrogateescape"),
        "stdout": io.TextIOWrapper(out, "utf-8", "strict"),
        "stderr": io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True),
    }
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with ExitStack() as stack:
        for name, stream in streams.items():
            stack.enter_context(patch.object(sys, name, stream))
        for number, handler in handlers.items():
            stack.callback(signal.signal, number, handler)
        try:
            main(command[1:])
            status = 0
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        streams["stdout"].flush()
        return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


def refused(*arguments: object, status: int = 3, **more: Any) -> str:
    """Run a command that must fail, and return its message: one line, except for wrong usage."""
    done = tcpwin(*arguments, **more)
    text = done.stderr.decode()
    assert done.returncode == status, text
    if status == 3:
        assert text.startswith("tcpwin: ")
        assert text.count("\n") == 1
        assert text.endswith("\n")
    return text
