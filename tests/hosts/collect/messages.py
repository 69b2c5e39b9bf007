"""Messages of the kernel's socket dump, built by hand (include/uapi/linux/inet_diag.h)."""

from __future__ import annotations

import socket
import struct


def message(state: int, local: tuple[str, int], peer: tuple[str, int]) -> bytes:
    """Return an inet_diag_msg."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    addresses = [socket.inet_pton(family, address).ljust(16, b"\0") for address, _ in (local, peer)]
    ports = [struct.pack(">H", port) for _, port in (local, peer)]
    return struct.pack("=4B2s2s16s16s32x", family, state, 0, 0, *ports, *addresses)


def attribute(kind: int, data: bytes) -> bytes:
    """Return a netlink attribute, padded."""
    return (struct.pack("=HH", 4 + len(data), kind) + data).ljust(4 + len(data) + 3 & ~3, b"\0")
