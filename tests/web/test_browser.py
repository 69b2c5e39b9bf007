"""The real server in Debian's chromium: the figure is drawn, and the security policy stops nothing."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SERVER = Path(sys.executable).parent / "tcpwin-web"


@pytest.fixture
def address(captures: Path) -> Iterator[str]:
    command = [SERVER, captures, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    break
            else:
                pytest.fail(f"the server did not start: {said}")
        finally:
            server.terminate()


def test_the_figure_is_drawn_and_the_console_is_silent(
    address: str, tool: Callable[[str], str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            tool("chromium"),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}",
            "--virtual-time-budget=10000",
            "--enable-logging=stderr",
            "--dump-dom",
            f"{address}/captures/zero-window",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert 'data-drawn="true"' in done.stdout
    assert "bytes in flight" in done.stdout
    assert "Share chart" not in done.stdout
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
