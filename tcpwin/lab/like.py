"""A scenario that imitates a capture: its path, its bytes, its hosts' settings.

In: an analysis with host data. Out: a scenario that sends as many bytes over such a path to such a receiver. If the
capture does not show the path's rate, it is given, or assumed to be 1 Gbit/s or the next that carries the transfer; the
scenario's text says which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcpwin.kernel import SCALING_RATIO_SINCE, SLOW_START_ONLY_SINCE, memory_models
from tcpwin.lab.kernel_build import DEFAULT_SERIES, SERIES
from tcpwin.lab.lifts import scenario_without
from tcpwin.lab.pace import reader_trace, writer_trace
from tcpwin.lab.scenario import Scenario, ScenarioError, read_scenario
from tcpwin.limits import LIMIT_NAMES, Life, life_of
from tcpwin.paths import PAYLOAD_SHARE, QUEUE, RANDOM, Changes, Path, fit_path
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.analysis import Direction
    from tcpwin.limits import Analysis, Connection
    from tcpwin.reference import Run

ASSUMED_RATES_MBPS = (1_000, 10_000, 100_000, 400_000)
"""Ethernet rates; without a given rate, the path gets the first that carries the captured transfer."""
_CARRIED = 0.94
"""Share of Ethernet's rate available to the payload of full frames."""
_MOST_BYTES = 1 << 30
_LARGE_BYTES = 64 << 20
"""Larger buffers need more than a scenario's default of 1 GiB of memory."""
_LARGE_MEMORY_MIB = 4096
_LEAST_QUEUE_BYTES, _ROOMY_QUEUE_BYTES, _CARD_MBPS = 6_000, 150_000, 1000.0
_QUEUED_SHARE, _LEAST_WAIT_NS = 0.1, 500_000
"""Minimum mean wait, as a share of a round trip and as a time, that shows a queue on the path behind the capture
point.
"""
_MOSTLY, _FILLED_SHARE = 0.5, 0.02
_BUCKET_SHARE, _LEAST_BUCKET_MS, _LEAST_BUCKET_BYTES = 0.5, 10.0, 15_000
_OWN_PACE = 1.5
"""Multiple of one window per round trip below which a plateau may come from the window."""
_PACED = 0.15
"""Share of the life below which waiting for an application is ignored: it counts as fast as the path."""
_MEMORY_A_BYTE = 1.055
"""Receive memory per byte in the lab if `frame_memory_bytes` is 0."""
_SAMPLE_MS, _SAMPLES = 200, 100
_RMEM, _WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_CONTROL = "net.ipv4.tcp_congestion_control"
_DEFAULTS = {_RMEM: "4096 131072 6291456", _WMEM: "4096 16384 4194304"}
"""Linux's defaults, if the hosts' settings are unknown."""
_SETTINGS = (
    *("tcp_rmem", "tcp_wmem", "tcp_adv_win_scale", "tcp_window_scaling", "tcp_sack", "tcp_timestamps"),
    *("tcp_slow_start_after_idle", "tcp_notsent_lowat", "tcp_moderate_rcvbuf", "tcp_congestion_control"),
)
_NUMBER = ("a whole number", re.compile(r"-?[0-9]{1,10}"))
_SIZES = ("three sizes in bytes", re.compile(r"(?:[0-9]{1,10}[ \t]+){2}[0-9]{1,10}"))
_KINDS = {
    "tcp_rmem": _SIZES,
    "tcp_wmem": _SIZES,
    "tcp_congestion_control": ("the name of a congestion control", re.compile(r"[A-Za-z0-9_-]{1,15}")),
}
_CONGESTION_CONTROLS = ("cubic", "reno", "bbr", "dctcp")
"""Congestion controls in the lab's kernel."""


def scenario_like(
    analysis: Analysis,
    *,
    name: str = "capture",
    rate_mbps: float | None = None,
    connection: Connection | None = None,
    settings_of: Run | None = None,
    changes: Changes | None = None,
    series: str | None = None,
) -> Scenario:
    """Return a bulk transfer like a connection of the capture, with its snapshots' settings.

    Args:
        name: the capture's name; the scenario is `like-` plus its letters and digits.
        rate_mbps: the path's rate.
        connection: number of the connection; by default the worst.
        settings_of: a reference run whose tcp_rmem and tcp_adv_win_scale replace the receiver's.
        changes: changes of settings and path, as for `tcpwin.whatif`.
        series: the Linux it will run on; by default `series_like`.

    Raises:
        ScenarioError: there is no connection, it has no data or no round trip, the run states no buffer, or the run
            lacks a limit to lift.
    """
    if connection is None:
        worst = analysis.worst(1)
        if not worst:
            raise ScenarioError("the capture has no TCP connection")
        connection = worst[0]
    is_a_sender = connection.a_to_b.unique_bytes >= connection.b_to_a.unique_bytes
    way = connection.a_to_b if is_a_sender else connection.b_to_a
    rtt_ns = connection.path_rtt_ns or way.rtt_min_ns
    if not rtt_ns or not way.unique_bytes:
        raise ScenarioError("the worst connection of the capture has no data, or shows no round trip")
    tables: dict[str, dict[str, str]] = {"sysctl_sender": {}, "sysctl_receiver": {}}
    path = fit_path(connection, "a_to_b" if is_a_sender else "b_to_a")
    assert path is not None, "a direction was given"
    life = life_of(connection, path.direction)
    left_out = [f"# Not carried over: {name_text(note)}" for note in path.notes]
    for end in (path.sender, path.receiver):
        for setting in _SETTINGS:
            value = end.settings.get(f"net.ipv4.{setting}")
            if value is not None:
                _check_setting(f"net.ipv4.{setting}", value)
            if setting == "tcp_congestion_control" and value not in (None, *_CONGESTION_CONTROLS):
                left_out.append(f"# Not in the lab's kernel: {setting} = {value}")
            elif value is not None:
                tables[f"sysctl_{end.role}"][f"net.ipv4.{setting}"] = value
    if settings_of is not None:
        _take_over(settings_of, tables)
        name += f" as {settings_of.reference} {settings_of.name}"
    changes = changes or Changes()
    _change(changes, tables)
    if changes.words:
        name += f" with {' '.join(changes.words)}"
    title = "like-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "capture")
    told = path.algorithm.name if path.algorithm is not None else ""
    if told in _CONGESTION_CONTROLS:
        tables["sysctl_sender"].setdefault(_CONTROL, told)
    lines = [
        f'title = "A transfer like connection {connection.id} of a capture"',
        *dict.fromkeys(left_out),
        "[path]",
        f"rtt_ms = {(changes.round_trip_ns or rtt_ns) / 1e6:.3f}",
        *_path_lines(path, way, rate_mbps, changes, life, rtt_ns),
        *_workload_lines(connection, path, way.unique_bytes, life, series or series_of(path)),
        "[measure]",
        f"sample_ms = {max(_SAMPLE_MS, round(connection.duration_ns / 1e6 / _SAMPLES))}",
        "quick = true",
    ]
    for heading, settings in tables.items():
        if settings:
            lines += [f"[{heading}]", *(f'"{key}" = "{value}"' for key, value in settings.items())]
    if any(int(size) > _LARGE_BYTES for size in _largest(tables)):
        lines += ["[host]", f"memory_mib = {_LARGE_MEMORY_MIB}"]
    return _without(read_scenario(title, "\n".join(lines) + "\n"), changes)


def _without(scenario: Scenario, changes: Changes) -> Scenario:
    """Lift the limits that no line of the scenario's text covers."""
    for limit in changes.lifted:
        # The path has no losses already.
        found = scenario if limit == "path_loss" else scenario_without(scenario, limit)
        if found is None:
            raise ScenarioError(f"the run has no {LIMIT_NAMES[limit]} that could be lifted: change a setting instead")
        scenario = found
    return scenario


def _workload_lines(connection: Connection, path: Path, total_bytes: int, life: Life, series: str) -> list[str]:
    """Return the workload's lines: total bytes, and the writer's and reader's pace where the other waited for it."""
    traces = {}
    round_trip_ns = path.round_trip_ns.value or 0.0
    paced = [
        limit
        for limit in ("sender_application", "receiver_application")
        if life.times_ns.get(limit, 0) >= _PACED * life.total_ns and total_bytes <= _MOST_BYTES
    ]
    if "sender_application" in paced:
        traces["serve"] = writer_trace(connection, path.direction, round_trip_ns)
    if "receiver_application" in paced:
        traces["drive"] = reader_trace(connection, path.direction, round_trip_ns, held_share=_held_share(path, series))
    lines = [f"serve.bytes = {min(total_bytes, _MOST_BYTES)}"]
    for end, trace in traces.items():
        if trace is not None:
            lines.append(f"{end}.trace_us = {list(trace.after_us)}")
            lines.append(f"{end}.trace_bytes = {list(trace.until_bytes)}")
    return ["[workload]", f'name = "{"transfer" if len(lines) > 1 else "bulk"}"', *lines]


def _held_share(path: Path, series: str) -> float:
    """Return the unread bytes in the lab's kernel per byte by which its window is smaller."""
    if series != DEFAULT_SERIES:
        return 1.0  # Since 6.6 the window accounts for the memory that packets take.
    model = memory_models(None, adv_win_scale=path.receiver.adv_win_scale)[0]
    return 1 / (_MEMORY_A_BYTE * model.window_from_space(1 << 20) / (1 << 20))


def series_like(connection: Connection) -> str:
    """Return the lab's Linux that counts receive memory like the connection's receiver; 6.1 if unknown."""
    path = fit_path(connection)
    return DEFAULT_SERIES if path is None else series_of(path)


def series_of(path: Path) -> str:
    """Return the lab's Linux series for an already fitted path."""
    kernel = path.receiver.kernel
    if kernel is None:
        return DEFAULT_SERIES
    return SERIES[sum(kernel >= since for since in (SCALING_RATIO_SINCE, SLOW_START_ONLY_SINCE))]


def _path_lines(
    path: Path, way: Direction, rate_mbps: float | None, changes: Changes, life: Life, rtt_ns: float
) -> list[str]:
    """Return lines for the rate, the queue or policer in front of it, and random losses."""
    shown = None if is_own_pace(path, way, life) else path.rate_bps.value
    rate_mbps = rate_mbps if changes.rate_bps is None else changes.rate_bps / 1e6
    if rate_mbps is None and shown is None:
        rate, why = float(_assumed(way)), "  # assumed: --rate sets another"
    elif rate_mbps is None and shown is not None:
        rate, why = float(f"{shown / PAYLOAD_SHARE / 1e6:.4g}"), "  # as the capture shows it: --rate sets another"
    else:
        rate, why = rate_mbps or 0.0, ""
    lines = [f"rate_mbps = {rate:g}{why}"]
    card = f"rate_mbps = {max(_CARD_MBPS, 4 * rate):g}"
    longest_ns, mean_ns = path.queue_ns.high or 0.0, path.queue_ns.value or 0.0
    is_behind = (
        path.loss_kind != RANDOM and way.view != "receiver" and mean_ns > max(_LEAST_WAIT_NS, _QUEUED_SHARE * rtt_ns)
    )
    loss = path.loss_share.value if path.loss_kind == RANDOM else None
    if life.times_ns.get("path_policer", 0) > _MOSTLY * life.total_ns:
        burst = max(round(_BUCKET_SHARE * rate * 125 * max(rtt_ns / 1e6, _LEAST_BUCKET_MS)), _LEAST_BUCKET_BYTES)
        lines = [card, f"policer_mbps = {rate:g}{why}"]
        lines.append(f"policer_burst_bytes = {burst}  # its bucket is unknown: half of what a round trip carries")
        loss = None
    elif path.loss_kind == QUEUE and longest_ns:
        size = max(round(longest_ns * rate / 8000), _LEAST_QUEUE_BYTES)
        lines = [card, f"bottleneck_mbps = {rate:g}{why}"]
        lines.append(f"queue_bytes = {size}  # the longest wait that the capture shows")
    elif shown is not None and is_behind:
        size = max(round(2 * longest_ns * rate / 8000), _ROOMY_QUEUE_BYTES)
        lines = [card, f"bottleneck_mbps = {rate:g}{why}"]
        lines.append(f"queue_bytes = {size}  # it never overflowed: twice the longest wait")
    loss = loss if changes.loss_share is None else changes.loss_share
    loss = 0.0 if "path_loss" in changes.lifted else loss
    return [*lines, f"loss_percent = {100 * loss:.4g}"] if loss else lines


def is_own_pace(path: Path, way: Direction, life: Life) -> bool:
    """Whether the apparent path rate may be the pace of BBR at its window."""
    rate_bps, rtt_ns = path.rate_bps.value, path.round_trip_ns.value
    if not rate_bps or not rtt_ns or path.algorithm is None or not path.algorithm.is_bbr:
        return False
    is_filled = life.times_ns.get("path_rate", 0) >= _FILLED_SHARE * life.total_ns
    window_bps = 8e9 * way.receive_window_max_bytes / rtt_ns if way.receive_window_max_bytes else 0.0
    return not is_filled and rate_bps < _OWN_PACE * window_bps and "receiver_window" in life.times_ns


def _change(changes: Changes, tables: dict[str, dict[str, str]]) -> None:
    """Apply the changed settings, each at its end."""
    sender, receiver = tables["sysctl_sender"], tables["sysctl_receiver"]
    for table, name, size in ((receiver, _RMEM, changes.rmem_max_bytes), (sender, _WMEM, changes.wmem_max_bytes)):
        if size is not None:
            least, first, _ = table.get(name, _DEFAULTS[name]).split()
            table[name] = f"{least} {min(int(first), size)} {size}"
    if changes.adv_win_scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(changes.adv_win_scale)
    if changes.algorithm is not None:
        sender[_CONTROL] = changes.algorithm
    if changes.is_idle_restart_off:
        sender["net.ipv4.tcp_slow_start_after_idle"] = "0"


def _assumed(way: Direction) -> int:
    goodput_mbps = (way.goodput_bps or 0) / 1e6
    return next((rate for rate in ASSUMED_RATES_MBPS if goodput_mbps <= rate * _CARRIED), ASSUMED_RATES_MBPS[-1])


def _check_setting(name: str, value: str) -> None:
    """Refuse implausible values: snapshots come from strangers, and this becomes a scenario's text."""
    kind, pattern = _KINDS.get(name.removeprefix("net.ipv4."), _NUMBER)
    if not pattern.fullmatch(value):
        raise ScenarioError(f"the snapshots have {name} = {value[:80]!r}, which is not {kind}")


def _take_over(run: Run, tables: dict[str, dict[str, str]]) -> None:
    """Use the run's receive buffer at the receiver; the sender's buffer stays and may be the next limit."""
    if run.rmem_max_bytes is None:
        raise ScenarioError(f"{run.reference}/{run.name} states no receive buffer")
    receiver = tables["sysctl_receiver"]
    own = receiver.get(_RMEM, _DEFAULTS[_RMEM]).split()
    receiver[_RMEM] = " ".join([*own[:2], str(run.rmem_max_bytes)])
    if run.adv_win_scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(run.adv_win_scale)


def _largest(tables: dict[str, dict[str, str]]) -> list[str]:
    """Return the largest buffers in the settings."""
    return [table[name].split()[-1] for table in tables.values() for name in (_RMEM, _WMEM) if name in table]
