"""Kernel settings: `sysctl` output, files in /etc/sysctl.d, and dumps of /proc/sys with `grep` or `tail`.

In: lines. Out: one SettingsSample per stamp, or one for the whole file. A path becomes the dotted name that `sysctl`
prints: dots and slashes are swapped, so eth0.100 is written eth0/100 (sysctl(8), sysctl.d(5)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import SettingsSample

MAX_CHARACTERS = 1 << 24
"""Limit for names and values of one sample. A host with a thousand interfaces uses a quarter of it."""
_ROOT = "/proc/sys/"
_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}[./][^\s=]{1,250}")
_HEADER = re.compile(r"==> (\S+) <==")
_SILENT = re.compile(
    r"(?:sysctl|error|warning|grep|egrep|tail|head|cat): \S.*|\* Applying /\S+ \.\.\.|-[A-Za-z_][\w-]*[./][^\s=]+"
)
"""Lines about unreadable or excluded settings, or about the source of settings."""
_AREAS = ("abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm")
_KNOWN = re.compile(rf"-?(?:{'|'.join(_AREAS)})[./][^\s=]+\s*=|(?:==> )?{_ROOT}(?:{'|'.join(_AREAS)})/\S+")
_SWAP = str.maketrans("./", "/.")


def recognise(head: list[str]) -> int:
    """Score these lines as settings: names in the kernel's areas, with values."""
    filled = known = 0
    for text in head:
        line = text.strip()
        if line and line[0] not in "#;":
            filled += 1
            known += _KNOWN.match(line) is not None or _SILENT.fullmatch(line) is not None
    named = any(_KNOWN.match(text.strip()) for text in head)
    return (90 if known * 2 >= filled else 60) if named else 0


def read(lines: Lines) -> Iterator[SettingsSample]:
    """Yield samples in order: a stamp begins a new one. The last value of a name wins."""
    values: dict[str, str] = {}
    characters = 0
    start: tuple[int | None, int] = (None, 0)
    block = lines.block
    file: str | None = None
    goes_on = False
    for text in lines:
        if lines.block != block:
            block = lines.block
            file = None
            if values:
                yield SettingsSample(start[0], start[1], values)
            values = {}
            characters = 0
        line = text.strip()
        if not line:
            continue
        if header := _HEADER.fullmatch(line):
            file = _name(header[1]) if header[1].startswith(_ROOT) else None
            goes_on = False
            continue
        found = _setting(line, file)
        if found is None:
            if line[0] not in "#;" and not line.startswith("$ ") and not _SILENT.fullmatch(line):
                lines.reject(text)
            continue
        name, value, is_of_file = found
        if is_of_file and goes_on and name in values:
            value = f"{values[name]} {value}"
        goes_on = is_of_file
        characters += len(name) + len(value)
        if characters > MAX_CHARACTERS:
            characters -= len(name) + len(value)
            lines.reject(text)
            continue
        if not values:
            start = (lines.time_ns, lines.number)
        values[name] = value
    if values:
        yield SettingsSample(start[0], start[1], values)


def _setting(line: str, file: str | None) -> tuple[str, str, bool] | None:
    """Return a line's name and value, and whether the line belongs to the file that `tail` named."""
    if line[0] in "#;":
        return (file, " ".join(line.split()), True) if file is not None else None
    if line.startswith(_ROOT):
        # A file system path contains neither a colon nor an equals sign.
        key, separator, value = line.partition("=")
        colon = line.find(":")
        if colon >= 0 and (not separator or colon < len(key)):
            key, separator, value = line.partition(":")
        name = _name(key.strip()) if separator else None
        return None if name is None else (name, " ".join(value.split()), False)
    key, separator, value = line.partition("=")
    name = _name(key.strip().removeprefix("-")) if separator else None
    if name is not None:
        return name, " ".join(value.split()), False
    if file is not None and not _SILENT.fullmatch(line):
        return file, " ".join(line.split()), True
    return None


def _name(key: str) -> str | None:
    """Return the dotted name of a key or a path, or None."""
    name = key.removeprefix(_ROOT)
    if not _NAME.fullmatch(name):
        return None
    first = next(character for character in name if character in "./")
    return name.translate(_SWAP) if first == "/" else name


FORMAT = Format("sysctl", "sysctl: settings of the kernel", recognise, read)
