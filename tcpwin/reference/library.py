"""The library of the lab's runs, as shipped: transfers over a grid of paths, each with what limited it.

In: `library.jsonl`, which `tcpwin lab library` writes. Out: LabRuns in base units. Each was judged by tcpwin from the
capture at its sender, and agrees with what its scenario restricts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate, repeat
from types import MappingProxyType
from typing import Any

from tcpwin.paths import PAYLOAD_SHARE
from tcpwin.reference.run_trace import Trace

LIBRARY = "library"
"""Name before the slash of a run of the library: ``library/window-200ms-1.5mbps``."""
FULL = "full"
"""Family of the runs with room for everything."""
BRIEF = "brief"
"""Family of the same runs with less data, of which slow start is a large part."""
START = "start"
"""Family of the runs that end in slow start."""
MEMORY = "memory"
"""Family of the runs of which each has a twin with the other kernel."""
_MEGABIT = 1e6
_MS = 1_000_000
_US = 1_000


@dataclass(frozen=True, slots=True)
class LabRun:
    """One run of the library.

    Attributes:
        name, family: ``window-200ms-1.5mbps``, which is its scenario's name too, and ``window``.
        rtt_ns, path_rate_bps: the path's round trip without queues, and the rate of its slowest link.
        queue_bytes, loss_share, policer_bps: its queue, random loss of data and policer; None without one.
        algorithm: the sender's congestion control.
        rmem_max_bytes, wmem_max_bytes, adv_win_scale: the hosts' settings; None for the kernel's own scale.
        writer_bps, reader_bps: the pace of a slow application.
        volume_bytes, duration_ns: size and duration.
        kernel, is_patched: Linux's version, and whether it does not collapse large receive queues.
        seeds: how many times it ran with other random numbers; `goodput_low_bps` and `goodput_high_bps` are the
            slowest and the fastest of these, and all other figures are of the median.
        goodput_bps: goodput.
        limit, second_limit, share, cost_ns, confidence: its verdict, see `tcpwin.limits.Verdict`.
        counters: increases of the hosts' counters that moved.
        trace: receive window, flight and acknowledged bytes as in the capture at the sender.
    """

    name: str
    family: str
    rtt_ns: int
    path_rate_bps: float
    queue_bytes: int | None
    loss_share: float | None
    policer_bps: float | None
    algorithm: str
    rmem_max_bytes: int
    wmem_max_bytes: int
    adv_win_scale: int | None
    writer_bps: float | None
    reader_bps: float | None
    volume_bytes: int
    duration_ns: int
    kernel: str
    is_patched: bool
    seeds: int
    goodput_bps: float
    goodput_low_bps: float
    goodput_high_bps: float
    limit: str
    second_limit: str | None
    share: float
    cost_ns: int
    confidence: str
    counters: Mapping[str, int]
    trace: Trace

    @property
    def length_rtts(self) -> float:
        """Return how many round trips its data take at the rate of its path."""
        return round_trips(self.volume_bytes, self.path_rate_bps * PAYLOAD_SHARE, self.rtt_ns)

    @property
    def full_name(self) -> str:
        """Return the name with the library's: ``library/window-200ms-1.5mbps``."""
        return f"{LIBRARY}/{self.name}"


def round_trips(volume_bytes: int, rate_bps: float, rtt_ns: int) -> float:
    """Return how many round trips data take at a rate."""
    return volume_bytes * 8e9 / (rate_bps * max(rtt_ns, 1))


@cache
def library() -> Mapping[str, LabRun]:
    """Return the runs of the library by name."""
    text = files("tcpwin.reference").joinpath("library.jsonl").read_text("utf8")
    runs = (_read(json.loads(line)) for line in text.splitlines())
    return MappingProxyType({run.name: run for run in runs})


def _read(line: Mapping[str, Any]) -> LabRun:
    settings, curve = line["settings"], line["curve"]
    loss_percent, policer_mbps = settings.get("loss_percent"), settings.get("policer_mbps")
    writer_mbps, reader_mbps = settings.get("writer_mbps"), settings.get("reader_mbps")
    goodput_bps = float(line["goodput_bps"])
    steps = repeat(curve["step_us"][0] * _US, len(curve["acked_bytes"]))
    return LabRun(
        name=line["name"],
        family=line["family"],
        rtt_ns=round(settings["rtt_ms"] * _MS),
        path_rate_bps=settings["rate_mbps"] * _MEGABIT,
        queue_bytes=settings.get("queue_bytes"),
        loss_share=None if loss_percent is None else loss_percent / 100,
        policer_bps=None if policer_mbps is None else policer_mbps * _MEGABIT,
        algorithm=settings["algorithm"],
        rmem_max_bytes=settings["rmem_max_bytes"],
        wmem_max_bytes=settings["wmem_max_bytes"],
        adv_win_scale=settings.get("adv_win_scale"),
        writer_bps=None if writer_mbps is None else writer_mbps * _MEGABIT,
        reader_bps=None if reader_mbps is None else reader_mbps * _MEGABIT,
        volume_bytes=settings["bytes"],
        duration_ns=line["duration_ms"] * _MS,
        kernel=line["kernel"],
        is_patched=line["is_patched"],
        seeds=line["seeds"],
        goodput_bps=goodput_bps,
        goodput_low_bps=float(line.get("goodput_low_bps", goodput_bps)),
        goodput_high_bps=float(line.get("goodput_high_bps", goodput_bps)),
        limit=line["limit"],
        second_limit=line["second_limit"],
        share=line["share"],
        cost_ns=line["cost_ms"] * _MS,
        confidence=line["confidence"],
        counters=MappingProxyType(line["counters"]),
        trace=Trace(
            tuple(accumulate(steps)),
            tuple(curve["window_bytes"]),
            tuple(curve["flight_bytes"]),
            tuple(curve["acked_bytes"]),
        ),
    )
