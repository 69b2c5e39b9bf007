"""Run `tcpwin` as a process forked from this one: starting Python and its imports costs ten times as much.

The child has separate streams, folder, environment and signals, but shares this interpreter's modules. Tests that
depend on Python's start, its memory, or libraries with threads (polars, pyarrow, duckdb) must start a real process.
"""

from __future__ import annotations

import atexit
import io
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

import rich.console  # noqa: F401 - the child must not import it each time

from tcpwin.cli import main

FORKS = sys.version_info < (3, 12)
"""Later versions warn of a fork in a process that has threads."""


def run(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a `tcpwin` command to its end, with the options of `subprocess.run`."""
    return subprocess.run(command, check=options.pop("check", False), **_forked(command, options))


def start(command: Sequence[Any], **options: Any) -> subprocess.Popen[Any]:
    """Start a `tcpwin` command, with the options of `subprocess.Popen`."""
    return subprocess.Popen(command, **_forked(command, options))


def _forked(command: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    arguments, environment = [os.fsdecode(each) for each in command], options.get("env")
    if not FORKS:
        return {**options}
    return {**options, "preexec_fn": _become(arguments, environment, options.get("preexec_fn"))}


def _become(
    command: list[str], environment: Mapping[str, str] | None, prepare: Callable[[], object] | None
) -> Callable[[], NoReturn]:
    def child() -> NoReturn:
        status = 1
        try:
            if prepare is not None:
                prepare()
            # The parent takes the closing of the error pipe as the start of the program.
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            atexit._clear()
            # As at Python's start.
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(ignored, signal.SIG_IGN)
            warnings.resetwarnings()
            warnings.simplefilter("ignore")
            # Click reads its environment when it is first used.
            sys.modules.pop("webbrowser", None)
            if environment is not None:
                os.environ.clear()
                os.environ.update(environment)
                time.tzset()
            for number, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
                binary = open(number, mode, closefd=False)  # noqa: SIM115 - open until the end
                errors = "backslashreplace" if name == "stderr" else "surrogateescape"
                is_shown = name == "stderr" or os.isatty(number)
                stream = io.TextIOWrapper(binary, "utf-8", errors, line_buffering=is_shown)
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
            sys.argv = command
            # Processes started by the command must not import pytest's main module.
            sys.modules["__main__"] = ModuleType("__main__")
            status = _status_of_main()
        finally:
            os._exit(status)

    return child


def _status_of_main() -> int:
    """Run the command as a console script does, and return the status that Python exits with."""
    try:
        main()
        status = 0
    except SystemExit as leave:
        if isinstance(leave.code, str):
            print(leave.code, file=sys.stderr)
        status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001 - Python shows any
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        if not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}: {error}", file=sys.stderr)
        status = 120
    return status
