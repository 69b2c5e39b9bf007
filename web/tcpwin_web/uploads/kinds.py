"""Recognise an upload by its first bytes and its name: a capture, host snapshots, or a bundle of both."""

import re
import zlib
from typing import Literal

Kind = Literal["capture", "snapshot", "bundle"]

HEAD_BYTES = 4096
_CAPTURE = re.compile(rb"\xa1\xb2(\xc3\xd4|\x3c\x4d|\xcd\x34)|(\xd4\xc3|\x4d\x3c|\x34\xcd)\xb2\xa1|\x0a\x0d\x0d\x0a")
_FRAMES = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MAGIC_AT = 257
_CAPTURE_NAME = re.compile(r"\.(pcap|pcapng|cap|dmp)\d*(\.(gz|zst|lz4))?$", re.IGNORECASE)


def detect_kind(head: bytes, name: str) -> Kind:
    """Return the kind of an upload, by content first; the name decides only if the content leaves it open."""
    if head.startswith(_ZIP) or _is_tar(head):
        return "bundle"
    if _CAPTURE.match(head) or head.startswith(_FRAMES):
        return "capture"
    if head.startswith(_GZIP):
        inside = _inflate(head)
        if _is_tar(inside):
            return "bundle"
        return "snapshot" if _is_text(inside) and not _CAPTURE_NAME.search(name) else "capture"
    return "snapshot" if _is_text(head) and not _CAPTURE_NAME.search(name) else "capture"


def _is_tar(head: bytes) -> bool:
    return head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar"


def _inflate(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def _is_text(head: bytes) -> bool:
    """UTF-16, as PowerShell writes it, begins with a byte order mark; other text snapshots contain no NUL."""
    return bool(head) and (head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in head)
