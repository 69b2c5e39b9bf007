"""A scenario like what a capture shows: its round trip, its bytes, its hosts' settings.

In: an analysis with what its hosts said. Out: a scenario that sends as many bytes over such a path to such a receiver.
What the capture cannot tell, the rate of the path, is given, or taken as 1 Gbit/s or what carries the transfer; the
scenario's text says which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tcpwin.lab.scenario import Scenario, ScenarioError, read_scenario

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
    known = {"a" if is_a_sender else "b": "sender", "b" if is_a_sender else "a": "receiver"}
    tables: dict[str, dict[str, str]] = {"sysctl": {}, "sysctl_sender": {}, "sysctl_receiver": {}}
    left_out: list[str] = []
    for host in analysis.hosts:
        sides = sorted(host.sides)
        table = tables[f"sysctl_{known[sides[0]]}" if len(sides) == 1 else "sysctl"]
        said = {} if host.settings is None else host.settings.values
        for setting in _SETTINGS:
            value = said.get(f"net.ipv4.{setting}")
            if value is not None:
                _check_setting(f"net.ipv4.{setting}", value)
            if setting == "tcp_congestion_control" and value not in (None, *_CONGESTION_CONTROLS):
                left_out.append(f"# Not in the lab's kernel: {setting} = {value}")
            elif value is not None:
                table[f"net.ipv4.{setting}"] = value
    if settings_of is not None:
        _take_over(settings_of, tables)
        name += f" as {settings_of.reference} {settings_of.name}"
    title = "like-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "capture")
    rate = f"rate_mbps = {rate_mbps:g}" if rate_mbps else f"rate_mbps = {_assumed(way)}  # assumed: --rate says another"
    lines = [
        f'title = "A transfer like connection {connection.id} of a capture"',
        *dict.fromkeys(left_out),
        "[path]",
        f"rtt_ms = {rtt_ns / 1e6:.3f}",
        rate,
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


def _assumed(way: Direction) -> int:
    goodput_mbps = (way.goodput_bps or 0) / 1e6
    return next((rate for rate in ASSUMED_RATES_MBPS if goodput_mbps <= rate * _CARRIED), ASSUMED_RATES_MBPS[-1])


def _check_setting(name: str, value: str) -> None:
    """Refuse what no kernel says: snapshots come from other people, and this becomes a scenario's text."""
    kind, pattern = _KINDS.get(name.removeprefix("net.ipv4."), _NUMBER)
    if not pattern.fullmatch(value):
        raise ScenarioError(f"the snapshots have {name} = {value[:80]!r}, which is not {kind}")


def _take_over(run: Run, tables: dict[str, dict[str, str]]) -> None:
    """The run's receive buffer at the receiver, and a send buffer that is no less at the sender."""
    if run.rmem_max_bytes is None:
        raise ScenarioError(f"{run.reference}/{run.name} states no receive buffer")
    both, sender, receiver = tables["sysctl"], tables["sysctl_sender"], tables["sysctl_receiver"]
    own = receiver.get(_RMEM, both.get(_RMEM, "4096 131072 6291456")).split()
    receiver[_RMEM] = " ".join([*own[:2], str(run.rmem_max_bytes)])
    if run.adv_win_scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(run.adv_win_scale)
    sends = sender.get(_WMEM, both.get(_WMEM, "4096 16384 4194304")).split()
    sender[_WMEM] = " ".join([*sends[:2], str(max(int(sends[2]), run.rmem_max_bytes))])


def _largest(tables: dict[str, dict[str, str]]) -> list[str]:
    """The largest buffers that the settings name."""
    return [table[name].split()[-1] for table in tables.values() for name in (_RMEM, _WMEM) if name in table]
