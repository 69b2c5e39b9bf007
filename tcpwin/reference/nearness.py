"""Find the published runs nearest to a measurement, and why.

In: known values of a path, its hosts and their workload. Out: runs in order, with similarities and differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2

from tcpwin.errors import ArgumentError
from tcpwin.kernel import SCALING_RATIO_SINCE, AdvWinScale, parse_kernel
from tcpwin.reference.model import Run
from tcpwin.reference.read import references
from tcpwin.units import binary_text, rate_text, time_text

NOT_STATED = 1.0
"""Distance of a value that a run does not state, equal to a factor of two."""
OTHER_WORKLOAD = 4.0
OTHER_MEMORY_MODEL = 2.0
SWITCHES = ("net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat")
"""Settings in references that no other criterion covers."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """Distance of a run.

    Attributes:
        distance: 0 if all criteria match; 1 for each doubling of a number.
        why: one sentence per criterion; `distances` are their parts of the distance.
    """

    run: Run
    distance: float
    why: tuple[str, ...]
    distances: tuple[float, ...] = ()


def nearest(
    *,
    rtt_ns: int | None = None,
    rate_bps: float | None = None,
    rmem_max_bytes: int | None = None,
    window_bytes: int | None = None,
    kernel: str | None = None,
    adv_win_scale: int | None = None,
    is_patched: bool | None = None,
    settings: Mapping[str, str] | None = None,
    workload: str | None = None,
    limit: int = 3,
) -> list[Nearness]:
    """Return measured runs, the nearest first.

    The distance is the sum over the given criteria: for a number the doublings between both (|log2| of their ratio),
    for tcp_adv_win_scale those between the memory that both assume per byte, 4 for another workload, 2 for a kernel on
    the other side of 6.6, which counts receive memory differently, 1 for the collapse patch on one side only or another
    value of a setting that a run names, and 1 for values that a run does not state. Among equally near runs those of
    the same kernel come first. Calculations are omitted.

    Args:
        rtt_ns, rate_bps: the path's.
        rmem_max_bytes: maximum of tcp_rmem.
        window_bytes: the largest receive window.
        kernel: a version, as ``uname -r`` prints it.
        adv_win_scale: tcp_adv_win_scale.
        is_patched: whether the kernel has Cloudflare's patch, and it is switched on.
        settings: the hosts' settings by name; only those that a run names and that are not sizes count.

    Raises:
        ArgumentError: no criterion is given, a number is not above 0, or a kernel is invalid.
    """
    numbers = {
        "round trip": (rtt_ns, _rtt, time_text),
        "rate": (rate_bps, _rate, rate_text),
        "receive buffer": (rmem_max_bytes, _rmem, binary_text),
        "receive window": (window_bytes, _window, binary_text),
    }
    wanted = {name: each for name, each in numbers.items() if each[0] is not None}
    if not wanted and not settings and all(each is None for each in (kernel, workload, adv_win_scale, is_patched)):
        raise ArgumentError("no reference runs to compare with")
    for name, (value, _, _) in wanted.items():
        if not value or value <= 0:
            raise ArgumentError(f"a {name} of {value} is not above 0")
    found = []
    for each in references().values():
        for run in each.runs:
            if not run.has_figures or run.workload == "calculation":
                continue
            parts = [_number(name, value or 0, get(run), text) for name, (value, get, text) in wanted.items()]
            if workload is not None:
                parts.append(_workload(workload, run))
            if kernel is not None:
                parts.append(_kernel(kernel, run))
            if adv_win_scale is not None:
                parts.append(_scale(adv_win_scale, run))
            if is_patched is not None:
                parts.append(_patch(is_patched, run))
            parts += _settings(settings or {}, run)
            distances = tuple(distance for distance, _ in parts)
            found.append(Nearness(run, sum(distances), tuple(why for _, why in parts), distances))
    return sorted(found, key=lambda near: (near.distance, _is_other_kernel(kernel, near.run)))[:limit]


def _rtt(run: Run) -> float | None:
    return run.rtt_ns


def _rate(run: Run) -> float | None:
    return run.rate_bps


def _rmem(run: Run) -> float | None:
    return run.rmem_max_bytes


def _window(run: Run) -> float | None:
    return run.window_bytes


def _number(name: str, value: float, other: float | None, text: Callable[[float], str]) -> tuple[float, str]:
    if other is None:
        return NOT_STATED, f"{name}: not stated, yours {text(value)}"
    distance = abs(log2(value / other))
    same = "the same" if text(value) == text(other) else f"yours {text(value)}"
    return distance, f"{name}: {text(other)}, {same}"


def _workload(workload: str, run: Run) -> tuple[float, str]:
    if workload == run.workload:
        return 0.0, f"workload: {run.workload}, the same"
    return OTHER_WORKLOAD, f"workload: {run.workload}, yours {workload}"


def _kernel(kernel: str, run: Run) -> tuple[float, str]:
    own = parse_kernel(kernel)
    patched = " with the collapse patch" if run.is_patched else ""
    if run.kernel is None:
        return NOT_STATED, f"kernel: version not stated{patched}, yours {kernel}"
    if (own < SCALING_RATIO_SINCE) is (parse_kernel(run.kernel) < SCALING_RATIO_SINCE):
        return 0.0, f"kernel: {run.kernel}{patched}, with the same memory model as yours"
    return OTHER_MEMORY_MODEL, f"kernel: {run.kernel}{patched}, yours counts receive memory differently"


def _is_other_kernel(kernel: str | None, run: Run) -> bool:
    return kernel is not None and (run.kernel is None or parse_kernel(kernel) != parse_kernel(run.kernel))


def _scale(own: int, run: Run) -> tuple[float, str]:
    if run.adv_win_scale is None:
        return NOT_STATED, f"tcp_adv_win_scale: not stated, yours {own:+d}"
    distance = abs(log2(AdvWinScale(own).overhead / AdvWinScale(run.adv_win_scale).overhead))
    same = "the same" if own == run.adv_win_scale else f"yours {own:+d}"
    return distance, f"tcp_adv_win_scale: {run.adv_win_scale:+d}, {same}"


def _patch(own: bool, run: Run) -> tuple[float, str]:
    words = {True: "with it", False: "without it"}
    if run.is_patched is None:
        return NOT_STATED, f"collapse patch: not stated, yours {words[own]}"
    same = "the same" if own is run.is_patched else f"yours {words[own]}"
    return float(own is not run.is_patched), f"collapse patch: {words[run.is_patched]}, {same}"


def _settings(own: Mapping[str, str], run: Run) -> list[tuple[float, str]]:
    parts = []
    for name, value in run.settings.items():
        if name in own and name in SWITCHES:
            is_same = own[name].split() == value.split()
            parts.append((float(not is_same), f"{name}: {value}, {'the same' if is_same else f'yours {own[name]}'}"))
    return parts
