"""Some packets of a source: those that a filter takes and those of a span. All keep their frame numbers.

In: a filter in libpcap's language, and moments as users write them. Out: a source that the engine reads, leaving out
what was not asked for. The filter is compiled for each link type when its first packet comes.
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
"""Of a filter: more than anybody writes."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which packets are looked at.

    Attributes:
        filter: an expression in libpcap's language, as tcpdump takes it; None for all packets.
        start, end: of the span: its first moment, and the first after it; None where it is open.
    """

    filter: str | None = None
    start: Moment | None = None
    end: Moment | None = None

    def __post_init__(self) -> None:
        if self.filter is not None and len(self.filter) > MOST_CHARACTERS:
            raise FilterError(f"a filter of {len(self.filter):,} characters is too long")
        if self.filter is not None and "\0" in self.filter:
            raise FilterError("a filter holds no zero byte")
        ends = [None if each is None else read_moment(each) for each in (self.start, self.end)]
        if ends[0] is not None and ends[1] is not None and ends[0][0] == ends[1][0] and ends[1][1] <= ends[0][1]:
            raise ArgumentError(f"the span ends ({self.end}) before it begins ({self.start})")

    def __bool__(self) -> bool:
        return (self.filter, self.start, self.end) != (None, None, None)

    def __str__(self) -> str:
        told = [] if self.filter is None else [f"filter {self.filter!r}"]
        for word, moment in (("from", self.start), ("to", self.end)):
            if moment is not None:
                told.append(f"{word} {moment_text(moment)}")
        return ", ".join(told)

    def span_ns(self, first_ns: int) -> tuple[int | None, int | None]:
        """The span's ends in nanoseconds since the epoch, of a capture whose first packet has this time."""
        start_ns, end_ns = (None if each is None else resolve_moment(each, first_ns) for each in (self.start, self.end))
        return start_ns, end_ns

    def to_dict(self) -> dict[str, str | None]:
        """As it stands in documents."""
        start, end = (None if each is None else moment_text(each) for each in (self.start, self.end))
        return {"filter": self.filter, "start": start, "end": end}


class SelectedSource(Source):
    """Packets of another source, those that are selected."""

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

    def _compile(self, link_type: int) -> Sequence[tuple[int, int, int, int]]:
        if link_type not in self._programs:
            self._programs[link_type] = compile_filter(self.selection.filter or "", link_type)
        return self._programs[link_type]
