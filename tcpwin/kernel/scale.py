"""Window scale shifts: those that Linux and Windows offer, and those that a window needs."""

from __future__ import annotations

from tcpwin.errors import ArgumentError

MAX_SHIFT = 14
"""RFC 7323 §2.3."""
MAX_FIELD = 65535
"""The window field has 16 bits."""
MAX_WINDOW_BYTES = MAX_FIELD << MAX_SHIFT
"""The largest possible receive window: 1,073,725,440 bytes."""
DEFAULT_RMEM_MAX_BYTES = 212992
"""Default of `net.core.rmem_max` on x86-64; some distributions ship more."""

WINDOWS_SHIFTS: dict[str, int | None] = {
    "disabled": None,
    "highlyrestricted": 2,
    "restricted": 4,
    "normal": 8,
    "experimental": 14,
}
"""Shift by Windows' receive window auto-tuning level, None for no option in the SYN (Microsoft, "Performance tuning
network adapters", table of autotuning levels: 0x2, 0x4, 0x8, 0xE)."""


def smallest_shift(window_bytes: int) -> int | None:
    """Return the smallest shift with which the field can express a window; None if no shift can (RFC 7323 §2.3)."""
    return next((shift for shift in range(MAX_SHIFT + 1) if MAX_FIELD << shift >= window_bytes), None)


def linux_shift(
    tcp_rmem_max_bytes: int,
    *,
    rmem_max_bytes: int = DEFAULT_RMEM_MAX_BYTES,
    space_bytes: int = 0,
    clamp_bytes: int = MAX_WINDOW_BYTES,
) -> int:
    """Return the shift that a Linux host offers in its SYN (`tcp_select_initial_window`, net/ipv4/tcp_output.c).

    It depends on memory, not on the window: a window of half the buffer leaves one bit unused.

    Args:
        tcp_rmem_max_bytes: the third value of `net.ipv4.tcp_rmem`.
        rmem_max_bytes: `net.core.rmem_max`.
        space_bytes: the window that the socket's present buffer allows; SO_RCVBUF may make it the largest of the three.
        clamp_bytes: TCP_WINDOW_CLAMP, or the route's window; none by default.
    """
    space = min(clamp_bytes, max(space_bytes, tcp_rmem_max_bytes, rmem_max_bytes))
    return min(max(space.bit_length() - 1 - 15, 0), MAX_SHIFT)


def windows_shift(level: str) -> int | None:
    """Return the shift that Windows offers at an auto-tuning level, as `netsh` names it; None for no window scaling.

    Raises:
        ArgumentError: unknown level.
    """
    key = level.strip().lower()
    if key not in WINDOWS_SHIFTS:
        raise ArgumentError(f"unknown auto-tuning level {level[:60]}: choose one of {', '.join(WINDOWS_SHIFTS)}")
    return WINDOWS_SHIFTS[key]
