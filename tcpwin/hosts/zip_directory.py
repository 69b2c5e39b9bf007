"""Count the entries of a zip's central directory without creating an object for each (APPNOTE 6.3.10, section 4.3)."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import IO

_END, _END_BYTES, _MOST_COMMENT_BYTES = b"PK\x05\x06", 22, 0xFFFF
_END64, _END64_BYTES, _LOCATOR, _LOCATOR_BYTES = b"PK\x06\x06", 56, b"PK\x06\x07", 20
_HEADER, _HEADER_BYTES = b"PK\x01\x02", 46


def zip_holds_more(path: Path, most: int) -> bool:
    """Whether a zip's directory has more than `most` entries; False if it has no valid directory."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _END_BYTES - _MOST_COMMENT_BYTES, 0))
        tail_at = file.tell()
        tail = file.read()
        found = tail.rfind(_END)
        if found < 0 or len(tail) - found < _END_BYTES:
            return False
        count, directory_bytes = struct.unpack_from("<HI", tail, found + 10)
        end = tail_at + found
        file.seek(max(end - _LOCATOR_BYTES - _END64_BYTES, 0))
        before = file.read(_LOCATOR_BYTES + _END64_BYTES)
        if before[_END64_BYTES:].startswith(_LOCATOR) and before.startswith(_END64):
            count, directory_bytes = struct.unpack_from("<QQ", before, 32)
            end -= _LOCATOR_BYTES + _END64_BYTES
        if count > most:
            return True
        # The count may be false: walk the headers.
        file.seek(max(end - directory_bytes, 0))
        return _walk(file, directory_bytes, most)


def _walk(source: IO[bytes], left: int, most: int) -> bool:
    for _ in range(most + 1):
        header = source.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES or not header.startswith(_HEADER) or left <= 0:
            return False
        skipped = sum(struct.unpack_from("<HHH", header, 28))
        source.seek(skipped, os.SEEK_CUR)
        left -= _HEADER_BYTES + skipped
    return True
