"""The lines of a snapshot file, with the time that each was taken at.

In: a text file, or its bytes. Out: its lines in order, in constant memory, without the stamps between and before
them. It keeps which lines no reader understood, bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo

from tcpwin.hosts.times import Stamps

KEPT_UNKNOWN = 100
"""Unknown lines that are kept as text; more are counted."""
KEPT_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line that no reader knows."""

    number: int
    text: str


@dataclass(slots=True)
class Unknown:
    """Lines that were not understood: how many, and the first of them."""

    count: int = 0
    first: list[UnknownLine] = field(default_factory=list)


class Lines:
    """Lines one after the other.

    Attributes:
        number: of the current line, from 1.
        time_ns: the time that holds for the current line; None where nothing said one.
        block: how many stamps or separators came before the current line: a new one begins a new sample.
        page_size_bytes: of the host.
        unknown: the lines that a reader gave back with `reject`.
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
                # What is not said of a sample is not known: not that of the one before.
                self.time_ns = None
            if stamp.time_ns is not None:
                self.time_ns = stamp.time_ns
            if stamp.rest is not None:
                yield stamp.rest

    @property
    def zone(self) -> tzinfo:
        """Of times that name none."""
        return self._stamps.zone

    def reject(self, text: str, *, number: int | None = None) -> None:
        """Count a line that is not understood; by default the current one."""
        self.unknown.count += 1
        if len(self.unknown.first) < KEPT_UNKNOWN:
            place = self.number if number is None else number
            self.unknown.first.append(UnknownLine(place, text[:KEPT_CHARACTERS]))
