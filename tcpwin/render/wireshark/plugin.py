"""The plugin for Wireshark, and its lookup of a capture's index by the time of the first packet.

Wireshark does not pass file names to plugins. A file in the user's cache, named after that time, therefore contains the
path of each index.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tcpwin.output import open_whole

ENDING = ".tcpwin"
"""Suffix of an index, added to the whole name of its capture."""
MOST_KNOWN = 1000
"""Maximum number of indexes that the cache lists; the oldest are dropped."""
_START = "from tcpwin.cli import main; main()"


def default_folder() -> Path:
    """Return the folder where Wireshark and tshark look for a user's Lua plugins."""
    if os.name == "nt":
        return Path(os.environ.get("APPDATA", str(Path.home()))) / "Wireshark" / "plugins"
    return Path.home() / ".local" / "lib" / "wireshark" / "plugins"


def plugin_text() -> str:
    """Return the plugin, set up to start this Python's tcpwin and to look for indexes in this user's cache."""
    words = [sys.executable, "-P", "-c", _START]
    command = subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
    text = Path(__file__).with_name("tcpwin.lua").read_text(encoding="utf8")
    return text.replace("@COMMAND@", _escaped(command)).replace("@KNOWN@", _escaped(_known_folder().as_posix()))


def make_known(index: Path, first_time_ns: int) -> None:
    """Let the plugin find an index for the capture whose first packet has this time.

    Raises:
        OSError: the cache cannot be written.
    """
    folder = _known_folder()
    folder.mkdir(parents=True, exist_ok=True)
    seconds, nanoseconds = divmod(first_time_ns, 1_000_000_000)
    with open_whole(folder / f"{seconds}-{nanoseconds:09}", errors="surrogateescape") as file:
        file.write(f"{index.absolute()}\n")
    written = sorted(folder.glob("[0-9]*-*"), key=lambda path: path.stat().st_mtime_ns)
    for path in written[:-MOST_KNOWN]:
        path.unlink(missing_ok=True)


def _known_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tcpwin" / "wireshark"


def _escaped(text: str) -> str:
    """Escape text for a Lua string in quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
