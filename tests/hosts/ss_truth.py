"""Ground truth for `ss` lines: text as printed by a version of iproute2, and every field, read by hand."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpwin.hosts import SocketSample, Unknown
from tcpwin.hosts.formats.ss import read
from tcpwin.hosts.lines import Lines

TRUTH = Path(__file__).parent / "truth" / "ss"


@dataclass(frozen=True)
class Case:
    """Text, its sockets as plain values, and the number of lines that are not understood."""

    name: str
    text: str
    sockets: list[dict[str, Any]]
    rejected: int


def cases() -> list[Case]:
    """Return every case of every file."""
    return [
        Case(f"{path.stem}: {case['name']}", case["text"], case["sockets"], case.get("rejected", 0))
        for path in sorted(TRUTH.glob("*.toml"))
        for case in tomllib.loads(path.read_text(encoding="utf8"))["case"]
    ]


def read_text(text: str) -> tuple[list[SocketSample], Unknown]:
    """Read text as `ss`; return the samples and the lines that were not understood."""
    return read_lines(text.split("\n"))


def read_lines(text: Iterable[str]) -> tuple[list[SocketSample], Unknown]:
    """Read lines as `ss`."""
    lines = Lines(text)
    return list(read(lines)), lines.unknown


def plain(sample: SocketSample) -> dict[str, Any]:
    """Return every field with a value, as TOML values."""
    found = {}
    for field in dataclasses.fields(sample):
        value = getattr(sample, field.name)
        default = {} if field.name == "extra" else field.default
        # 0 == False: the type distinguishes a count of zero from a missing value.
        if value != default or type(value) is not type(default):
            found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: each for name, each in dataclasses.asdict(value).items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
