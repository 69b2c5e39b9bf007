"""What runs need, to be said before: processor, memory, disk.

In: scenarios with their kernels. Out: estimates from how much the workloads will send, by costs that were measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcpwin.lab._scenario import Scenario
from tcpwin.lab._workload import FRAME_BYTES

# Measured on one core of a machine of 2026 with the lab's own kernel; a start is boot, network and three Pythons.
_START_S = 4.0
_FRAME_S = 25e-6
_CAPTURED_FRAME_S = 5e-6
_SAMPLE_S = 0.12
_CAPTURED_BYTES = 112
"""Of a frame in a capture: 96 of headers and the record's 16."""
_WITH_ACKS = 1.5


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """What runs need one after the other: processor time in all, memory and disk of the largest."""

    runs: int
    processor_s: float
    memory_bytes: int
    disk_bytes: int

    def __str__(self) -> str:
        minutes = self.processor_s / 60
        processor = f"{minutes:.0f} minutes" if minutes >= 2 else f"{self.processor_s:.0f} s"
        runs = "1 run needs" if self.runs == 1 else f"{self.runs} runs need"
        memory, disk = self.memory_bytes / 1e9, self.disk_bytes / 1e9
        packets = f" and {disk:.1f} GB of disk" if disk >= 0.05 else ""
        return f"{runs} at most about {processor} of one core; each up to {memory:.1f} GB of memory{packets}"


def run_needs(runs: Iterable[tuple[Scenario, str]], *, capture: bool = True) -> RunNeeds:
    """What these runs need in the lab's kernel."""
    count, processor_s, memory, disk = 0, 0.0, 0, 0
    for scenario, _ in runs:
        rate_bps = (scenario.route.bottleneck_mbps or scenario.route.rate_mbps) * 1e6
        extent = scenario.workload.extent(scenario.serve, scenario.drive, rate_bps)
        frames = extent.bytes / FRAME_BYTES
        is_captured = capture and scenario.measure.capture
        cost_s = _FRAME_S + (2 * _CAPTURED_FRAME_S if is_captured else 0)
        samples = 1000 * extent.seconds / scenario.measure.sample_ms
        count += 1
        processor_s += _START_S + frames * cost_s + samples * _SAMPLE_S
        memory = max(memory, scenario.hosts.memory_mib << 20)
        if is_captured:
            disk = max(disk, round(2 * frames * _WITH_ACKS * _CAPTURED_BYTES))
    return RunNeeds(count, processor_s, memory, disk)
