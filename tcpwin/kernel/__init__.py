"""Models of the hosts' TCP: what memory allows which window, what a path needs, what defaults reach.

They are written from the kernel's source and the RFCs; nothing here reads a live host. Names are loaded when they are
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcpwin.kernel.advice import Advice, audit
    from tcpwin.kernel.bdp import FULL_PACKET_BYTES, bdp_bytes, segments, window_rate_bps, window_rtt_ns
    from tcpwin.kernel.defaults import SCALING_RATIO_SINCE, Defaults, Kernel, kernel_defaults, parse_kernel
    from tcpwin.kernel.growth import SLOW_START_ONLY_SINCE, grown_buffer_bytes
    from tcpwin.kernel.idle_restart import cwnd_after_idle, round_trips_to_regain
    from tcpwin.kernel.memory import (
        FIRST_RATIO,
        HALF_RATIO,
        AdvWinScale,
        MemoryModel,
        ScalingRatio,
        measured_models,
        memory_models,
    )
    from tcpwin.kernel.receive import (
        AllowedWindow,
        HostMemory,
        ReceiveMemory,
        adv_win_scale_of,
        host_memory,
        kernel_of,
        receive_memory,
    )
    from tcpwin.kernel.scale import (
        MAX_SHIFT,
        MAX_WINDOW_BYTES,
        WINDOWS_SHIFTS,
        linux_shift,
        smallest_shift,
        windows_shift,
    )
    from tcpwin.kernel.tuning import SEND_BUFFER_FACTOR, Plan, Reach, plan

_HOMES = {
    "advice": ("Advice", "audit"),
    "bdp": ("FULL_PACKET_BYTES", "bdp_bytes", "segments", "window_rate_bps", "window_rtt_ns"),
    "defaults": ("Defaults", "Kernel", "SCALING_RATIO_SINCE", "kernel_defaults", "parse_kernel"),
    "growth": ("SLOW_START_ONLY_SINCE", "grown_buffer_bytes"),
    "idle_restart": ("cwnd_after_idle", "round_trips_to_regain"),
    "memory": (
        "AdvWinScale",
        "FIRST_RATIO",
        "HALF_RATIO",
        "MemoryModel",
        "ScalingRatio",
        "measured_models",
        "memory_models",
    ),
    "receive": (
        "AllowedWindow",
        "HostMemory",
        "ReceiveMemory",
        "adv_win_scale_of",
        "host_memory",
        "kernel_of",
        "receive_memory",
    ),
    "scale": ("MAX_SHIFT", "MAX_WINDOW_BYTES", "WINDOWS_SHIFTS", "linux_shift", "smallest_shift", "windows_shift"),
    "tuning": ("SEND_BUFFER_FACTOR", "Plan", "Reach", "plan"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "FIRST_RATIO",
    "FULL_PACKET_BYTES",
    "HALF_RATIO",
    "MAX_SHIFT",
    "MAX_WINDOW_BYTES",
    "SCALING_RATIO_SINCE",
    "SEND_BUFFER_FACTOR",
    "SLOW_START_ONLY_SINCE",
    "WINDOWS_SHIFTS",
    "AdvWinScale",
    "Advice",
    "AllowedWindow",
    "Defaults",
    "HostMemory",
    "Kernel",
    "MemoryModel",
    "Plan",
    "Reach",
    "ReceiveMemory",
    "ScalingRatio",
    "adv_win_scale_of",
    "audit",
    "bdp_bytes",
    "cwnd_after_idle",
    "grown_buffer_bytes",
    "host_memory",
    "kernel_defaults",
    "kernel_of",
    "linux_shift",
    "measured_models",
    "memory_models",
    "parse_kernel",
    "plan",
    "receive_memory",
    "round_trips_to_regain",
    "segments",
    "smallest_shift",
    "window_rate_bps",
    "window_rtt_ns",
    "windows_shift",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tcpwin.kernel' has no attribute {name!r}")
    value = getattr(import_module(f"tcpwin.kernel.{home}"), name)
    globals()[name] = value
    return value
