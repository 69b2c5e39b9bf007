"""The real server in Debian's chromium: the figure is drawn, and the security policy stops nothing."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from web.crafted import API
from web.test_process import MakeServer


def test_the_figure_is_drawn_and_the_console_is_silent(
    make_server: MakeServer, tool: Callable[[str], str], tmp_path: Path, capture: bytes
) -> None:
    (tmp_path / "zero.pcap").write_bytes(capture)
    _, address = make_server(tmp_path / "zero.pcap")
    with httpx2.Client(base_url=address) as client:
        while not (found := client.get(f"{API}/captures").json()["captures"]) or found[0]["status"] != "done":
            time.sleep(0.05)
    done = subprocess.run(
        [
            tool("chromium"),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=10000",
            "--enable-logging=stderr",
            "--dump-dom",
            f"{address}/captures/{found[0]['id']}/connections/0",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'data-drawn="true"' in done.stdout
    assert "bytes in flight" in done.stdout
    assert "Share chart" not in done.stdout
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
