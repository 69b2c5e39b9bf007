"""A run's folder as one file: a .zip that `tcpwin analyze` reads.

In: the folder. Out: the bundle; equal files give equal bytes: fixed order, fixed times, no names of this host. Data
that depends on the host (its CPU time) is stored next to the bundle, not in it.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
import zlib
from pathlib import Path
from typing import Any

from tcpwin.lab.runner import TRUTH
from tcpwin.output import open_whole

SCENARIO = "scenario.toml"
_HOST = "host-"
_WHEN = (2026, 1, 1, 0, 0, 0)
_LEVEL = 6
_READABLE = 0o644 << 16
_UNIX = 3


def write_bundle(folder: Path, text: str, path: Path) -> None:
    """Pack a run's folder and its scenario's text."""
    name = path.stem
    with open_whole(path, is_binary=True) as out, zipfile.ZipFile(out, "w") as bundle:
        _add(bundle, f"{name}/{SCENARIO}", text.encode())
        for file in sorted(folder.iterdir(), key=lambda each: (each.name != TRUTH, each.name)):
            if file.name.startswith(_HOST) or not file.is_file():
                continue
            if file.suffix == ".pcap":
                _add_capture(bundle, f"{name}/{file.name}.gz", file)
            else:
                _add(bundle, f"{name}/{file.name}", file.read_bytes())


def write_host_cost(folder: Path, path: Path) -> None:
    """Write the histogram of this host's CPU time in tcp_try_rmem_schedule(), if the kernel counted it."""
    for file in folder.glob(f"{_HOST}*"):
        with open_whole(path, is_binary=True) as out:
            out.write(file.read_bytes())


def read_bundle(path: Path) -> tuple[str, dict[str, Any]] | None:
    """Return the scenario's text and the truth in a bundle, or None if missing or unreadable."""
    try:
        with zipfile.ZipFile(path) as bundle:
            text = bundle.read(f"{path.stem}/{SCENARIO}").decode()
            truth: dict[str, Any] = json.loads(bundle.read(f"{path.stem}/{TRUTH}"))
    except (OSError, EOFError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    return text, truth


def _add(bundle: zipfile.ZipFile, name: str, data: bytes) -> None:
    bundle.writestr(_entry(name), data, zipfile.ZIP_DEFLATED, _LEVEL)


def _add_capture(bundle: zipfile.ZipFile, name: str, file: Path) -> None:
    """Compress a capture: tcpwin reads compressed members, and the archive's compression would add nothing."""
    with (
        bundle.open(_entry(name), "w", force_zip64=file.stat().st_size > 1 << 31) as member,
        gzip.GzipFile("", "wb", _LEVEL, io.BufferedWriter(member), mtime=0) as packed,
        file.open("rb") as packets,
    ):
        shutil.copyfileobj(packets, packed, 1 << 20)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.create_system = _UNIX
    entry.external_attr = _READABLE
    return entry
