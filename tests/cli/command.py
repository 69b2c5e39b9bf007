"""`tcpwin` as a user starts it: a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from live import HANG_S

TCPWIN = Path(sys.executable).with_name("tcpwin")
CAPTURES = Path(__file__).parents[2] / "captures"
KEEP_ALIVE = CAPTURES / "wild" / "keep-alive.pcap"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
MANY_SHORT = CAPTURES / "wild" / "many-short.pcap.gz"
CUT_BLOCK = CAPTURES / "broken" / "cut-block.pcapng"
TEXT = CAPTURES / "broken" / "text.pcap"


def tcpwin(*arguments: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end. Whatever happens, nobody wants to see a traceback."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    command = [TCPWIN, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False, **more)
    assert b"Traceback" not in done.stderr
    assert b"panicked" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done


def refused(*arguments: object, status: int = 3, **more: Any) -> str:
    """Run a command that must fail, and return what it says: one line, unless the usage was wrong."""
    done = tcpwin(*arguments, **more)
    text = done.stderr.decode()
    assert done.returncode == status, text
    if status == 3:
        assert text.startswith("tcpwin: ")
        assert text.count("\n") == 1
        assert text.endswith("\n")
    return text
