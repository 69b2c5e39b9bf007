"""libpcap, which compiles filters; the engine runs them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcpwin.errors import FilterError, SourceError

_SNAPLEN_BYTES = 262_144
"""tcpdump's default: the return value of a program for a matching packet."""
_JUMP, _BACK = 0x05, 1 << 31


def compile_filter(expression: str, link_type: int) -> Sequence[tuple[int, int, int, int]]:
    """Compile an expression for a link type: (code, jt, jf, k) of each instruction.

    Raises:
        FilterError: libpcap rejects it, or has no terminating program for this link type.
        SourceError: libpcap is missing.
    """
    cypcap = _libpcap()
    try:
        with _empty_capture(link_type) as path, cypcap.open_offline(path) as capture:
            program: list[tuple[int, int, int, int]] = list(capture.compile(expression))
    except cypcap.Error as error:
        reason = str(error.args[-1]).removeprefix("can't parse filter expression: ")
        raise FilterError(f"filter {expression!r}: {reason} (for packets of link type {link_type})") from None
    if any(code == _JUMP and skip >= _BACK for code, _, _, skip in program):
        raise FilterError(f"filter {expression!r}: its program loops, as protochain's does, and is not run")
    return program


def _libpcap() -> Any:
    try:
        import cypcap
    except ImportError:
        raise SourceError("filters are compiled by libpcap: pip install 'tcpwin[filter]'") from None
    return cypcap


@contextmanager
def _empty_capture(link_type: int) -> Iterator[str]:
    """Yield the path of an empty capture, from which libpcap derives the compiler's link type."""
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="tcpwin-", suffix=".pcap")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPLEN_BYTES, link_type))
        yield path
    finally:
        Path(path).unlink()
