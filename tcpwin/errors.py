"""What can go wrong, as one tree.

TcpwinError
├── CaptureError    a file that cannot be read as a capture at all
├── SnapshotError   a file of host snapshots that cannot be read at all
├── FilterError     a filter that libpcap does not understand
├── SourceError     something that is no source of packets, or cannot be read again
├── OutputError     a result that cannot be written as asked
└── ArgumentError   an invalid argument: a span that ends before it begins, an unknown figure

A bad packet is data: it is counted and shown, never raised.
"""

from __future__ import annotations


class TcpwinError(Exception):
    """Base of every error that tcpwin raises on purpose."""


class CaptureError(TcpwinError):
    """A capture of which nothing can be read: not a capture, empty, or unreadable.

    A capture that is damaged further on is no error: it gives what stands before the damage, and a warning.
    """

    def __init__(self, message: str, file: str, byte_offset: int) -> None:
        super().__init__(message, file, byte_offset)
        self.message = message
        self.file = file
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        where = f" (at byte {self.byte_offset})" if self.byte_offset else ""
        return f"{self.file}: {self.message}{where}"


class SnapshotError(TcpwinError):
    """A file of host snapshots of which nothing can be read: empty, binary, or of no format that is known.

    A line that is not understood is no error: it is counted and kept.
    """

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message, file)
        self.message = message
        self.file = file

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class SourceError(TcpwinError):
    """An object that cannot be read as packets, or one that changed since it was read."""


class FilterError(TcpwinError):
    """A filter that libpcap does not understand, or has no program for on packets of a capture's link type."""


class OutputError(TcpwinError):
    """A result that cannot be written as asked."""


class ArgumentError(TcpwinError, ValueError):
    """An invalid argument, such as a reversed span or an unknown figure."""
