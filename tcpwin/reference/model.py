"""Published results: path, settings, workload and figures.

Values that are not stated are None or empty; nothing is derived from other figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tcpwin.hosts import Distribution, ThroughputSample


@dataclass(frozen=True, slots=True)
class Publication:
    """The source of the figures.

    Attributes:
        article, section: their titles.
        publisher, published: date as YYYY-MM-DD; None if not stated.
    """

    article: str
    section: str
    publisher: str | None = None
    published: str | None = None


@dataclass(frozen=True, slots=True)
class RateRange:
    """Minimum and maximum rate of one loop of a workload; equal if only one figure is given."""

    least_bps: float
    most_bps: float


@dataclass(frozen=True, slots=True)
class Latency:
    """A latency, ``exact``, or ``about`` or ``over`` a value."""

    value_ns: int
    bound: str = "exact"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Calls that took from `least_ns` to below `most_ns`; `least_ns` is None if not stated."""

    least_ns: int | None
    most_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a reference.

    Attributes:
        reference, name: names of the file and of the run in it.
        workload: oscillating-reader, iperf3, messages, buffer-size, max-send, sftp, autotuning-level, or calculation:
            figures that were not measured.
        rtt_ns, rate_bps: the path's.
        kernel: Linux's version.
        is_patched: whether the kernel had Cloudflare's patch against collapsing large receive queues.
        settings: sysctls by name.
        rmem_max_bytes: maximum of tcp_rmem; `adv_win_scale` is tcp_adv_win_scale.
        tcp_mem_max_bytes: the upper bound of tcp_mem.
        window_bytes: the largest receive window that the settings allow, or that was intended.
        window_max_bytes: the size it may grow to (Windows).
        window_raw, window_shift: initial header field and window scale option.
        memory_ratio: bytes of memory per byte of data at which the buffer fills exactly with the window.
        sockets: number of sockets.
        throughput: rate by loop of the workload.
        counters: increases by nstat's names.
        latencies: message latencies by name, such as min and p99.
        max_latency_ns: maximum latency of tcp_try_rmem_schedule(), like `latency_histogram`.
        distribution, distributed: a field's distribution over the sockets, and its name.
        ramp: consecutive iperf3 intervals.
        verdict: the author's word.
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
        """Whether there is any measured or calculated figure to compare with."""
        return bool(self.throughput or self.counters or self.latencies or self.distribution or self.ramp)


@dataclass(frozen=True, slots=True)
class Reference:
    """A set of published results, from one file.

    Attributes:
        notes: explanations and gaps of the figures.
    """

    name: str
    title: str
    source: Publication
    notes: tuple[str, ...]
    runs: tuple[Run, ...]

    def run(self, name: str) -> Run:
        """Return a run by name.

        Raises:
            KeyError: unknown run.
        """
        for run in self.runs:
            if run.name == name:
                return run
        raise KeyError(name)
