"""Alert bundles: the packets before and after, and the host's sockets, counters and settings at that time.

In: a folder. Out: one subfolder per bundle, complete or absent, which every command reads; and `strikes.jsonl` with
one line per alert. Only the newest bundles are kept.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tcpwin.errors import OutputError
from tcpwin.output import append_whole
from tcpwin.watch.alerts import Alert

STRIKES = "strikes.jsonl"
SCHEMA = "tcpwin/strike/1"
_PART = ".part"
_MARK = "packets.pcap"


class Bundles:
    """The bundles in a folder.

    Raises:
        OutputError: it cannot be created.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for left in folder.glob(f"*{_PART}"):
                # Left by a recorder that ended while writing one.
                shutil.rmtree(left)
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from None

    def write(self, strikes: Sequence[Alert], capture: bytes, snapshots: Sequence[Path], time_ns: int) -> Path:
        """Write a bundle, and its lines.

        Raises:
            OutputError: the disk is full, or the folder is not writable; nothing of the bundle remains.
        """
        final = self._name(strikes[0].finding.name, time_ns)
        part = final.with_name(final.name + _PART)
        try:
            part.mkdir()
            (part / _MARK).write_bytes(capture)
            for path in snapshots:
                if path.exists():
                    shutil.copyfile(path, part / path.name)
            part.rename(final)
            lines = [
                json.dumps({"schema": SCHEMA, "time_ns": time_ns, "bundle": final.name, **strike.document()}) + "\n"
                for strike in strikes
            ]
            append_whole(self._folder / STRIKES, "".join(lines))
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise OutputError(f"{final}: {error.strerror or error}") from None
        self._let_go()
        return final

    def _name(self, rule: str, time_ns: int) -> Path:
        moment = datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
        path, number = self._folder / f"{moment}-{rule}", 1
        while path.exists():
            number += 1
            path = self._folder / f"{moment}-{rule}-{number}"
        return path

    def _let_go(self) -> None:
        own = sorted(path.parent for path in self._folder.glob(f"*/{_MARK}") if not path.parent.name.endswith(_PART))
        for old in own[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
