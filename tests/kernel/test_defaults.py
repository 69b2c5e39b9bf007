"""Defaults by version, and versions."""

import pytest
from cases import all_cases

from tcpwin.kernel import Defaults, kernel_defaults, parse_kernel

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
WMEM = (4096, 16_384, 4 * MIB)


@all_cases(
    ("kernel", "expected"),
    [
        ((2, 4), Defaults((2, 6), (4096, 87_380, 4 * MIB), WMEM, 2)),
        ((3, 3), Defaults((2, 6), (4096, 87_380, 4 * MIB), WMEM, 2)),
        ((3, 4), Defaults((3, 4), (4096, 87_380, 6 * MIB), WMEM, 1)),
        ((4, 19), Defaults((3, 4), (4096, 87_380, 6 * MIB), WMEM, 1)),
        ((4, 20), Defaults((4, 20), (4096, 131_072, 6 * MIB), WMEM, 1)),
        ((6, 5), Defaults((4, 20), (4096, 131_072, 6 * MIB), WMEM, 1)),
        ((6, 6), Defaults((6, 6), (4096, 131_072, 6 * MIB), WMEM, None)),
        ((6, 15), Defaults((6, 6), (4096, 131_072, 6 * MIB), WMEM, None)),
        ((6, 16), Defaults((6, 16), (4096, 131_072, 32 * MIB), WMEM, None)),
        ((7, 1), Defaults((6, 16), (4096, 131_072, 32 * MIB), WMEM, None)),
        (None, Defaults((4, 20), (4096, 131_072, 6 * MIB), WMEM, 1)),
    ],
)
def test_defaults_of_a_version(kernel: tuple[int, int] | None, expected: Defaults) -> None:
    assert kernel_defaults(kernel) == expected


@all_cases(
    ("memory_bytes", "receive", "send"),
    [
        (24 * GIB, 32 * MIB, 4 * MIB),
        (4 * GIB, 32 * MIB, 4 * MIB),
        (1 * GIB, 8 * MIB, 4 * MIB),
        (256 * MIB, 2 * MIB, 2 * MIB),
        (8 * MIB, 131_072, 65_536),
        (0, 131_072, 65_536),
        (-1, 131_072, 65_536),
    ],
)
def test_small_hosts_have_smaller_buffers(memory_bytes: int, receive: int, send: int) -> None:
    """tcp_init: 1/128 of the free pages, at least 131072 and 64 KiB."""
    assert kernel_defaults((6, 16), memory_bytes=memory_bytes) == Defaults(
        (6, 16), (4096, 131_072, receive), (4096, 16_384, send), None
    )


@all_cases(
    ("release", "version"),
    [
        ("6.1", (6, 1)),
        ("6.1.0-13-amd64", (6, 1)),
        ("5.15.0-92-generic", (5, 15)),
        ("4.18.0-553.el8_10.x86_64", (4, 18)),
        ("6.16-rc1", (6, 16)),
        ("10.12", (10, 12)),
    ],
)
def test_versions(release: str, version: tuple[int, int]) -> None:
    assert parse_kernel(release) == version


@all_cases("release", ["", "6", "v6.1", "x", "6.", "-1.2", "6.12345", "9" * 5000])
def test_no_versions(release: str) -> None:
    with pytest.raises(ValueError, match="not a kernel version"):
        parse_kernel(release)
