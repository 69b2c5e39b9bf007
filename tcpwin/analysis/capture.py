"""Facts and quality of the capture itself: how far its numbers can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CaptureWarning:
    """A problem in a capture file. Everything before `byte_offset` (in the uncompressed stream) was read."""

    kind: str
    message: str
    file: str
    byte_offset: int

    def __str__(self) -> str:
        return f"{self.file}: {self.message} (at byte {self.byte_offset})"


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface described by the capture. `link_type` is a LINKTYPE number; `drops` is pcapng's isb_ifdrop."""

    link_type: int
    snaplen_bytes: int
    name: str | None
    ticks_per_second: int
    drops: int | None
    received: int | None


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """Facts about one capture file."""

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
    """Quality of the whole input: sums over its files, and the number of frames of each kind.

    Attributes:
        segments: frames that contain a TCP segment.
        packets_left_out: packets excluded by a filter or a time span; counted in `packets` and nowhere else.
        span_start_ns, span_end_ns: the selected time span, without its end; None where it is unbounded.
        sampled_segments: segments that are samples of a flow monitor (sFlow).
        not_tcp: frames without a TCP segment.
        unread: frames outside `segments` whose protocol tcpwin does not parse, so they may contain TCP; `unread_kinds`
            counts the first kinds by name (`EtherType 0x88e5`, `PPP protocol 0x00fd`).
        fragments_pending: IP fragments other than the one that completed their datagram.
        datagrams_incomplete: fragmented datagrams with missing parts, which yield no segment.
        quoted_in_icmp: TCP headers quoted in ICMP errors; not counted as segments.
        header_cut: frames cut before the end of the TCP header's 20 fixed bytes.
        malformed: frames whose headers contradict themselves.
        unknown_link: frames with an unsupported link type; `unknown_link_types` counts them by LINKTYPE.
        capture_duplicates: segments that the capture contains twice; not included in any other count.
        options_cut: segments whose TCP options were truncated by the snapshot length.
        super_segments: segments longer than the MSS: captured before segmentation or after coalescing (TSO, GRO).
        missed_bytes: payload that was acknowledged but is missing from the capture.
        connections_without_syn: connections without a captured SYN.
        connections_one_way: connections with only one side captured, except for a SYN of the other.
        connections_sampled: connections of which only samples were captured, so losses and causes are uncertain.
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
        """Return the warnings in the engine's facts."""
        return tuple(warning for entry in facts for warning in CaptureFile.from_facts(entry).warnings)

    @property
    def packets(self) -> int:
        """Number of packets in all files."""
        return sum(file.packets for file in self.files)

    @property
    def packets_snapped(self) -> int:
        """Number of packets truncated by the snapshot length."""
        return sum(file.packets_snapped for file in self.files)

    @property
    def time_backwards(self) -> int:
        """Number of packets whose time is before the preceding packet's."""
        return sum(file.time_backwards for file in self.files)

    @property
    def interface_drops(self) -> int | None:
        """Packets that the capturing interfaces reported as dropped; None if no interface reports drops."""
        known = [file.interface_drops for file in self.files if file.interface_drops is not None]
        return sum(known) if known else None

    @property
    def first_time_ns(self) -> int | None:
        """Time of the earliest packet, or the start of the selected span."""
        first_ns = min((f.first_time_ns for f in self.files if f.first_time_ns is not None), default=None)
        return first_ns if first_ns is None or self.span_start_ns is None else max(first_ns, self.span_start_ns)

    @property
    def last_time_ns(self) -> int | None:
        """Time of the latest packet, or the end of the selected span."""
        last_ns = max((f.last_time_ns for f in self.files if f.last_time_ns is not None), default=None)
        return last_ns if last_ns is None or self.span_end_ns is None else min(last_ns, self.span_end_ns)

    @property
    def duration_ns(self) -> int:
        """Time from the earliest to the latest packet, within the selected span."""
        if self.first_time_ns is None or self.last_time_ns is None:
            return 0
        return max(self.last_time_ns - self.first_time_ns, 0)

    @property
    def warnings(self) -> tuple[CaptureWarning, ...]:
        """Return the warnings of all files, in order."""
        return tuple(warning for file in self.files for warning in file.warnings)
