"""The lines of a snapshot file, with their times.

In: a text file, or its bytes. Out: its lines in order, in constant memory, without the stamps between and before them.
It keeps a bounded list of lines that no reader recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo

from tcpwin.hosts.times import Stamps

KEPT_UNKNOWN = 100
"""Unknown lines kept as text; further ones are only counted."""
KEPT_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line that no reader recognises."""

    number: int
    text: str


@dataclass(slots=True)
class Unknown:
    """Number of unrecognised lines, and the first of them."""

    count: int = 0
    first: list[UnknownLine] = field(default_factory=list)


class Lines:
    """Iterates over the lines.

    Attributes:
        number: number of the current line, from 1.
        time_ns: time of the current line; None if unknown.
        block: number of stamps or separators before the current line; a new one begins a new sample.
        page_size_bytes: the host's page size.
        unknown: the lines passed to `reject`.
    """

    def __init__(self, lines: Iterable[str], *, stamps: Stamps | None = None, page_size_bytes: int = 4096) -> None:
        self._lines = iter(lines)
        self._stamps = stamps or Stamps()
        self.number = 0
        self.time_ns: int | None = None
        self.block = 0
        self.page_size_bytes = page_size_bytes
        self.unknown = Unknown()

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            text = line.rstrip("\r\n")
            stamp = self._stamps.take(text)
            if stamp is None:
                yield text
                continue
            if stamp.is_new_block:
                self.block += 1
                # A missing value is unknown; never carry it over from the previous sample.
                self.time_ns = None
            if stamp.time_ns is not None:
                self.time_ns = stamp.time_ns
            if stamp.rest is not None:
                yield stamp.rest

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of times without one."""
        return self._stamps.zone

    def reject(self, text: str, *, number: int | None = None) -> None:
        """Count an unrecognised line, by default the current one."""
        self.unknown.count += 1
        if len(self.unknown.first) < KEPT_UNKNOWN:
            place = self.number if number is None else number
            self.unknown.first.append(UnknownLine(place, text[:KEPT_CHARACTERS]))
