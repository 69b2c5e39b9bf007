"""What a published result says: the path, the settings, the workload, and its figures.

What is not stated is None or empty; nothing is worked out from other figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcpwin.hosts import Distribution, ThroughputSample


@dataclass(frozen=True, slots=True)
class Publication:
    """Where the figures stand.

    Attributes:
        article, section: as they are headed.
        publisher, published: published as YYYY-MM-DD; None where it is not stated.
    """

    article: str
    section: str
    publisher: str | None = None
    published: str | None = None


@dataclass(frozen=True, slots=True)
class RateRange:
    """The least and the most rate of one loop of a workload; both the same where one figure is given."""

    least_bps: float
    most_bps: float


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency, ``exact``, or ``about`` or ``over`` a value."""

    value_ns: int
    bound: str = "exact"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Calls that took from `least_ns` to below `most_ns`; None for `least_ns` where the histogram does not say."""

    least_ns: int | None
    most_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a reference.

    Attributes:
        reference, name: of the file, and of the run in it.
        workload: oscillating-reader, iperf3, messages, buffer-size, max-send, sftp, autotuning-level, or calculation:
            figures that were not measured.
        rtt_ns, rate_bps: of the path.
        kernel: Linux's version.
        is_patched: whether the kernel had Cloudflare's patch against collapsing large receive queues.
        settings: sysctls by name.
        rmem_max_bytes: the most of tcp_rmem; `adv_win_scale` is tcp_adv_win_scale.
        tcp_mem_max_bytes: the upper bound of tcp_mem.
        window_bytes: the largest receive window that the settings allow, or that was meant.
        window_max_bytes: what it may grow to (Windows).
        window_raw, window_shift: of the header and the window scale option, at the begin.
        memory_ratio: bytes of memory for each byte of data that fill the buffer just when the window is used up.
        sockets: how many there were.
        throughput: by loop of the workload.
        counters: increases by nstat's names.
        latencies: of messages by name, as min and p99.
        max_latency_ns: of tcp_try_rmem_schedule(); `latency_histogram` too.
        distribution, distributed: of a field over the sockets, and the field's name.
        ramp: intervals of iperf3, one after the other.
        verdict: the author's own word.
    """

    reference: str
    name: str
    workload: str
    rtt_ns: int | None = None
    rate_bps: float | None = None
    kernel: str | None = None
    is_patched: bool | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    rmem_max_bytes: int | None = None
    adv_win_scale: int | None = None
    tcp_mem_max_bytes: int | None = None
    window_bytes: int | None = None
    window_max_bytes: int | None = None
    window_raw: int | None = None
    window_shift: int | None = None
    memory_ratio: float | None = None
    sockets: int | None = None
    throughput: tuple[RateRange, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    max_latency_ns: int | None = None
    latency_histogram: tuple[Bucket, ...] = ()
    distributed: str | None = None
    distribution: Distribution | None = None
    ramp: tuple[ThroughputSample, ...] = ()
    verdict: str | None = None

    @property
    def has_figures(self) -> bool:
        """Whether anything was measured, or calculated, that a run can be compared with."""
        return bool(self.throughput or self.counters or self.latencies or self.distribution or self.ramp)


@dataclass(frozen=True, slots=True)
class Reference:
    """Published results that belong together: one file.

    Attributes:
        notes: what the figures leave open, or mean.
    """

    name: str
    title: str
    source: Publication
    notes: tuple[str, ...]
    runs: tuple[Run, ...]

    def run(self, name: str) -> Run:
        """A run by its name.

        Raises:
            KeyError: there is none such.
        """
        for run in self.runs:
            if run.name == name:
                return run
        raise KeyError(name)
