"""References from their files: TOML in the sources' own units, one file each, named as the reference.

Out: References in base units: nanoseconds, bytes, bits per second. Unknown keys in a file are an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from tcpwin.hosts import Distribution, SnapshotFile, ThroughputSample
from tcpwin.reference.model import Bucket, Latency, Publication, RateRange, Reference, Run

_MS = 1_000_000
_MEGABIT = 1_000_000
_PLAIN = frozenset(
    (
        *("name", "workload", "kernel", "is_patched", "adv_win_scale", "window_bytes", "window_raw", "window_shift"),
        *("memory_ratio", "sockets", "verdict"),
    )
)
_SCALED = {
    "rtt_ms": ("rtt_ns", _MS),
    "rate_mbps": ("rate_bps", _MEGABIT),
    "rmem_max_mib": ("rmem_max_bytes", 1 << 20),
    "tcp_mem_max_gb": ("tcp_mem_max_bytes", 1 << 30),
    "window_mib": ("window_bytes", 1 << 20),
    "window_max_mb": ("window_max_bytes", 1 << 20),
    "max_latency_us": ("max_latency_ns", 1_000),
}
"""Keys of the files, with the field and the units of each. For memory, "GB" and "MB" are powers of 1024."""


@cache
def references() -> Mapping[str, Reference]:
    """Return all references by name, sorted."""
    folder = files("tcpwin.reference").joinpath("data")
    names = sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))
    return MappingProxyType({name: _read(name, folder.joinpath(f"{name}.toml").read_text("utf8")) for name in names})


def reference(name: str) -> Reference:
    """Return a reference by name.

    Raises:
        KeyError: unknown reference.
    """
    return references()[name]


def _read(name: str, text: str) -> Reference:
    data = tomllib.loads(text)
    shared = data.get("all", {})
    return Reference(
        name=name,
        title=data["title"],
        source=Publication(**data["source"]),
        notes=tuple(data.get("notes", ())),
        runs=tuple(_run(name, {**shared, **each}) for each in data["runs"]),
    )


def _run(reference: str, data: dict[str, Any]) -> Run:
    values: dict[str, Any] = {"reference": reference}
    for key, value in data.items():
        if key in _PLAIN:
            values[key] = value
        elif key in _SCALED:
            name, factor = _SCALED[key]
            values[name] = _scaled(value, factor)
        else:
            values.update(_READERS[key](value))
    return Run(**values)


def _scaled(value: float, factor: int) -> int:
    return round(value * factor)


def _mapping(name: str) -> Any:
    return lambda value: {name: MappingProxyType(dict(value))}


def _distribution(value: dict[str, Any]) -> dict[str, Any]:
    # Derived from mean and sum: the article does not state the number of sockets.
    count = round(value["sum"] / value["mean"])
    measured = {each.name: value[each.name] for each in fields(Distribution) if each.name != "count"}
    return {"distributed": value["field"], "distribution": Distribution(count=count, **measured)}


def _ramp(text: str) -> tuple[ThroughputSample, ...]:
    return tuple(SnapshotFile(text.encode(), name="iperf3", format="iperf3"))


_READERS: dict[str, Any] = {
    "settings": _mapping("settings"),
    "counters": _mapping("counters"),
    "throughput_mbps": lambda loops: {
        "throughput": tuple(RateRange(*(_scaled(each, _MEGABIT) for each in loop)) for loop in loops)
    },
    "latencies_ms": lambda said: {
        "latencies": MappingProxyType(
            {
                name: Latency(_scaled(each["value"], _MS), **{key: each[key] for key in each if key != "value"})
                for name, each in said.items()
            }
        )
    },
    "latency_histogram_ms": lambda buckets: {
        "latency_histogram": tuple(
            Bucket(_scaled(each["from"], _MS) if "from" in each else None, _scaled(each["below"], _MS), each["count"])
            for each in buckets
        )
    },
    "distribution": _distribution,
    "iperf3": lambda text: {"ramp": _ramp(text)},
}
