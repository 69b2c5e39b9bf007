"""Snapshots that accompany a capture, by host: the sockets of its connections, and all other host data.

In: paths, bundles or SnapshotFiles. Out: Host, each with its files and the socket samples of the capture's connections.
Files are streamed; sockets of other connections are only counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from tcpwin.errors import SnapshotError
from tcpwin.hosts.bundle import Bundle, label_of
from tcpwin.hosts.bundle_capture import is_bundle
from tcpwin.hosts.clock import ClockOffset
from tcpwin.hosts.counter_sources import CounterSource, counter_sources
from tcpwin.hosts.file import SnapshotFile
from tcpwin.hosts.lines import UnknownLine
from tcpwin.hosts.match import Match, Matcher, Translated
from tcpwin.hosts.sample_store import Kept
from tcpwin.hosts.samples import CounterSample, KernelSample, MemorySample, SettingsSample
from tcpwin.hosts.socket import SocketSample

Snapshots: TypeAlias = "str | Path | SnapshotFile | Bundle | tuple[str, str | Path | SnapshotFile]"

KEPT_SAMPLES = 200_000
"""Socket samples kept per host; beyond this, every second one of each socket is dropped."""
KEPT_OF_HOST = 50_000
"""Samples of counters, memory and each other kind kept per host; beyond this, every second one is dropped."""
KEPT_TRANSLATED = 20
NAMED_UNREAD = 10
"""Unread members of a bundle to name."""
LAB_ALWAYS = frozenset({"scenario.toml", "meta.json"})
LAB_BESIDE = frozenset({"tc.txt", "log_sender.jsonl", "log_receiver.jsonl"})
"""Other files of a run in tcpwin's lab, which need no warning."""
MAX_TIME_NS = 1 << 62
"""A time in the year 2116; later stamps are invalid."""


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """Facts about a snapshot file that was read.

    Attributes:
        samples: number of samples.
        unknown_lines: number of unrecognised lines; `first_unknown` are the first of them.
        notes: assumptions and missing data.
    """

    name: str
    format: str
    samples: int
    unknown_lines: int
    first_unknown: tuple[UnknownLine, ...]
    notes: tuple[str, ...]


@dataclass(slots=True, repr=False)
class Host:
    """One host, according to its snapshots.

    Attributes:
        label: name from its files' names, or "".
        files: the files read.
        clock: the capture's clock minus the host's; None without a sample of a connection's socket.
        sides: sides of the connections whose sockets it has: ``a``, ``b`` or both.
        sockets: number of socket samples; `matched` of them belong to connections of the capture.
        translated: the first sockets that match a connection except for one address or one end.
        thinned: whether samples were dropped to bound memory.
        kernel, settings: the most recent ones, by time if known.
        disputed: settings that differ between two files without times, with the files' names. It is unknown whether the
            files belong to one host, or which value applies, so `settings` has none of them.
        counters: samples of the source that covers the most time (see `counter_sources`), in time order.
        counter_sources: all sources, that one first. Two may have counted the same events: never add them.
        memory, others: samples in time order; those without a time come last.
        notes: sentences about samples that could not be ordered.
    """

    label: str
    files: list[SnapshotFacts] = field(default_factory=list)
    clock: ClockOffset | None = None
    sides: set[str] = field(default_factory=set)
    sockets: int = 0
    matched: int = 0
    translated: list[Translated] = field(default_factory=list)
    thinned: bool = False
    kernel: KernelSample | None = None
    settings: SettingsSample | None = None
    disputed: dict[str, tuple[str, str]] = field(default_factory=dict)
    counters: list[CounterSample] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    found: dict[Match, list[SocketSample]] = field(default_factory=dict)
    counter_sources: list[CounterSource] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _counted: list[tuple[str, str, Kept]] = field(default_factory=list)
    _counters_kept: int = 0
    _counters_limit: int = 2 * KEPT_OF_HOST
    _memory: Kept = field(default_factory=Kept)
    _others: dict[type, Kept] = field(default_factory=dict)
    _said: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    _kept: int = 0
    _limit: int = KEPT_SAMPLES
    _stride: int = 1
    _numbers: dict[Match, int] = field(default_factory=dict)
    _resembling: dict[Match, Translated | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return a summary, because all samples would fill a notebook."""
        linux = "" if self.kernel is None or self.kernel.release is None else f", Linux {self.kernel.release}"
        read = f"{len(self.files)} files, {self.matched} of {self.sockets} samples of sockets are of the capture"
        return f"<Host {self.label or 'without a name'}: {read}{linux}>"

    def begin(self, name: str, format: str) -> None:
        """Start reading a file of the host."""
        if self._counted:
            before = self._counted[-1][2]
            self._counters_kept += len(before)
            if not len(before):
                self._counted.pop()
        if self._counters_kept > self._counters_limit:
            for _, _, kept in self._counted:
                kept.thin()
            self._counters_kept = sum(len(kept) for _, _, kept in self._counted)
            # Each file keeps at least two, so many files with few samples each may keep more.
            self._counters_limit = max(2 * KEPT_OF_HOST, self._counters_kept * 3 // 2)
        self._counted.append((name, format, Kept()))

    def take(self, sample: Any, matcher: Matcher | None) -> None:
        """Add one sample of any kind from the current file; without a matcher, ignore sockets."""
        match sample:
            case SocketSample():
                if matcher is not None:
                    self._take_socket(sample, matcher)
            case CounterSample():
                self._counted[-1][2].append(sample, KEPT_OF_HOST)
            case MemorySample():
                self._memory.append(sample, KEPT_OF_HOST)
            case SettingsSample():
                self._take_settings(sample)
            case KernelSample():
                if self.kernel is None or _is_later(sample.time_ns, self.kernel.time_ns):
                    self.kernel = sample
            case _:
                self._others.setdefault(type(sample), Kept()).append(sample, KEPT_OF_HOST)

    def settle(self, taken: Collection[Match]) -> None:
        """Sort everything by time, after all files of all hosts have been read.

        Args:
            taken: connection ends whose sockets some host has.
        """
        for match, resembling in self._resembling.items():
            if resembling is not None and match not in taken and len(self.translated) < KEPT_TRANSLATED:
                self.translated.append(resembling)
        self._resembling.clear()
        for samples in self.found.values():
            samples.sort(key=_order)
        self.memory = sorted(self._memory.samples, key=_order)
        self.others = sorted((each for kept in self._others.values() for each in kept.samples), key=_order)
        self.counter_sources = counter_sources([(name, form, kept.samples) for name, form, kept in self._counted])
        self.counters = self.counter_sources[0].samples if self.counter_sources else []
        self.notes = [note for source in self.counter_sources for note in source.notes]
        self._settle_settings()
        others = (self._memory, *self._others.values(), *(kept for _, _, kept in self._counted))
        self.thinned = self.thinned or any(kept.thinned for kept in others)

    def _take_settings(self, sample: SettingsSample) -> None:
        values = dict(self.settings.values) if self.settings is not None else {}
        file = self._counted[-1][0]
        for name, value in sample.values.items():
            said_ns, said_by = self._said.get(name, (None, file))
            if values.get(name, value) != value and said_by != file and None in (said_ns, sample.time_ns):
                self.disputed.setdefault(name, (said_by, file))
            if name not in values or _is_later(sample.time_ns, said_ns):
                values[name] = value
                self._said[name] = sample.time_ns, file
        is_last = self.settings is None or _is_later(sample.time_ns, self.settings.time_ns)
        self.settings = replace(sample if is_last or self.settings is None else self.settings, values=values)

    def _settle_settings(self) -> None:
        if self.settings is None or not self.disputed:
            return
        values = {name: value for name, value in self.settings.values.items() if name not in self.disputed}
        self.settings = replace(self.settings, values=values)
        for files in sorted(set(self.disputed.values())):
            names = sorted(name for name, each in self.disputed.items() if each == files)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.notes.append(
                f"{files[0]} and {files[1]} have different values of {names[0]}{more} and do not name their hosts: "
                "none is used; name their hosts, as client=FILE"
            )

    def _take_socket(self, sample: SocketSample, matcher: Matcher) -> None:
        self.sockets += 1
        if sample.time_ns is not None and not 0 <= sample.time_ns < MAX_TIME_NS:
            sample = replace(sample, time_ns=None)
        matches = matcher.find(sample)
        if not matches:
            self._take_stranger(sample, matcher)
            return
        self.matched += 1
        self.sides.add(matches[0].side)
        # Its time will decide which use of the four-tuple it belongs to.
        number = self._numbers.get(matches[0], 0)
        self._numbers[matches[0]] = number + 1
        if number % self._stride:
            return
        self.found.setdefault(matches[0], []).append(sample)
        self._kept += 1
        if self._kept > self._limit:
            self.thinned = True
            self._stride *= 2
            self.found = {match: samples[::2] for match, samples in self.found.items()}
            self._kept = sum(len(samples) for samples in self.found.values())
            # Each socket keeps its first sample, so many sockets with few samples each may keep more.
            self._limit = max(KEPT_SAMPLES, self._kept * 3 // 2)

    def _take_stranger(self, sample: SocketSample, matcher: Matcher) -> None:
        if len(self.translated) < KEPT_TRANSLATED:
            resembling = matcher.find_translated(sample)
            if resembling is not None:
                if resembling not in self.translated:
                    self.translated.append(resembling)
                return
        found = matcher.find_other_end(sample)
        if found is not None:
            match, resembling = found
            # With several sockets of the same peer it is unknown which one matches.
            if self._resembling.setdefault(match, resembling) != resembling:
                self._resembling[match] = None


def _is_later(time_ns: int | None, before_ns: int | None) -> bool:
    """Whether a value read later is also newer; values with a time take precedence over those without."""
    if time_ns is None or before_ns is None:
        return before_ns is None
    return time_ns >= before_ns


def _order(sample: Any) -> tuple[bool, int]:
    return sample.time_ns is None, sample.time_ns or 0


def load(snapshots: Iterable[Snapshots], matcher: Matcher, *, notes: list[str] | None = None) -> list[Host]:
    """Read all snapshots, by host.

    Args:
        notes: receives sentences about unread parts of files and bundles, and samples that could not be ordered.

    Raises:
        SnapshotError: nothing in a file can be read. A file that ends in an error is read up to it.
        OSError: a path that cannot be read.
    """
    hosts: dict[str, Host] = {}
    told: list[str] = []
    for each in snapshots:
        label = None
        if isinstance(each, tuple):
            label, each = each
        if isinstance(each, Bundle):
            told += _load_bundle(each, label, hosts, matcher)
        elif isinstance(each, SnapshotFile):
            told += _load_file(each, label if label is not None else label_of(each.name), hosts, matcher)
        elif is_bundle(each):
            with Bundle.open(each) as bundle:
                told += _load_bundle(bundle, label, hosts, matcher)
        else:
            file = SnapshotFile(each)
            told += _load_file(file, label if label is not None else label_of(file.name), hosts, matcher)
    found = [hosts[label] for label in sorted(hosts)]
    taken = {match for host in found for match in host.found}
    for host in found:
        host.settle(taken)
        told += host.notes
    if notes is not None:
        notes += told
    return found


def _load_bundle(bundle: Bundle, label: str | None, hosts: dict[str, Host], matcher: Matcher) -> list[str]:
    told = []
    for member in bundle.snapshots:
        try:
            file = bundle.snapshot(member)
        except SnapshotError as error:
            told.append(f"{bundle.name}: {member.name} was not read: {error.message}")
            continue
        told += _load_file(file, member.label if label is None else label, hosts, matcher)
    return [*told, *not_read(bundle)]


def not_read(bundle: Bundle) -> list[str]:
    """Return sentences about unread parts of a bundle: data after damage, and members of unknown kind."""
    return [*sorted(f"{bundle.name}: {note}" for note in bundle.notes), *_unread(bundle)]


def _unread(bundle: Bundle) -> list[str]:
    """Return one sentence about members that are neither captures nor snapshots, if any."""
    unread = [member for member in bundle.members if member.kind == "unknown"]
    if {PurePosixPath(member.name).name for member in unread} >= LAB_ALWAYS:
        unread = [member for member in unread if PurePosixPath(member.name).name not in LAB_ALWAYS | LAB_BESIDE]
    if not unread:
        return []
    # The brackets in a reason list the available formats.
    reasons = [(member.reason or "unknown").partition(" (")[0] for member in unread[:NAMED_UNREAD]]
    named = ", ".join(f"{member.name} ({reason})" for member, reason in zip(unread, reasons, strict=False))
    more = ", …" if len(unread) > NAMED_UNREAD else ""
    what = "1 file of the bundle was" if len(unread) == 1 else f"{len(unread):,} files of the bundle were"
    return [f"{bundle.name}: {what} not read: {named}{more}"]


def _load_file(file: SnapshotFile, label: str, hosts: dict[str, Host], matcher: Matcher) -> list[str]:
    """Read a file as far as possible, and return a sentence about the error that ended it."""
    host = hosts.setdefault(label, Host(label))
    host.begin(file.name, file.format)
    count = 0
    told = []
    try:
        for sample in file:
            count += 1
            host.take(sample, matcher)
    except SnapshotError as error:
        told.append(f"{file.name} was read only up to sample {count:,}: {error.message}")
    unknown = file.unknown
    host.files.append(
        SnapshotFacts(file.name, file.format, count, unknown.count, tuple(unknown.first), tuple(sorted(file.notes)))
    )
    return told
