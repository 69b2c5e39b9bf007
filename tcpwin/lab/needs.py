"""Estimates of the CPU, memory and disk that runs need.

In: scenarios with their kernels. Out: estimates from the bytes that the workloads will send and measured costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcpwin.lab.scenario import Scenario
from tcpwin.lab.workload import FRAME_BYTES
from tcpwin.units import bytes_text, time_text

# Measured on one core of a 2026 machine with the lab's kernel; a start includes boot, network and three Pythons.
_START_S = 4.0
_QUICK_START_S = 2.0
_FRAME_S = 25e-6
_CAPTURED_FRAME_S = 5e-6
_SAMPLE_S = 0.12
_CAPTURED_BYTES = 112
"""Bytes per captured frame: 96 of headers and 16 of the record."""
_WITH_ACKS = 1.5
_START_ROUND_TRIPS = 12
_BUFFERS = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304"}
"""Linux's defaults, for settings that the scenario omits."""
_SMALLEST_WINDOW = 0.25
"""Smallest share of a buffer used as window, with tcp_adv_win_scale -2."""
MSS_BYTES = 1448


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """Needs of consecutive runs: total CPU time, and memory and disk of the largest."""

    runs: int
    processor_s: float
    memory_bytes: int
    disk_bytes: int

    def __str__(self) -> str:
        runs = "1 run needs" if self.runs == 1 else f"{self.runs} runs need"
        packets = f" and {bytes_text(self.disk_bytes)} of disk" if self.disk_bytes >= 50_000_000 else ""
        # Each system call inside takes two process switches here, which cost several times more on shared cores.
        busy = "two to three times that on a busy machine"
        processor, memory = time_text(self.processor_s * 1e9), bytes_text(self.memory_bytes)
        return f"{runs} about {processor} of one free core, {busy}; each up to {memory} of memory{packets}"


def run_needs(runs: Iterable[tuple[Scenario, str]], *, capture: bool = True) -> RunNeeds:
    """Return what these runs need in the lab's kernel."""
    count, processor_s, memory, disk = 0, 0.0, 0, 0
    for scenario, _ in runs:
        rate_bps = (scenario.route.bottleneck_mbps or scenario.route.rate_mbps) * 1e6
        extent = scenario.workload.extent(scenario.serve, scenario.drive, rate_bps)
        seconds = scenario.workload.extent(scenario.serve, scenario.drive, _carried_bps(scenario, rate_bps)).seconds
        seconds += _START_ROUND_TRIPS * scenario.route.rtt_ms / 1000
        frames = extent.bytes / FRAME_BYTES
        is_captured = capture and scenario.measure.capture
        cost_s = _FRAME_S + (2 * _CAPTURED_FRAME_S if is_captured else 0)
        samples = 1000 * seconds / scenario.measure.sample_ms if scenario.measure.sample_ms else 0
        count += 1
        processor_s += (_QUICK_START_S if scenario.measure.quick else _START_S) + frames * cost_s + samples * _SAMPLE_S
        memory = max(memory, scenario.hosts.memory_mib << 20)
        if is_captured:
            disk = max(disk, round(2 * frames * _WITH_ACKS * _CAPTURED_BYTES))
    return RunNeeds(count, processor_s, memory, disk)


def _carried_bps(scenario: Scenario, rate_bps: float) -> float:
    """Return a lower bound of a transfer's rate: a small window per round trip, reduced by loss."""
    rtt_s = scenario.route.rtt_ms / 1000
    if not rtt_s:
        return rate_bps
    sizes = {**_BUFFERS, **scenario.sysctl["sender"], **scenario.sysctl["receiver"]}
    window = min(int(sizes[name].split()[-1]) for name in _BUFFERS) * _SMALLEST_WINDOW
    carried = min(rate_bps, 8 * window / rtt_s)
    if scenario.route.loss_percent:
        # Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997): C = 1.22.
        carried = min(carried, 8 * MSS_BYTES / rtt_s * 1.22 / (scenario.route.loss_percent / 100) ** 0.5)
    return carried
