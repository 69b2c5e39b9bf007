"""The changes that lift each limit of a scenario.

In: a scenario. Out: the same scenario with one change, by limit name. Limits that the scenario cannot have (no loss, no
policer, no pause) are omitted.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcpwin.lab.scenario import Scenario, read_scenario
from tcpwin.lab.toml_text import render_toml

Table = dict[str, Any]
RATE_FACTOR = 4
"""Factor for the path's rate and queue; the queue stays the same multiple of rate times delay."""
_FRAME_BYTES, _PAYLOAD_BYTES = 1538, 1448
"""A full frame on the wire including the gap, and its payload with timestamps."""
_POLICED_BYTES = 1514
_POLICER_MARGIN = 0.98
_KERNEL_WINDOW_SEGMENTS = 10
_LEAST_BUFFER_BYTES = 64 << 20
_MOST_BUFFER_BYTES = 1 << 30
_PAGES_PER_MIB = 256
_RMEM, _WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_SHARE = "net.ipv4.tcp_adv_win_scale"
_AMPLE = -2
"""Four bytes of memory for each that the window promises."""
_IDLE = "net.ipv4.tcp_slow_start_after_idle"
_LOSSES = ("loss_percent", "ack_loss_percent", "burst_loss_percent")
_POLICER = ("policer_mbps", "policer_burst_bytes")
_CROSS = ("cross_algorithm", "cross_start_s", "cross_s")
_READER = {
    "transfer": ("rate_mbps", "fast_bytes", "slow_bytes", "stall_bytes", "stall_s"),
    "stalled-reader": ("stalls",),
}
_TRACE = ("trace_us", "trace_bytes")
"""Settings with the pace of a captured reader or writer."""
_SERVER = ("work_s", "slow_s")
DELAY_DIVISOR = 10
_WRITER = {"transfer": ("rate_mbps", "pause_bytes", "pause_s"), "messages": ("gap_s",)}


@dataclass(frozen=True, slots=True)
class Lift:
    """The lifting of one limit.

    Attributes:
        name: the run's name.
        limit: the verdict's limit that it lifts; two lifts may share one.
        title: short description of the change.
        applies: whether it applies to a scenario.
        change: changes the scenario's table.
    """

    name: str
    limit: str
    title: str
    applies: Callable[[Scenario], bool]
    change: Callable[[Scenario, Table], None]


def lifted(scenario: Scenario, lift: Lift) -> Scenario:
    """Return the scenario with this limit lifted, without packets and claims and with few samples."""
    table = tomllib.loads(scenario.text)
    table.pop("expect", None)
    table["measure"] = {"capture": False, "sample_ms": 0, "quick": True}
    lift.change(scenario, table)
    return read_scenario(f"{scenario.name}.{lift.name.replace('_', '-')}", render_toml(copy.deepcopy(table)))


def scenario_without(scenario: Scenario, limit: str) -> Scenario | None:
    """Return the scenario with everything that causes this limit lifted, or None if it has no such cause."""
    lifts = [lift for lift in lifts_of(scenario) if lift.limit == limit]
    table = tomllib.loads(scenario.text)
    for lift in lifts:
        lift.change(scenario, table)
    return read_scenario(scenario.name, render_toml(copy.deepcopy(table))) if lifts else None


def lifts_of(scenario: Scenario) -> list[Lift]:
    """Return the lifts that apply to a scenario."""
    return [lift for lift in LIFTS if lift.applies(scenario)]


def path_rate_mbps(scenario: Scenario) -> float:
    """Return the rate of the narrowest queue, or of the card."""
    route = scenario.route
    return min(route.rate_mbps, route.bottleneck_mbps or route.rate_mbps)


def _set(table: Table, heading: str, **values: Any) -> None:
    table.setdefault(heading, {}).update(values)


def _large_buffer(scenario: Scenario) -> int:
    """Return a size twice what the path and its queue hold, whatever memory a frame takes."""
    on_the_way = path_rate_mbps(scenario) * 1e6 / 8 * scenario.route.rtt_ms / 1000 + scenario.route.queue_bytes
    return min(_MOST_BUFFER_BYTES, max(_LEAST_BUFFER_BYTES, 1 << round(8 * on_the_way).bit_length()))


def _lift_buffer(scenario: Scenario, table: Table, end: str, name: str) -> None:
    size = _large_buffer(scenario)
    table.setdefault(f"sysctl_{end}", {})[name] = f"4096 {size} {size}"
    both = table.setdefault("sysctl", {})
    # Otherwise memory pressure would replace the lifted limit.
    pages = scenario.hosts.memory_mib * _PAGES_PER_MIB
    both.setdefault("net.ipv4.tcp_mem", f"{pages // 2} {pages * 3 // 4} {pages}")


def _lift_window(scenario: Scenario, table: Table) -> None:
    _lift_buffer(scenario, table, "receiver", _RMEM)
    table["sysctl_receiver"] |= {_SHARE: 1, "net.ipv4.tcp_window_scaling": 1}
    table.setdefault("sysctl_sender", {})["net.ipv4.tcp_window_scaling"] = 1


def _lift_memory(scenario: Scenario, table: Table) -> None:
    """Promise the same window, for more memory."""
    settings = scenario.sysctl["receiver"]
    window = 1 - 2.0 ** -int(settings[_SHARE])
    least, *sizes = map(int, settings[_RMEM].split())
    sizes = [round(window * 2**-_AMPLE * size) for size in sizes]
    _set(table, "sysctl_receiver", **{_RMEM: " ".join(map(str, (least, *sizes))), _SHARE: _AMPLE})


def _lift_send_buffer(scenario: Scenario, table: Table) -> None:
    _lift_buffer(scenario, table, "sender", _WMEM)


def _lift_rate(scenario: Scenario, table: Table) -> None:
    route = scenario.route
    if not route.bottleneck_mbps:
        _set(table, "path", rate_mbps=route.rate_mbps * RATE_FACTOR)
        return
    rate = route.bottleneck_mbps * RATE_FACTOR
    card = max(route.rate_mbps, rate)
    _set(table, "path", rate_mbps=card, bottleneck_mbps=rate, queue_bytes=route.queue_bytes * RATE_FACTOR)


def _drop(heading: str, names: tuple[str, ...]) -> Callable[[Scenario, Table], None]:
    def change(_: Scenario, table: Table) -> None:
        for name in names:
            table[heading].pop(name, None)

    return change


def _lift_reader(scenario: Scenario, table: Table) -> None:
    _at_once(table["workload"].get("drive", {}), _READER[scenario.workload.name])


def _lift_writer(scenario: Scenario, table: Table) -> None:
    _at_once(table["workload"].setdefault("serve", {}), _WRITER[scenario.workload.name])


def _at_once(settings: Table, names: tuple[str, ...]) -> None:
    """Set these settings to zero, which disables each."""
    for name in names:
        settings[name] = 0
    for name in _TRACE:
        settings.pop(name, None)


def _lift_work(_: Scenario, table: Table) -> None:
    _at_once(table["workload"].setdefault("serve", {}), _SERVER)


def _lift_think(_: Scenario, table: Table) -> None:
    _at_once(table["workload"].setdefault("drive", {}), ("think_s",))


def _lift_delay(scenario: Scenario, table: Table) -> None:
    _set(table, "path", rtt_ms=scenario.route.rtt_ms / DELAY_DIVISOR)


def _lift_nagle(_: Scenario, table: Table) -> None:
    for end in ("serve", "drive"):
        table["workload"].setdefault(end, {})["nagle"] = False


def _lift_delayed_ack(_: Scenario, table: Table) -> None:
    _set(table, "host", quick_ack=True)


def _lift_idle_restart(_: Scenario, table: Table) -> None:
    table.setdefault("sysctl", {})
    table.setdefault("sysctl_sender", {})[_IDLE] = 0


def first_window_segments(scenario: Scenario) -> int:
    """Return what the path holds without a queue, at its rate."""
    rate = min(path_rate_mbps(scenario), scenario.route.policer_mbps or path_rate_mbps(scenario))
    return int(rate * 1e6 / 8 * scenario.route.rtt_ms / 1000 / _FRAME_BYTES)


def _lift_congestion_control(scenario: Scenario, table: Table) -> None:
    """Start with what the path holds, and send no faster than it carries: no ramp, no overshoot, no self-inflicted
    loss.
    """
    _set(table, "host", initial_window_segments=first_window_segments(scenario))
    if scenario.workload.name != "transfer":
        return
    pace = path_rate_mbps(scenario) * _PAYLOAD_BYTES / _FRAME_BYTES
    if policer := scenario.route.policer_mbps:
        pace = min(pace, policer * _POLICER_MARGIN * _PAYLOAD_BYTES / _POLICED_BYTES)
    table["workload"].setdefault("serve", {})["pacing_mbps"] = round(pace, 6)


def _promises_much(scenario: Scenario) -> bool:
    settings = scenario.sysctl["receiver"]
    return _RMEM in settings and int(settings.get(_SHARE, 1)) > 1


def _loses(scenario: Scenario) -> bool:
    return any(getattr(scenario.route, name) for name in _LOSSES)


def _reads_slowly(scenario: Scenario) -> bool:
    return any(getattr(scenario.drive, name, 0) for name in (*_READER.get(scenario.workload.name, ()), *_TRACE))


def _writes_slowly(scenario: Scenario) -> bool:
    return any(getattr(scenario.serve, name, 0) for name in (*_WRITER.get(scenario.workload.name, ()), *_TRACE))


def _converses(scenario: Scenario) -> bool:
    return scenario.workload.name == "conversation"


def _works(scenario: Scenario) -> bool:
    return _converses(scenario) and bool(scenario.serve.work_s or (scenario.serve.slow_every and scenario.serve.slow_s))


def _has_nagle(scenario: Scenario) -> bool:
    return _converses(scenario) and (scenario.serve.nagle or scenario.drive.nagle)


def _restarts(scenario: Scenario) -> bool:
    return _writes_slowly(scenario) and scenario.sysctl["sender"].get(_IDLE, "1") != "0"


LIFTS = (
    Lift(
        "receiver_window",
        "receiver_window",
        "a receive buffer that cannot limit",
        lambda _: True,
        _lift_window,
    ),
    Lift(
        "receiver_memory",
        "receiver_memory",
        "four bytes of receive memory per byte of window",
        _promises_much,
        _lift_memory,
    ),
    Lift("send_buffer", "send_buffer", "a send buffer that cannot limit", lambda _: True, _lift_send_buffer),
    Lift("path_rate", "path_rate", f"{RATE_FACTOR} times the path's rate and queue", lambda _: True, _lift_rate),
    Lift(
        "cross_traffic",
        "path_rate",
        "no second flow",
        lambda each: bool(each.route.cross_algorithm),
        _drop("path", _CROSS),
    ),
    Lift("path_loss", "path_loss", "no loss", _loses, _drop("path", _LOSSES)),
    Lift(
        "path_policer",
        "path_policer",
        "no policer",
        lambda each: bool(each.route.policer_mbps),
        _drop("path", _POLICER),
    ),
    Lift("receiver_application", "receiver_application", "a reader that reads at once", _reads_slowly, _lift_reader),
    Lift("sender_application", "sender_application", "a writer without pauses or a pace", _writes_slowly, _lift_writer),
    Lift("idle_restart", "idle_restart", "no restart of the window after a pause", _restarts, _lift_idle_restart),
    Lift(
        "congestion_control",
        "congestion_control",
        "begin with the path's own window, at the path's pace",
        lambda each: first_window_segments(each) > _KERNEL_WINDOW_SEGMENTS,
        _lift_congestion_control,
    ),
    Lift("server_work", "sender_application", "a server that answers at once", _works, _lift_work),
    Lift(
        "think_time",
        "requester_application",
        "a client that asks at once",
        lambda each: _converses(each) and bool(each.drive.think_s),
        _lift_think,
    ),
    Lift(
        "delay",
        "round_trips",
        f"a round trip of a {DELAY_DIVISOR}th",
        lambda each: _converses(each) and bool(each.route.rtt_ms),
        _lift_delay,
    ),
    Lift("nagle", "nagle", "Nagle's algorithm off at both ends", _has_nagle, _lift_nagle),
    Lift(
        "delayed_ack",
        "delayed_ack",
        "no delayed ACKs at either end",
        lambda each: _converses(each) and not each.hosts.quick_ack,
        _lift_delayed_ack,
    ),
)
