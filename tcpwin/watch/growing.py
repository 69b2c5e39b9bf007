"""Packets of a pcap file that is still being written, or of a pipe.

In: a path, or ``-``. Out: its records, as they are written. If the file is replaced by another of the same name, as in
rotation, reading continues with the new one.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import time
from pathlib import Path
from typing import IO

from tcpwin import _engine
from tcpwin.errors import SourceError
from tcpwin.watch.chunk import HEADER_BYTES, Chunk

_READ_BYTES = 1 << 16
"""Small enough that one second of a slow connection is several reads."""
_LOOK_S = 0.1
"""Interval between checks whether the file grew."""
_MAGICS = {0xA1B2C3D4: False, 0xA1B23C4D: True}
"""Supported magic numbers, and whether their fractions are nanoseconds."""
_PCAPNG = b"\n\r\r\n"


class GrowingFile:
    """The packets of a file from its beginning, including those still being written.

    Raises:
        SourceError: it cannot be opened, or is not a pcap file.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == "-" else path
        self.dropped = 0
        self.trouble = ""
        self.is_over = False
        self.is_live = False
        self.header = b""
        self._path = path
        self._rest = b""
        self._is_big_endian = self._is_nanoseconds = False
        self._file = self._open()

    def _open(self) -> IO[bytes]:
        if self._path == "-":
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
        try:
            return Path(self._path).open("rb", buffering=0)
        except OSError as error:
            raise SourceError(f"{self._path}: {error.strerror or error}") from None

    def take(self, timeout_s: float) -> list[Chunk]:
        end = time.monotonic() + timeout_s
        while not self.is_over:
            if self._read(max(0.0, end - time.monotonic())):
                if (chunk := self._whole()) is not None:
                    return [chunk]
            elif time.monotonic() >= end:
                break
        return []

    def close(self) -> None:
        self._file.close()

    def _read(self, timeout_s: float) -> bool:
        """Read; return whether there was data."""
        if self._path == "-" and not select.select([self._file], [], [], timeout_s)[0]:
            return False
        data = self._file.read(_READ_BYTES) or b""
        self._rest += data
        if data:
            return True
        if self._path == "-":
            self.is_over = True
        elif not self._exchange():
            time.sleep(min(_LOOK_S, timeout_s))
        return False

    def _exchange(self) -> bool:
        """Continue with the new file of this name, or from the beginning if the file was truncated."""
        mine = os.fstat(self._file.fileno())
        try:
            there = Path(self._path).stat()
        except OSError:
            return False
        is_same = (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
        if is_same and there.st_size >= self._file.tell():
            return False
        self._file.close()
        self._file = self._open()
        self._rest = b""
        self.header = b""
        return True

    def _whole(self) -> Chunk | None:
        if not self.header and not self._read_header():
            return None
        end, packets, first_ns, last_ns, is_damaged = _engine.grown_records(
            self._rest, is_big_endian=self._is_big_endian, is_nanoseconds=self._is_nanoseconds
        )
        records, self._rest = self._rest[:end], self._rest[end:]
        if is_damaged:
            self.is_over = True
            self.trouble = f"{self.name}: the data after packet {packets:,} of the current file is not a packet"
        return Chunk(records, packets, first_ns, last_ns) if packets else None

    def _read_header(self) -> bool:
        if self._rest.startswith(_PCAPNG):
            raise SourceError(f"{self.name}: a pcapng file; only pcap can be followed (tcpdump -w, dumpcap -P)")
        if len(self._rest) < HEADER_BYTES:
            return False
        for order in "<>":
            (magic,) = struct.unpack_from(f"{order}I", self._rest)
            if magic in _MAGICS:
                self.header, self._rest = self._rest[:HEADER_BYTES], self._rest[HEADER_BYTES:]
                self._is_big_endian, self._is_nanoseconds = order == ">", _MAGICS[magic]
                return True
        raise SourceError(f"{self.name}: not a pcap file")
