"""Facts and quality of the capture itself: how far its numbers can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CaptureWarning:
    """Something wrong with a file. All before `byte_offset` (in the uncompressed stream) was read."""

    kind: str
    message: str
    file: str
    byte_offset: int

    def __str__(self) -> str:
        return f"{self.file}: {self.message} (at byte {self.byte_offset})"


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface that the capture describes. `link_type` is a LINKTYPE number; `drops` is pcapng's isb_ifdrop."""

    link_type: int
    snaplen_bytes: int
    name: str | None
    ticks_per_second: int
    drops: int | None
    received: int | None


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One capture file as it was read."""

    file: str
    format: str
    byte_order: str
    compression: tuple[str, ...]
    ticks_per_second: int | None
    packets: int
    packets_skipped: int
    packets_snapped: int
    time_backwards: int
    first_time_ns: int | None
    last_time_ns: int | None
    bytes: int
    bytes_on_disk: int
    interface_drops: int | None
    interfaces: tuple[Interface, ...]
    warnings: tuple[CaptureWarning, ...]
    warnings_omitted: int

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> CaptureFile:
        values = dict(facts)
        values["compression"] = tuple(values["compression"])
        values["interfaces"] = tuple(Interface(**interface) for interface in values["interfaces"])
        values["warnings"] = tuple(CaptureWarning(**warning) for warning in values["warnings"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Capture:
    """Quality of the whole input: sums over its files, and what its frames turned out to be.

    Attributes:
        segments: frames that hold a TCP segment.
        packets_left_out: packets that were not selected, by a filter or a span; in no other count but `packets`.
        span_start_ns, span_end_ns: the span that was looked at: its first moment, and the first after it; None where it
            is open.
        sampled_segments: of these, samples of a flow monitor (sFlow).
        not_tcp: frames without one.
        unread: of these, frames that carry what is not understood and may hide TCP; `unread_kinds` counts the first
            kinds by name (`EtherType 0x88e5`, `PPP protocol 0x00fd`).
        fragments_pending: IP fragments before the one that completed their datagram.
        datagrams_incomplete: fragmented datagrams of which a part is missing; they give no segment.
        quoted_in_icmp: TCP headers quoted in ICMP errors; no segments.
        header_cut: frames cut before the end of the TCP header's 20 fixed bytes.
        malformed: frames whose headers contradict themselves.
        unknown_link: frames of a link type that is not understood; `unknown_link_types` counts them by LINKTYPE.
        capture_duplicates: segments that the capture itself holds twice; in no other count.
        options_cut: segments of which the snapshot length cut off TCP options.
        super_segments: segments longer than the MSS: captured before segmentation or after coalescing (TSO, GRO).
        missed_bytes: payload that was acknowledged though the capture does not hold it.
        connections_without_syn: connections of which neither SYN was captured.
        connections_one_way: connections of which one side was captured, beyond its SYN.
        connections_sampled: connections of which the capture holds samples: no loss and no cause of theirs is sure.
    """

    files: tuple[CaptureFile, ...]
    segments: int
    sampled_segments: int
    not_tcp: int
    unread: int
    unread_kinds: tuple[tuple[str, int], ...]
    fragments_pending: int
    datagrams_incomplete: int
    quoted_in_icmp: int
    header_cut: int
    malformed: int
    unknown_link: int
    unknown_link_types: tuple[tuple[int, int], ...]
    capture_duplicates: int
    options_cut: int
    super_segments: int
    missed_bytes: int
    connections_without_syn: int
    connections_one_way: int
    connections_sampled: int
    packets_left_out: int = 0
    span_start_ns: int | None = None
    span_end_ns: int | None = None

    @classmethod
    def from_engine(cls, facts: Sequence[Mapping[str, Any]], counters: Mapping[str, Any]) -> Capture:
        values = dict(counters)
        values["unknown_link_types"] = tuple((int(link), int(count)) for link, count in values["unknown_link_types"])
        values["unread_kinds"] = tuple((str(kind), int(count)) for kind, count in values["unread_kinds"])
        return cls(files=tuple(CaptureFile.from_facts(entry) for entry in facts), **values)

    @staticmethod
    def warnings_of(facts: Sequence[Mapping[str, Any]]) -> tuple[CaptureWarning, ...]:
        """Only the warnings of the engine's facts."""
        return tuple(warning for entry in facts for warning in CaptureFile.from_facts(entry).warnings)

    @property
    def packets(self) -> int:
        """Packets in all files."""
        return sum(file.packets for file in self.files)

    @property
    def packets_snapped(self) -> int:
        """Packets of which less was captured than was on the wire."""
        return sum(file.packets_snapped for file in self.files)

    @property
    def time_backwards(self) -> int:
        """Packets whose time is before that of the packet before."""
        return sum(file.time_backwards for file in self.files)

    @property
    def interface_drops(self) -> int | None:
        """Packets that the capturing interfaces reported as dropped; None where none reports."""
        known = [file.interface_drops for file in self.files if file.interface_drops is not None]
        return sum(known) if known else None

    @property
    def first_time_ns(self) -> int | None:
        """Time of the earliest packet, or where the span begins."""
        first_ns = min((f.first_time_ns for f in self.files if f.first_time_ns is not None), default=None)
        return first_ns if first_ns is None or self.span_start_ns is None else max(first_ns, self.span_start_ns)

    @property
    def last_time_ns(self) -> int | None:
        """Time of the latest packet, or where the span ends."""
        last_ns = max((f.last_time_ns for f in self.files if f.last_time_ns is not None), default=None)
        return last_ns if last_ns is None or self.span_end_ns is None else min(last_ns, self.span_end_ns)

    @property
    def duration_ns(self) -> int:
        """From the earliest to the latest packet, as far as they were looked at."""
        if self.first_time_ns is None or self.last_time_ns is None:
            return 0
        return max(self.last_time_ns - self.first_time_ns, 0)

    @property
    def warnings(self) -> tuple[CaptureWarning, ...]:
        """Return the warnings on the files, in their order."""
        return tuple(warning for file in self.files for warning in file.warnings)
