"""Distribution of a field over many sockets.

In: samples, or numbers. Out: Distribution: minimum, maximum, mean, sum and percentiles by nearest rank, of the last
sample of each socket. `tcpwin/docs/hosts/many-sockets.md` explains the method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import fsum, isnan
from typing import overload

from tcpwin.errors import ArgumentError
from tcpwin.hosts.socket import NUMBERS, ZERO_IS_LEFT_OUT, SocketSample

KEPT_SOCKETS = 200_000
"""Sockets of one file that are distinguished; further ones are only counted."""

_NAMES_NOT_AMOUNTS = frozenset(
    (
        "time_ns",
        "line",
        "index",
        "local_port",
        "peer_port",
        "uid",
        "inode",
        "cookie",
        "fwmark",
        "tos",
        "tclass",
        "class_id",
    )
)
FIELDS = (*NUMBERS, "cwnd_bytes")
"""Fields that have a distribution; `cwnd_bytes` is `cwnd_segments` × `mss_bytes`."""
_OF_LISTENERS = frozenset(
    (
        *_NAMES_NOT_AMOUNTS,
        "accept_queue",
        "accept_queue_max",
        "rmem_alloc_bytes",
        "rcvbuf_bytes",
        "wmem_alloc_bytes",
        "sndbuf_bytes",
        "fwd_alloc_bytes",
        "wmem_queued_bytes",
        "optmem_bytes",
        "backlog_bytes",
        "drops",
    )
)
"""Fields that apply to a listening socket: it has no windows, and `unacked` is its accept queue
(net/ipv4/tcp.c, tcp_get_info)."""
AMOUNTS = tuple(name for name in FIELDS if name not in _NAMES_NOT_AMOUNTS)
"""The fields that are amounts, as opposed to ports, inode numbers and other identifiers."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of one field, in the field's unit.

    Percentiles use the nearest rank: of n sorted values, `p85` is the one at position 85 × n ÷ 100, rounded up. So each
    is the value of a real socket, and at least half of all values are not above `p50`. The "Check Server TCP Memory"
    tool does the same (github.com/parthmistry/network-stack-tuning-examples, StatsUtil.percentile).

    Attributes:
        count: number of values, without sockets that lack the field.
    """

    count: int
    min: float
    max: float
    mean: float
    sum: float
    p25: float
    p50: float
    p75: float
    p85: float
    p95: float
    p99: float


@overload
def distribution(samples: Iterable[SocketSample], field: str, *, last_only: bool = True) -> Distribution | None: ...


@overload
def distribution(samples: Iterable[float]) -> Distribution | None: ...


def distribution(
    samples: Iterable[SocketSample] | Iterable[float], field: str | None = None, *, last_only: bool = True
) -> Distribution | None:
    """Measure the distribution of a field over sockets, or of numbers.

    Args:
        samples: socket samples, or numbers; NaN is ignored.
        field: one of `FIELDS`.
        last_only: use only the last sample of each socket.

    Returns:
        The distribution, or None without any value.

    Raises:
        ArgumentError: unknown field.
    """
    if field is None:
        return _measure([each for each in samples if isinstance(each, int | float)])
    sockets = _sockets(samples)
    return _measure(_values(last_samples(sockets) if last_only else sockets, field))


def distributions(samples: Iterable[SocketSample], *, last_only: bool = True) -> dict[str, Distribution]:
    """Measure the distribution of every known amount, by name."""
    sockets = last_samples(samples) if last_only else _sockets(samples)
    found = ((name, _measure(_values(sockets, name))) for name in AMOUNTS)
    return {name: each for name, each in found if each is not None}


def last_samples(samples: Iterable[SocketSample]) -> list[SocketSample]:
    """Return the last sample of each socket, in order of first appearance, at most `KEPT_SOCKETS`."""
    last = LastSamples()
    for sample in _sockets(samples):
        last.take(sample)
    return list(last)


class LastSamples:
    """The last sample of each socket in a file.

    A socket is identified by its cookie (`ss -e`), else by protocol, addresses and ports. Listening sockets that share
    an address (SO_REUSEPORT) are counted individually within one run of `ss`.

    Attributes:
        left_out: number of samples of sockets beyond the first `KEPT_SOCKETS`.
    """

    def __init__(self, most: int = KEPT_SOCKETS) -> None:
        self.left_out = 0
        self._most = most
        self._last: dict[tuple[object, ...], SocketSample] = {}
        self._index = -1
        self._listening: dict[tuple[object, ...], int] = {}

    def take(self, sample: SocketSample) -> None:
        """Add one sample; samples arrive in time order."""
        key = self._key(sample)
        if key in self._last or len(self._last) < self._most:
            self._last[key] = sample
        else:
            self.left_out += 1

    def __iter__(self) -> Iterator[SocketSample]:
        return iter(self._last.values())

    def __len__(self) -> int:
        return len(self._last)

    def _key(self, sample: SocketSample) -> tuple[object, ...]:
        if sample.cookie is not None:
            return (sample.cookie,)
        key = (
            sample.netid,
            sample.local_address,
            sample.local_port,
            sample.local_service,
            sample.local_scope,
            sample.peer_address,
            sample.peer_port,
            sample.peer_service,
            sample.peer_scope,
        )
        if sample.state != "LISTEN":
            return key
        if sample.index != self._index:
            self._index = sample.index
            self._listening.clear()
        if len(self._listening) < self._most:
            self._listening[key] = self._listening.get(key, 0) + 1
        return (*key, self._listening.get(key, 0))


def _sockets(samples: Iterable[object]) -> list[SocketSample]:
    """Return the socket samples: a file may also contain counters and memory."""
    return [each for each in samples if isinstance(each, SocketSample)]


def number_of(sample: SocketSample, field: str, *, fill_zeros: bool = False) -> float | None:
    """Return a field of a sample, or None if unknown or not applicable to a listening socket.

    Args:
        field: one of `FIELDS`.
        fill_zeros: return 0 for values that `ss` omits when 0.
    """
    if sample.state == "LISTEN" and field not in _OF_LISTENERS:
        return None
    value: float | None = sample.count(field) if fill_zeros else getattr(sample, field)
    return value


def _values(samples: list[SocketSample], field: str) -> list[float]:
    if field not in FIELDS:
        raise ArgumentError(f"a socket has no numeric field {field}")
    said = [value for sample in samples if (value := number_of(sample, field)) is not None]
    # A field that no socket reports may be zero in all, or unknown to this kernel.
    if said and len(said) < len(samples) and field in ZERO_IS_LEFT_OUT:
        return [value for sample in samples if (value := number_of(sample, field, fill_zeros=True)) is not None]
    return said


def _measure(values: list[float]) -> Distribution | None:
    if any(isinstance(value, float) for value in values):
        values = [value for value in values if not isnan(value)]
        total: float = fsum(values)
    else:
        total = sum(values)
    if not values:
        return None
    values.sort()
    count = len(values)

    def rank(percent: int) -> float:
        return values[-(-percent * count // 100) - 1]

    return Distribution(
        count=count,
        min=values[0],
        max=values[-1],
        mean=total / count,
        sum=total,
        p25=rank(25),
        p50=rank(50),
        p75=rank(75),
        p85=rank(85),
        p95=rank(95),
        p99=rank(99),
    )
