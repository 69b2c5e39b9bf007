"""Adapt the commands of a remedy to the operating system of their host.

In: a case's hosts, a side and a remedy. Out: the remedy with commands that exist on this host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpwin.limits.finding import Remedy

if TYPE_CHECKING:
    from tcpwin.hosts import Host

LINUX_TOOLS = ("sysctl ", "tc ", "ip ", "iptables ", "ethtool ")
WINDOWS = {
    "net.ipv4.tcp_rmem": "netsh interface tcp set global autotuninglevel=normal",
    "net.ipv4.tcp_moderate_rcvbuf": "netsh interface tcp set global autotuninglevel=normal",
    "net.ipv4.tcp_window_scaling": "netsh interface tcp set global autotuninglevel=normal",
    "net.ipv4.tcp_timestamps": "netsh interface tcp set global timestamps=enabled",
    "net.ipv4.tcp_slow_start_after_idle": "Set-NetTCPSetting -SettingName InternetCustom -CwndRestart False",
    "net.ipv4.tcp_congestion_control": "Set-NetTCPSetting -SettingName InternetCustom -CongestionProvider CUBIC",
}
"""Windows commands equivalent to Linux settings (learn.microsoft.com: Set-NetTCPSetting, netsh)."""


def is_windows(hosts: Iterable[Host], own: Host | None) -> bool:
    """Return whether the host of a side runs Windows.

    Windows settings identify no connection. They are attributed to the side that has no other record, if exactly one
    recorded host runs Windows.
    """
    from tcpwin.hosts import WindowsSample

    found = [host for host in hosts if any(isinstance(each, WindowsSample) for each in host.others)]
    return len(found) == 1 and (own is None or own is found[0])


def fitted(remedy: Remedy, hosts: Iterable[Host], own: Host | None) -> Remedy:
    """Replace a remedy's Linux commands with Windows ones, if the host runs Windows."""
    if not remedy.settings or not is_windows(hosts, own):
        return remedy
    commands: list[str] = []
    for line in remedy.settings:
        if not line.startswith(LINUX_TOOLS):
            commands.append(line)
            continue
        commands += [command for name, command in WINDOWS.items() if name in line]
    return replace(remedy, settings=tuple(dict.fromkeys(commands)))
