"""Pasted text: quoted in a mail (``> ``), commented out (``# ``), or wrapped for transport (quoted-printable).

In: the lines of a file, after its first lines have been inspected. Out: the lines as printed by the tool, with their
original numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_JOINED_CHARACTERS = 1 << 20
_BREAK_AT = 60
"""Mailers break lines at the 76th character (RFC 2045 section 6.7), or slightly earlier at an escape."""
_LONGEST = 76
_QUOTED = re.compile(r"(?:> ?)+")
_COMMENTED = re.compile(r"# |#$")
_ESCAPE = re.compile(r"=([0-9A-F]{2})")


@dataclass(frozen=True, slots=True)
class Quoting:
    """How the lines of a file were modified.

    Attributes:
        mark: prefix of lines, or None.
        is_broken: whether long lines are wrapped and characters escaped, as in quoted-printable.
    """

    mark: re.Pattern[str] | None = None
    is_broken: bool = False


def find_quoting(head: Sequence[str]) -> Quoting:
    """Detect from the first lines whether the file was quoted, commented out or sent as quoted-printable."""
    lines = [line.rstrip("\r\n") for line in head]
    is_broken = any(_is_soft_break(line) for line in lines) and max(map(len, lines)) <= _LONGEST
    filled = [line for line in (_joined(lines) if is_broken else lines) if line.strip()]
    quoted = sum(1 for line in filled if line.startswith(">"))
    if len(filled) > 1 and quoted * 3 >= len(filled) * 2:
        return Quoting(_QUOTED, is_broken)
    # A comment among other lines is a remark or a time; a file is commented out completely or not at all.
    if len(filled) > 1 and all(_COMMENTED.match(line) for line in filled):
        return Quoting(_COMMENTED, is_broken)
    return Quoting(None, is_broken)


def unquoted(lines: Iterable[str], quoting: Quoting) -> Iterator[str]:
    """Yield the original lines."""
    whole = _joined(lines) if quoting.is_broken else iter(lines)
    mark = quoting.mark
    if mark is None:
        return whole
    return (line[match.end() :] if (match := mark.match(line)) else line for line in whole)


def _is_soft_break(line: str) -> bool:
    return line.endswith("=") and len(line) >= _BREAK_AT


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Join broken lines, followed by empty ones to keep the line numbers."""
    parts: list[str] = []
    for line in lines:
        text = line.rstrip("\r\n")
        if text.endswith("=") and sum(map(len, parts)) < MAX_JOINED_CHARACTERS:
            parts.append(text[:-1])
            continue
        yield _unescaped("".join([*parts, text])) + "\n"
        yield from ["\n"] * len(parts)
        parts = []
    if parts:
        yield _unescaped("".join(parts)) + "\n"


def _unescaped(text: str) -> str:
    if "=" not in text:
        return text
    data = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    # Non-ASCII characters are escaped UTF-8 bytes.
    try:
        return data.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return data
