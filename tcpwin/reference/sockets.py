"""Measure a transfer without packets, from the samples of its two sockets.

In: the snapshots of a bundle. Out: Measured, for the socket that sent most; values that only packets show are None.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from tcpwin.errors import SnapshotError
from tcpwin.reference.measured import LEAST_BULK_BYTES, Measured, host_facts
from tcpwin.reference.pace import BULK, OSCILLATING, Pace
from tcpwin.units import share_text

if TYPE_CHECKING:
    from tcpwin.hosts import Bundle, Host, SocketSample

LEAST_SPAN_NS = 950_000_000
"""A second, less the time by which samplers are sometimes early."""
_Ends = tuple[str | None, int | None, str | None, int | None]


def measure_sockets(path: str | PathLike[str], *, rate_bps: float | None = None) -> Measured:
    """Measure the transfer of the bundle's socket that sent most, by `ss`, nstat and settings alone.

    Args:
        path: path of the bundle: a folder, .zip or .tar.gz.
        rate_bps: the path's rate, if known.

    Raises:
        SnapshotError: not a bundle, or without samples of a socket that sent data.
    """
    hosts, sockets, label, ends = _read(path)
    sent = sockets[label][ends]
    other = next((name for name, found in sockets.items() if (ends[2:] + ends[:2]) in found and name != label), None)
    receiver = None if other is None else hosts[other]
    pace = _pace(sent)
    first, last = sent[0], sent[-1]
    busy_ns, limited_ns = last.busy_ns or 0, last.rwnd_limited_ns or 0
    is_limited = limited_ns * 2 >= busy_ns > 0
    received = [] if other is None else sockets[other][ends[2:] + ends[:2]]
    waits = [each for each in received if (each.recv_q_bytes or 0) > 0]
    workload, shape = _shape(pace, limited_ns * 10 >= busy_ns > 0, _sent(sent))
    duration_ns = (last.time_ns or 0) - (first.time_ns or 0)
    volume = _sent(sent)
    words = (
        f"limited by {ends[2]}'s receive window ({share_text(limited_ns / busy_ns)} of the busy time, by its kernel)"
    )
    return Measured(
        name=f"{ends[2]}:{ends[3]} ← {ends[0]}:{ends[1]}, by its sockets",
        receiver=str(ends[2]),
        rtt_ns=min((each.minrtt_ns for each in sent if each.minrtt_ns), default=None),
        path_rate_bps=rate_bps,
        goodput_bps=volume * 8e9 / duration_ns if duration_ns > 0 else None,
        best_second_bps=pace.best_bps,
        volume_bytes=volume,
        duration_ns=duration_ns,
        window_max_bytes=max((each.snd_wnd_bytes for each in sent if each.snd_wnd_bytes), default=None),
        workload=workload,
        shape=shape,
        limit="receiver_window" if is_limited else "capture",
        limited_by=words if is_limited else "limited by something that its sockets do not show",
        is_reader_slow=is_limited and len(waits) * 2 >= len(received) > 0,
        window_ns=limited_ns,
        **host_facts(receiver, hosts[label]),
    )


def sender_samples(path: str | PathLike[str]) -> Sequence[SocketSample]:
    """Return the samples of the bundle's socket that sent most, in time order.

    Raises:
        SnapshotError: not a bundle, or without samples of a socket that sent data.
    """
    _, sockets, label, ends = _read(path)
    return sockets[label][ends]


def _read(
    path: str | PathLike[str],
) -> tuple[dict[str, Host], dict[str, dict[_Ends, list[SocketSample]]], str, _Ends]:
    """Return the hosts of a bundle, their sockets, and the socket that sent most."""
    from tcpwin.hosts import Bundle

    with Bundle.open(fspath(path)) as bundle:
        hosts = _hosts(bundle)
        sockets = {label: _sockets(bundle, label) for label in hosts}
    most = max(
        ((_sent(samples), label, ends) for label, found in sockets.items() for ends, samples in found.items()),
        key=lambda each: each[0],
        default=None,
    )
    if most is None or not most[0]:
        raise SnapshotError("no samples of a socket that sent data", fspath(path))
    _, label, ends = most
    return hosts, sockets, label, ends


def _hosts(bundle: Bundle) -> dict[str, Host]:
    """Return the hosts by label, without their sockets."""
    from tcpwin.hosts import Host

    hosts: dict[str, Host] = {}
    for member in bundle.snapshots:
        host = hosts.setdefault(member.label, Host(member.label))
        if member.format == "ss":
            continue
        host.begin(member.name, member.format or "")
        for sample in bundle.snapshot(member):
            host.take(sample, None)
    for host in hosts.values():
        host.settle(())
    return hosts


def _sockets(bundle: Bundle, label: str) -> dict[_Ends, list[SocketSample]]:
    from tcpwin.hosts import SocketSample

    found: dict[_Ends, list[SocketSample]] = {}
    for member in bundle.snapshots:
        if member.label != label or member.format != "ss":
            continue
        for sample in bundle.snapshot(member):
            if isinstance(sample, SocketSample) and sample.state == "ESTAB" and sample.time_ns is not None:
                ends = (sample.local_address, sample.local_port, sample.peer_address, sample.peer_port)
                found.setdefault(ends, []).append(sample)
    return found


def _sent(samples: Sequence[SocketSample]) -> int:
    return max((each.bytes_acked or 0 for each in samples), default=0)


def _pace(samples: Sequence[SocketSample]) -> Pace:
    """Return the rates between samples at least about a second apart, each with its own duration."""
    rates = []
    begin = samples[0]
    for sample in samples[1:]:
        spent_ns = (sample.time_ns or 0) - (begin.time_ns or 0)
        if spent_ns >= LEAST_SPAN_NS:
            rates.append(max(0, (sample.bytes_acked or 0) - (begin.bytes_acked or 0)) * 8e9 / spent_ns)
            begin = sample
    return Pace(tuple(rates))


def _shape(pace: Pace, is_limited: bool, volume: int) -> tuple[str | None, str]:
    if is_limited and pace.oscillates:
        return OSCILLATING, "fast seconds alternate with slow ones, and the window held the sender back in some"
    if volume < LEAST_BULK_BYTES:
        return None, f"only {volume:,} bytes, too few to compare"
    if pace.rates_bps and sum(rate > 0 for rate in pace.rates_bps) * 10 >= 9 * len(pace.rates_bps) and not is_limited:
        return BULK, "a bulk transfer: data in nearly every second"
    return None, "the socket samples resemble no reference workload"
