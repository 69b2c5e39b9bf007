"""Hosts and their samples as objects of the JSON document.

In: hosts and joined samples. Out: plain dictionaries; unknown values are omitted.
"""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import Any

from tcpwin.hosts.join import JoinedSample
from tcpwin.hosts.load import Host
from tcpwin.hosts.socket import SocketSample

_DEFAULTS = SocketSample()
_NAMES = tuple(each.name for each in fields(SocketSample))


def describe_host(host: Host) -> dict[str, Any]:
    """Describe a host: its files, clock, kernel and settings, and the number of its other samples."""
    clock = None
    if host.clock is not None:
        clock = {**asdict(host.clock), "uncertainty_ns": host.clock.uncertainty_ns}
    return {
        "label": host.label,
        "sides": sorted(host.sides),
        "files": [asdict(file) for file in host.files],
        "clock": clock,
        "sockets": host.sockets,
        "sockets_matched": host.matched,
        "sockets_translated": [asdict(each) for each in host.translated],
        "is_thinned": host.thinned,
        "kernel": None if host.kernel is None else host.kernel.release,
        "settings": None if host.settings is None else dict(host.settings.values),
        "counter_samples": len(host.counters),
        "memory_samples": len(host.memory),
    }


def describe_joined(joined: JoinedSample) -> dict[str, Any]:
    """Describe a joined sample: the kernel's fields, and the packets' next to them."""
    names = ("flight_bytes", "peer_window_bytes", "own_window_bytes", "acked_bytes", "received_bytes", "limits")
    packets = {name: getattr(joined, name) for name in names}
    return {
        "side": joined.side,
        "time_ns": joined.time_ns,
        "sample": describe_sample(joined.sample),
        "cwnd_bytes": joined.cwnd_bytes,
        **{name: None if value is None else asdict(value) for name, value in packets.items()},
        "disagreements": [asdict(each) for each in joined.disagreements],
    }


def describe_sample(sample: SocketSample) -> dict[str, Any]:
    """Describe the known fields of a sample."""
    said = ((name, getattr(sample, name)) for name in _NAMES)
    found = {name: _plain(value) for name, value in said if value != getattr(_DEFAULTS, name)}
    if sample.md5_keys:
        # `ss` prints TCP-MD5 secrets: never copy them into a document.
        found["md5_keys"] = [key.partition("=")[0] for key in sample.md5_keys]
    return found


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
