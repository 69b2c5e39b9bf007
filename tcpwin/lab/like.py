"""A scenario like what a capture shows: its path, its bytes, its hosts' settings.

In: an analysis with what its hosts said. Out: a scenario that sends as many bytes over such a path to such a receiver.
Where the capture does not tell the rate of the path, it is given, or taken as 1 Gbit/s or what carries the transfer:
the scenario's text says which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcpwin.kernel import SCALING_RATIO_SINCE
from tcpwin.lab.kernel_build import DEFAULT_SERIES, SERIES
from tcpwin.lab.scenario import Scenario, ScenarioError, read_scenario
from tcpwin.paths import PAYLOAD_SHARE, QUEUE, RANDOM, Path, fit_path
from tcpwin.units import name_text

if TYPE_CHECKING:
    from tcpwin.analysis import Analysis, Connection, Direction
    from tcpwin.reference import Run

ASSUMED_RATES_MBPS = (1_000, 10_000, 100_000, 400_000)
"""Ethernet's; where none is given the path has the first that carries what was captured."""
_CARRIED = 0.94
"""Of Ethernet's rate, what is left for data of full frames."""
_MOST_BYTES = 1 << 30
_LARGE_BYTES = 64 << 20
"""A larger buffer needs more than the 1 GiB of memory that a scenario's hosts have by default."""
_LARGE_MEMORY_MIB = 4096
_LEAST_QUEUE_BYTES, _CARD_MBPS = 6_000, 1000.0
_RMEM, _WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
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
"""Those of the lab's kernel."""


def scenario_like(
    analysis: Analysis,
    *,
    name: str = "capture",
    rate_mbps: float | None = None,
    connection: Connection | None = None,
    settings_of: Run | None = None,
) -> Scenario:
    """A bulk transfer like a connection of the capture, with the settings that its snapshots hold.

    Args:
        name: of the capture; the scenario is `like-` and what letters and digits it has.
        rate_mbps: of the path.
        connection: by default the worst.
        settings_of: a run of a reference whose tcp_rmem and tcp_adv_win_scale take the place of the receiver's.

    Raises:
        ScenarioError: there is no connection, it has no data or shows no round trip, or the run states no buffer.
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
    left_out = [f"# Not taken over: {name_text(note)}" for note in path.notes]
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
    title = "like-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "capture")
    told = path.algorithm.name if path.algorithm is not None else ""
    if told in _CONGESTION_CONTROLS:
        tables["sysctl_sender"].setdefault("net.ipv4.tcp_congestion_control", told)
    lines = [
        f'title = "A transfer like connection {connection.id} of a capture"',
        *dict.fromkeys(left_out),
        "[path]",
        f"rtt_ms = {rtt_ns / 1e6:.3f}",
        *_path_lines(path, way, rate_mbps),
        "[workload]",
        'name = "bulk"',
        f"serve.bytes = {min(way.unique_bytes, _MOST_BYTES)}",
    ]
    for heading, settings in tables.items():
        if settings:
            lines += [f"[{heading}]", *(f'"{key}" = "{value}"' for key, value in settings.items())]
    if any(int(size) > _LARGE_BYTES for size in _largest(tables)):
        lines += ["[host]", f"memory_mib = {_LARGE_MEMORY_MIB}"]
    return read_scenario(title, "\n".join(lines) + "\n")


def series_like(connection: Connection) -> str:
    """Which Linux of the lab counts receive memory as the connection's receiver does; 6.1 where that is not known."""
    path = fit_path(connection)
    kernel = None if path is None else path.receiver.kernel
    return SERIES[-1] if kernel is not None and kernel >= SCALING_RATIO_SINCE else DEFAULT_SERIES


def _path_lines(path: Path, way: Direction, rate_mbps: float | None) -> list[str]:
    """The rate, with the queue that overflowed, and losses by chance."""
    shown = path.rate_bps.value
    if rate_mbps is None and shown is None:
        rate, why = float(_assumed(way)), "  # assumed: --rate says another"
    elif rate_mbps is None and shown is not None:
        rate, why = float(f"{shown / PAYLOAD_SHARE / 1e6:.4g}"), "  # as the capture shows it: --rate says another"
    else:
        rate, why = rate_mbps or 0.0, ""
    lines = [f"rate_mbps = {rate:g}{why}"]
    queue_ns = path.queue_ns.high
    if path.loss_kind == QUEUE and queue_ns:
        size = max(round(queue_ns * rate / 8000), _LEAST_QUEUE_BYTES)
        lines = [
            f"rate_mbps = {max(_CARD_MBPS, 4 * rate):g}",
            f"bottleneck_mbps = {rate:g}{why}",
            f"queue_bytes = {size}  # the longest wait that the capture shows",
        ]
    if path.loss_kind == RANDOM and path.loss_share.value:
        lines.append(f"loss_percent = {100 * path.loss_share.value:.4g}")
    return lines


def _assumed(way: Direction) -> int:
    goodput_mbps = (way.goodput_bps or 0) / 1e6
    return next((rate for rate in ASSUMED_RATES_MBPS if goodput_mbps <= rate * _CARRIED), ASSUMED_RATES_MBPS[-1])


def _check_setting(name: str, value: str) -> None:
    """Refuse what no kernel says: snapshots come from other people, and this becomes a scenario's text."""
    kind, pattern = _KINDS.get(name.removeprefix("net.ipv4."), _NUMBER)
    if not pattern.fullmatch(value):
        raise ScenarioError(f"the snapshots have {name} = {value[:80]!r}, which is not {kind}")


def _take_over(run: Run, tables: dict[str, dict[str, str]]) -> None:
    """The run's receive buffer at the receiver; the sender's own stays, and may be the next limit."""
    if run.rmem_max_bytes is None:
        raise ScenarioError(f"{run.reference}/{run.name} states no receive buffer")
    receiver = tables["sysctl_receiver"]
    own = receiver.get(_RMEM, "4096 131072 6291456").split()
    receiver[_RMEM] = " ".join([*own[:2], str(run.rmem_max_bytes)])
    if run.adv_win_scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(run.adv_win_scale)


def _largest(tables: dict[str, dict[str, str]]) -> list[str]:
    """The largest buffers that the settings name."""
    return [table[name].split()[-1] for table in tables.values() for name in (_RMEM, _WMEM) if name in table]
