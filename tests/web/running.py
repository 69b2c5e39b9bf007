"""The real server as a process of its own, on a port that is free."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

MakeServer = Callable[..., tuple[subprocess.Popen[str], str]]


def start_server(
    stack: ExitStack, data: Path, *arguments: Any, niceness: int = 0, **environment: str
) -> tuple[subprocess.Popen[str], str]:
    """Start it with these arguments and variables; returns its process and its address. It ends with the stack."""
    program = Path(sys.executable).parent / "tcpwin-web"
    nice = ["nice", "-n", str(niceness)] if niceness else []
    server = stack.enter_context(
        subprocess.Popen(
            [*nice, program, *arguments, "--port", "0", "--data", data, "--log-json"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
    )
    stack.callback(server.terminate)
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line
        if found := re.search(r"http://[\d.]+:\d+", line):
            # What it says later must not fill the pipe.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found[0]
    pytest.fail(f"the server did not start: {said}")
