"""A host's kernel: output of `uname`, /proc/version, `getconf PAGESIZE`, CONFIG_HZ, `hostnamectl`.

In: lines of any of these, together or alone. Out: one KernelSample per kernel. `getconf CLK_TCK` is always 100 on Linux
and independent of CONFIG_HZ, so a bare 100 is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tcpwin.hosts.format import Format
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.samples import KernelSample

# Not an IPv4 address; releases had four numbers only before 3.0.
_RELEASE = r"(?!(?!2\.6\.)\d+(?:\.\d+){3}(?:\s|$))\d{1,2}\.\d{1,4}(?:\.\d|[+-])[\w.+~-]{0,100}"
_HOST = r"(?=[A-Za-z0-9.-]{0,253}[A-Za-z])[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_ALL = re.compile(rf"Linux ({_HOST}) ({_RELEASE})(?: .*)?")
_NAMED = re.compile(rf"Linux(?: version)? ({_RELEASE})(?: .*)?")
_BARE = re.compile(rf"({_RELEASE})(?: (?:\w+|#\d.*))?")
_PAGE = re.compile(r"(?:PAGE_?SIZE\s*[ =:]\s*)?(\d{4,7})")
_TICKS = re.compile(r"CONFIG_HZ=(\d{2,5})")
_CONFIG = re.compile(r"(?:# )?CONFIG_(?!HZ=)\w+(?:=\S+| is not set)")
_LABELLED = re.compile(r"([A-Z][A-Za-z ]{2,30}): (.*)")
_MACHINES = re.compile(
    r"Linux|GNU/Linux|x86_64|aarch64|i[3-6]86|armv\d\w?|ppc64|ppc64le|s390x|riscv64|mips|mips64|loongarch64|unknown"
)
_LABELS = frozenset(
    (
        "Pretty hostname",
        "Transient hostname",
        "Icon name",
        "Chassis",
        "Deployment",
        "Location",
        "Machine ID",
        "Boot ID",
        "Product UUID",
        "AF_VSOCK CID",
        "Virtualization",
        "Operating System",
        "CPE OS Name",
        "OS Support End",
        "OS Support Expired",
        "OS Support Remaining",
        "Architecture",
        "Hardware Vendor",
        "Hardware Model",
        "Hardware Serial",
        "Hardware SKU",
        "Hardware Version",
        "Firmware Version",
        "Firmware Date",
        "Firmware Age",
    )
)
"""Other labels that `hostnamectl` prints (systemd, src/hostname/hostnamectl.c)."""


def recognise(head: list[str]) -> int:
    """Score these lines as naming a kernel: more than half belong, and one is a release."""
    filled = [text.strip() for text in head if text.strip()]
    found = [_fields(line) for line in filled]
    if not any(fields and "release" in fields for fields in found):
        return 0
    # Any word may be a host's name, but a host has only one.
    names = sum(fields is not None and fields.keys() == {"hostname"} for fields in found)
    strange = sum(fields is None for fields in found) + max(0, names - 1)
    if strange * 2 >= len(filled):
        return 0
    return 80 if any(line.startswith(("Linux ", "Kernel: Linux ")) for line in filled) else 60


_FIELDS = ("release", "hostname", "page", "ticks")


@dataclass(slots=True)
class _Found:
    time_ns: int | None = None
    line: int = 0
    block: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    lines: list[tuple[int, str]] = field(default_factory=list)


def read(lines: Lines) -> Iterator[KernelSample]:
    """Yield samples in order: another release, or the same after a stamp, begins a new one."""
    found = _Found()
    for text in lines:
        line = text.strip()
        fields = _fields(line) if line else {}
        if fields is None:
            lines.reject(text)
            continue
        if not fields:
            continue
        release = fields.get("release")
        known = found.fields.get("release")
        if known is not None and release is not None and (release != known or lines.block != found.block):
            yield from _samples(found, lines)
            found = _Found()
        if any(found.fields.get(name, value) != value for name, value in fields.items()):
            lines.reject(text)
            continue
        if not found.fields:
            found.line = lines.number
        if release is not None or found.time_ns is None:
            found.time_ns = lines.time_ns
        if release is not None:
            found.block = lines.block
        found.fields.update(fields)
        if len(found.lines) < len(_FIELDS):
            found.lines.append((lines.number, text))
    yield from _samples(found, lines)


def _samples(found: _Found, lines: Lines) -> Iterator[KernelSample]:
    fields = found.fields
    if "release" not in fields:
        for number, text in found.lines:
            lines.reject(text, number=number)
        return
    yield KernelSample(
        time_ns=found.time_ns,
        line=found.line,
        release=fields["release"],
        hostname=fields.get("hostname"),
        page_size_bytes=int(fields["page"]) if "page" in fields else None,
        ticks_per_second=int(fields["ticks"]) if "ticks" in fields else None,
    )


def _fields(line: str) -> dict[str, str] | None:
    """Return a line's fields; empty if the line is known but irrelevant; None if unknown."""
    if line.startswith(("$ ", "#")) or _MACHINES.fullmatch(line):
        return {}
    if match := _TICKS.fullmatch(line):
        return {"ticks": match[1]}
    if _CONFIG.fullmatch(line):
        return {}
    if (match := _PAGE.fullmatch(line)) and _is_page(int(match[1])):
        return {"page": match[1]}
    if match := _NAMED.fullmatch(line) or _BARE.fullmatch(line):
        return {"release": match[1]}
    if match := _ALL.fullmatch(line):
        return {"hostname": match[1], "release": match[2]}
    if match := _LABELLED.fullmatch(line):
        return _labelled(match[1], match[2].strip())
    return {"hostname": line} if re.fullmatch(_HOST, line) else None


def _labelled(label: str, value: str) -> dict[str, str] | None:
    if label == "Static hostname":
        return {"hostname": value} if re.fullmatch(_HOST, value) else {}
    if label == "Kernel":
        match = _NAMED.fullmatch(value)
        return None if match is None else {"release": match[1]}
    return {} if label in _LABELS else None


def _is_page(number: int) -> bool:
    return 4096 <= number <= 1 << 20 and number & (number - 1) == 0


FORMAT = Format("uname", "uname, /proc/version, getconf PAGESIZE: the kernel of a host", recognise, read)
