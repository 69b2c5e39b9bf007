"""Shifts offered by Linux and Windows, and needed by a window."""

import pytest
from cases import all_cases

from tcpwin.kernel import MAX_WINDOW_BYTES, WINDOWS_SHIFTS, linux_shift, smallest_shift, windows_shift

MIB = 1 << 20


@all_cases(
    ("window_bytes", "shift"),
    [
        (0, 0),
        (65_535, 0),
        (65_536, 1),
        (131_070, 1),
        (131_071, 2),
        (106_250, 1),
        (131_250_000, 11),
        (128 * MIB, 12),
        (MAX_WINDOW_BYTES, 14),
        (MAX_WINDOW_BYTES + 1, None),
        (10**30, None),
    ],
)
def test_smallest_shift(window_bytes: int, shift: int | None) -> None:
    assert smallest_shift(window_bytes) == shift


def test_the_largest_window() -> None:
    """RFC 7323 §2.3: 65,535 shifted by 14."""
    assert MAX_WINDOW_BYTES == 1_073_725_440


@all_cases(
    ("tcp_rmem_max_bytes", "shift"),
    [
        (6 * MIB, 7),
        (32 * MIB, 10),
        (128 * MIB, 12),
        (512 * MIB, 14),
        ((1 << 31) - 1, 14),
        # Runs of the lab: tcp_rmem[2] 1 MiB, with which `ss` shows wscale:5,5.
        (1 * MIB, 5),
        # net.core.rmem_max is the largest in that case: 212,992.
        (65_535, 2),
    ],
)
def test_shift_that_linux_offers(tcp_rmem_max_bytes: int, shift: int) -> None:
    assert linux_shift(tcp_rmem_max_bytes) == shift


def test_shift_depends_on_the_largest_of_three_and_on_the_clamp() -> None:
    assert linux_shift(65_535, rmem_max_bytes=0) == 0
    assert linux_shift(65_536, rmem_max_bytes=0) == 1
    assert linux_shift(65_535, rmem_max_bytes=4 * MIB) == 7
    assert linux_shift(65_535, rmem_max_bytes=0, space_bytes=2 * MIB) == 6
    assert linux_shift(512 * MIB, clamp_bytes=65_535) == 0
    assert linux_shift(0, rmem_max_bytes=0) == 0


def test_levels_of_windows() -> None:
    """Microsoft's table; RWIN of each level is 65,536 >> shift: 16,384 << 2, 256 << 8."""
    assert WINDOWS_SHIFTS == {"disabled": None, "highlyrestricted": 2, "restricted": 4, "normal": 8, "experimental": 14}
    assert 16_384 << 2 == 256 << 8 == 65_536
    assert windows_shift("normal") == 8
    assert windows_shift(" HighlyRestricted ") == 2
    assert windows_shift("disabled") is None
    with pytest.raises(ValueError, match="unknown auto-tuning level turbo"):
        windows_shift("turbo")
