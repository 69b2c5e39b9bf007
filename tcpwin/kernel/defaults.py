"""Linux's defaults by version: the buffers that bound autotuning, and tcp_adv_win_scale.

Sources: `tcp_init` (net/ipv4/tcp.c) and the commits that changed it. Distributions backport changes and set other
values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcpwin.errors import ArgumentError

Kernel = tuple[int, int]
"""A version of Linux: major and minor number."""

SCALING_RATIO_SINCE: Kernel = (6, 6)
"""tcp_adv_win_scale has no effect from here on (commit dfa2f0483360)."""
_MEMORY_DIVISOR = 128
"""One socket may use 1/128 of the memory that was free at boot (`tcp_init`)."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults of one range of versions. Buffers are minimum, initial size and maximum, in bytes.

    Attributes:
        since: first version with them.
        tcp_rmem_bytes, tcp_wmem_bytes: values on a host with enough memory (4 GiB for 32 MiB, 768 MiB for 6 MiB).
        adv_win_scale: `net.ipv4.tcp_adv_win_scale`; None if it has no effect.
    """

    since: Kernel
    tcp_rmem_bytes: tuple[int, int, int]
    tcp_wmem_bytes: tuple[int, int, int]
    adv_win_scale: int | None


_WMEM = (4096, 16384, 4 << 20)
_ERAS = (
    # 572be9bf9d0d "tcp: increase tcp_rmem[2] to 32 MB": in the pull request "Networking for v6.16".
    Defaults((6, 16), (4096, 131072, 32 << 20), _WMEM, None),
    Defaults(SCALING_RATIO_SINCE, (4096, 131072, 6 << 20), _WMEM, None),
    # a337531b942b "tcp: up initial rmem to 128KB and SYN rwin to around 64KB".
    Defaults((4, 20), (4096, 131072, 6 << 20), _WMEM, 1),
    # b49960a05e32 "tcp: change tcp_adv_win_scale and tcp_rmem[2]".
    Defaults((3, 4), (4096, 87380, 6 << 20), _WMEM, 1),
    Defaults((2, 6), (4096, 87380, 4 << 20), _WMEM, 2),
)
UNKNOWN_KERNEL: Kernel = (4, 20)
"""Substitute for an unknown kernel: its defaults, and its half of the buffer as window, are the most common."""


def parse_kernel(release: str) -> Kernel:
    """Return the version of a release as printed by `uname -r`: ``6.1.0-13-amd64`` is (6, 1).

    Raises:
        ArgumentError: it does not begin with two numbers.
    """
    match = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", release)
    if match is None:
        raise ArgumentError(f"not a kernel version such as 6.1 or 5.15.0-92-generic: {release[:60]}")
    return int(match[1]), int(match[2])


def kernel_defaults(kernel: Kernel | None = None, *, memory_bytes: int | None = None) -> Defaults:
    """Return the defaults of a version, or those of 4.20 to 6.5 for None.

    Args:
        kernel: the version; older than 2.6 counts as 2.6.
        memory_bytes: memory free at boot. If given, it bounds the largest buffers at 1/128 of it, like `tcp_init`: at
            least the initial value for tcp_rmem, at least 64 KiB for tcp_wmem.
    """
    wanted = UNKNOWN_KERNEL if kernel is None else kernel
    found = next((era for era in _ERAS if wanted >= era.since), _ERAS[-1])
    if memory_bytes is None:
        return found
    share = max(memory_bytes, 0) // _MEMORY_DIVISOR
    least, start, most = found.tcp_rmem_bytes
    send_least, send_start, send_most = found.tcp_wmem_bytes
    return Defaults(
        found.since,
        (least, start, max(start, min(most, share))),
        (send_least, send_start, max(64 << 10, min(send_most, share))),
        found.adv_win_scale,
    )
