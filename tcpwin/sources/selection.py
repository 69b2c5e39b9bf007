"""A selection of a source's packets by filter and time span. Packets keep their frame numbers.

In: a filter in libpcap's language, and times as users write them. Out: a source that the engine reads, without the
other packets. The filter is compiled for each link type at its first packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcpwin import _engine
from tcpwin.errors import ArgumentError, FilterError
from tcpwin.sources.libpcap import compile_filter
from tcpwin.sources.moments import Moment, moment_text, read_moment, resolve_moment
from tcpwin.sources.source import Source

MOST_CHARACTERS = 1 << 16
"""Maximum length of a filter."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected packets.

    Attributes:
        filter: an expression in libpcap's language, as for tcpdump; None for all packets.
        start, end: start of the span (inclusive) and end (exclusive); None if unbounded.
    """

    filter: str | None = None
    start: Moment | None = None
    end: Moment | None = None

    def __post_init__(self) -> None:
        if self.filter is not None and len(self.filter) > MOST_CHARACTERS:
            raise FilterError(f"a filter of {len(self.filter):,} characters is too long")
        if self.filter is not None and "\0" in self.filter:
            raise FilterError("a filter cannot contain a zero byte")
        ends = [None if each is None else read_moment(each) for each in (self.start, self.end)]
        if ends[0] is not None and ends[1] is not None and ends[0][0] == ends[1][0] and ends[1][1] <= ends[0][1]:
            raise ArgumentError(f"the span ends ({self.end}) before it begins ({self.start})")

    def __bool__(self) -> bool:
        return (self.filter, self.start, self.end) != (None, None, None)

    def __str__(self) -> str:
        parts = [] if self.filter is None else [f"filter {self.filter!r}"]
        for word, moment in (("from", self.start), ("to", self.end)):
            if moment is not None:
                parts.append(f"{word} {moment_text(moment)}")
        return ", ".join(parts)

    def span_ns(self, first_ns: int) -> tuple[int | None, int | None]:
        """Return the span in nanoseconds since the epoch, for a capture whose first packet has this time."""
        start_ns, end_ns = (None if each is None else resolve_moment(each, first_ns) for each in (self.start, self.end))
        return start_ns, end_ns

    def to_dict(self) -> dict[str, str | None]:
        """Return the form used in documents."""
        start, end = (None if each is None else moment_text(each) for each in (self.start, self.end))
        return {"filter": self.filter, "start": start, "end": end}


class SelectedSource(Source):
    """The selected packets of another source."""

    def __init__(self, source: Source, selection: Selection) -> None:
        self.name = source.name
        self.size_bytes = source.size_bytes
        self.facts = source.facts
        self.selection = selection
        self._source = source
        self._programs: dict[int, Sequence[tuple[int, int, int, int]]] = {}

    def open(self) -> _engine.Selected:
        start, end = (
            None if each is None else read_moment(each) for each in (self.selection.start, self.selection.end)
        )
        compile = None if self.selection.filter is None else self._compile
        return _engine.Selected(self._source.open(), compile=compile, start=start, end=end)

    def digests(self) -> Sequence[str]:
        return self._source.digests()

    def _compile(self, link_type: int) -> Sequence[tuple[int, int, int, int]]:
        if link_type not in self._programs:
            self._programs[link_type] = compile_filter(self.selection.filter or "", link_type)
        return self._programs[link_type]
