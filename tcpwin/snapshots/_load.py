"""Snapshots that came with a capture, by host: the sockets of its connections, and all else that the hosts said.

In: paths, bundles or SnapshotFiles. Out: Host, each with its files, and the samples of sockets that a connection of the
capture has. Files are streamed; sockets of other connections are counted and not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tcpwin.snapshots._bundle import Bundle, label_of
from tcpwin.snapshots._clock import ClockOffset
from tcpwin.snapshots._file import SnapshotFile
from tcpwin.snapshots._host import CounterSample, KernelSample, MemorySample, SettingsSample
from tcpwin.snapshots._lines import UnknownLine
from tcpwin.snapshots._match import Match, Matcher, Translated
from tcpwin.snapshots._open import is_bundle
from tcpwin.snapshots._socket import SocketSample

Snapshots: TypeAlias = "str | Path | SnapshotFile | Bundle | tuple[str, str | Path | SnapshotFile]"

KEPT_SAMPLES = 200_000
"""Samples of sockets that are kept for a host; beyond it, every second one of each socket is let go."""
KEPT_OF_HOST = 50_000
"""Samples of counters, memory and the like that are kept for a host."""
KEPT_TRANSLATED = 20
MAX_TIME_NS = 1 << 62
"""In the year 2116: a later stamp is none."""


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A file of snapshots that was read.

    Attributes:
        samples: how many it holds.
        unknown_lines: lines that no reader knows; `first_unknown` are the first of them.
        notes: what was assumed or is missing.
    """

    name: str
    format: str
    samples: int
    unknown_lines: int
    first_unknown: tuple[UnknownLine, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class Host:
    """One host, by what its snapshots say.

    Attributes:
        label: from the names of its files; "" where they say none.
        files: that were read.
        clock: the capture's clock less its own; None where it has no sample of a connection's socket.
        sides: of connections whose sockets it has: ``a``, ``b`` or both.
        sockets: samples of sockets; `matched` of them belong to connections of the capture.
        translated: sockets that resemble a connection but for one address: the first of them.
        thinned: samples of sockets were let go to bound memory.
        kernel, settings: the last said; counters, memory, others: in order of time.
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
    counters: list[CounterSample] = field(default_factory=list)
    memory: list[MemorySample] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    found: dict[Match, list[SocketSample]] = field(default_factory=dict)
    _kept: int = 0
    _limit: int = KEPT_SAMPLES
    _stride: int = 1
    _numbers: dict[Match, int] = field(default_factory=dict)

    def take(self, sample: Any, matcher: Matcher) -> None:
        """Take in one sample of any kind."""
        match sample:
            case SocketSample():
                self._take_socket(sample, matcher)
            case CounterSample():
                _append(self.counters, sample)
            case MemorySample():
                _append(self.memory, sample)
            case SettingsSample():
                before = self.settings.values if self.settings is not None else {}
                self.settings = replace(sample, values={**before, **sample.values})
            case KernelSample():
                self.kernel = sample
            case _:
                _append(self.others, sample)

    def _take_socket(self, sample: SocketSample, matcher: Matcher) -> None:
        self.sockets += 1
        if sample.time_ns is not None and not 0 <= sample.time_ns < MAX_TIME_NS:
            sample = replace(sample, time_ns=None)
        matches = matcher.find(sample)
        if not matches:
            if len(self.translated) < KEPT_TRANSLATED:
                resembling = matcher.find_translated(sample)
                if resembling is not None and resembling not in self.translated:
                    self.translated.append(resembling)
            return
        self.matched += 1
        self.sides.add(matches[0].side)
        # Which epoch of the four-tuple it is, its time tells later.
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
            # Each socket keeps its first sample: many sockets with few samples each leave more.
            self._limit = max(KEPT_SAMPLES, self._kept * 3 // 2)


def _append(samples: list[Any], sample: Any) -> None:
    if len(samples) < KEPT_OF_HOST:
        samples.append(sample)


def load(snapshots: Iterable[Snapshots], matcher: Matcher) -> list[Host]:
    """Read all snapshots, by host.

    Raises:
        SnapshotError: a file of which nothing can be read.
        OSError: a path that cannot be read.
    """
    hosts: dict[str, Host] = {}
    for each in snapshots:
        label = None
        if isinstance(each, tuple):
            label, each = each
        if isinstance(each, Bundle):
            _load_bundle(each, label, hosts, matcher)
        elif isinstance(each, SnapshotFile):
            _load_file(each, label if label is not None else label_of(each.name), hosts, matcher)
        elif is_bundle(each):
            with Bundle.open(each) as bundle:
                _load_bundle(bundle, label, hosts, matcher)
        else:
            file = SnapshotFile(each)
            _load_file(file, label if label is not None else label_of(file.name), hosts, matcher)
    return [hosts[label] for label in sorted(hosts)]


def _load_bundle(bundle: Bundle, label: str | None, hosts: dict[str, Host], matcher: Matcher) -> None:
    for member in bundle.snapshots:
        _load_file(bundle.snapshot(member), member.label if label is None else label, hosts, matcher)


def _load_file(file: SnapshotFile, label: str, hosts: dict[str, Host], matcher: Matcher) -> None:
    host = hosts.setdefault(label, Host(label))
    count = 0
    for sample in file:
        count += 1
        host.take(sample, matcher)
    unknown = file.unknown
    host.files.append(
        SnapshotFacts(file.name, file.format, count, unknown.count, tuple(unknown.first), tuple(sorted(file.notes)))
    )
